"""What neap_torch raises and warns of."""


class Infeasible(RuntimeError):
    """No plan within the limit was found. The text has the least peak found, the bound, and the ops that force it."""


class PlanningError(RuntimeError):
    """The planner could not be run, or refused the graph."""


class NotPlannable(Exception):
    """A joint graph has something that plans cannot express; torch's partitioner takes it. Text: the op and the reason."""


class NeapWarning(UserWarning):
    pass
