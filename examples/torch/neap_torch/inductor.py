"""Inductor with fused kernels, in the order of the plan, and under the limit by Inductor's own estimate of the peak.

A plan of ops counts results that fused kernels never write, and Inductor allocates some that no op shows. So the limit of
the plan is corrected where the estimate misses the limit, twice at most.
"""

from __future__ import annotations

import contextlib
import heapq

from torch import fx

from .errors import Infeasible
from .limits import Limit
from .partitioning import Partitioner, Settings, warn_of_fallback
from .scratch import scratch_of
from .torch_private import (
    CustomSchedulerPass,
    Scheduled,
    compile_fx,
    copied,
    lowered_graph,
    planned_options,
    report_strides_of_results,
    schedule_fx,
    scheduled,
    storages_of_results,
)

CORRECTIONS = 2  # where one of them meets the limit
MARGINS = (0.985, 0.96, 0.92, 0.85)  # of the limit, where the estimate is above it: the first time, the second, ...
TOLERANCE = 0.005  # of the limit: a higher one by less than this is not tried


class Order(CustomSchedulerPass):
    """Fused kernels in the order of the graph that was planned, where Inductor's own order does not need less. `peaks`:
    Inductor's estimates, of the forward and the backward half."""

    def __init__(self, settings: Settings, is_trial: bool = False):
        self.settings, self.known, self.peaks, self.is_trial = settings, len(settings.graphs), {}, is_trial
        self.saved: dict = {}  # storages, by name, of what the forward half has handed on

    def __call__(self, nodes: list) -> list:
        graph = lowered_graph()
        if graph.name:  # a branch
            return nodes
        if len(self.settings.graphs) == self.known or not nodes:  # nothing that was planned
            if self.is_trial:
                raise Scheduled
            return nodes
        if not graph.is_backward:
            self.saved = storages_of_results()
        handed_on = (self.saved, self.settings.strides_of_parameters) if graph.is_backward else ({}, [])
        before, estimate = scheduled(nodes, *handed_on, scratch_of)
        place = {n.name: i for i, n in enumerate(graph.module.graph.nodes)}
        ordered = in_order(nodes, before, lambda node: _place_of(node, place))
        peak, given = estimate(ordered), estimate(nodes)
        self.peaks["backward" if graph.is_backward else "forward"] = min(peak, given)
        if self.is_trial:
            report_strides_of_results()
            raise Scheduled
        return ordered if peak <= given else nodes

    def uuid(self):
        return None


def in_order(nodes: list, before: dict, key) -> list:
    """Nodes by key, each behind those that `before` names for it."""
    position = {n: i for i, n in enumerate(nodes)}
    waits = {n: len(before[n]) for n in nodes}
    behind: dict = {n: [] for n in nodes}
    for n in nodes:
        for b in before[n]:
            behind[b].append(n)
    ready = [(key(n), position[n], n) for n in nodes if not waits[n]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        n = heapq.heappop(ready)[2]
        ordered.append(n)
        for b in behind[n]:
            waits[b] -= 1
            if not waits[b]:
                heapq.heappush(ready, (key(b), position[b], b))
    return ordered


def _place_of(node, place: dict) -> int:
    """Of a kernel: that of the last op of the plan whose result it writes."""
    places = [-1]
    for n in node.get_nodes():
        if n.node is not None:
            own = n.node.get_origin_node()
            origins = [own] if own is not None and own.name in place else n.node.get_origins()
            places += [place[o.name] for o in origins if o.name in place]
    return max(places)


@contextlib.contextmanager
def _with(settings: Settings, limit: Limit):
    """Planned within another limit, as well as can be: Inductor's estimate decides what fits."""
    kept = settings.limit, settings.on_infeasible
    settings.limit, settings.on_infeasible = limit, "least"
    try:
        yield
    finally:
        settings.limit, settings.on_infeasible = kept


def inductor_backend(settings: Settings):
    """A backend of torch.compile. Raises Infeasible where no correction brings Inductor's estimate below the limit."""

    def tried(module: fx.GraphModule, inputs, limit: Limit):
        """The report of a plan within a limit; None where the graph was not planned."""
        order, known = Order(settings, is_trial=True), len(settings.graphs)
        with _with(settings, limit):
            schedule_fx(copied(module), inputs, planned_options(Partitioner(settings), order))
        if len(settings.graphs) == known:
            return None
        report = settings.graphs.pop()
        report.estimated_bytes = report.resident_bytes + max(
            order.peaks.get("forward", 0), order.peaks.get("backward", 0) + report.beside_backward_bytes
        )
        return report

    def backend(module: fx.GraphModule, inputs):
        settings.error = None
        limit, goal, best = settings.limit, None, None
        below, above = [], []  # peaks of plans and their estimates, within the limit and above it
        for tries in range(1 + len(MARGINS)):
            if tries > CORRECTIONS and best[0].fits:
                break
            report = tried(module, inputs, limit)
            if report is None:
                break
            planned = report.limit_bytes
            goal = planned if goal is None else goal
            report.limit_bytes, report.fits = goal, report.estimated_bytes <= goal
            if best is None or _rank(report) < _rank(best[0]):
                best = report, limit
            part = 0.995 if report.fits else MARGINS[min(len(above), len(MARGINS) - 1)]
            (below if report.fits else above).append((report.peak_bytes, report.estimated_bytes))
            corrected = _between(max(below), min(above), goal) if below and above else _corrected(report, part)
            if report.fits and (report.latency_ratio <= 1 or corrected < (1 + TOLERANCE) * planned):
                break
            limit = Limit(bytes=corrected)
        if best is None:
            return compile_fx(module, inputs, planned_options(Partitioner(settings)))
        report, limit = best
        if not report.fits and settings.on_infeasible != "least":
            why = (
                f"Inductor's kernels need {report.estimated_bytes} bytes by its own estimate, and the limit is {goal}: "
                "backend 'lite' keeps to the order of the plan"
            )
            if settings.on_infeasible == "raise":
                settings.error = Infeasible(f"neap_torch: {why}")
                raise settings.error
            warn_of_fallback(why)
            return compile_fx(module, inputs, {})
        with _with(settings, limit):
            compiled = compile_fx(copied(module), inputs, planned_options(Partitioner(settings), Order(settings)))
        settings.graphs[-1] = report
        return compiled

    return backend


def _rank(report) -> tuple:
    """What fits first, then the quicker plan; of those that do not fit, the least peak."""
    return (0, report.latency_ratio) if report.fits else (1, report.estimated_bytes)


def _between(below: tuple, above: tuple, goal: int) -> int:
    """The limit of a plan whose estimate would be just below the goal, if estimates grew evenly between two plans."""
    part = (0.999 * goal - below[1]) / (above[1] - below[1])
    return below[0] + int(max(part, 0.0) * (above[0] - below[0]))


def _corrected(report, part: float) -> int:
    """The limit of a plan whose estimate would be a part of the limit, if what is not resident grew alike."""
    ratio = (part * report.limit_bytes - report.resident_bytes) / (report.estimated_bytes - report.resident_bytes)
    corrected = report.resident_bytes + int(ratio * (report.peak_bytes - report.resident_bytes))
    return max(1, min(corrected, report.original_peak_bytes))
