"""A limit in bytes for torch.compile: neap plans what is saved, what runs again, and in which order."""

from .api import compile, memory_limit, partition
from .errors import Infeasible, NeapWarning, PlanningError
from .report import GraphReport, Report

__all__ = [
    "GraphReport",
    "Infeasible",
    "NeapWarning",
    "PlanningError",
    "Report",
    "compile",
    "memory_limit",
    "partition",
]
__version__ = "0.1.0"
