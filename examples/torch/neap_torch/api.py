"""compile, memory_limit, partition: what users call."""

from __future__ import annotations

import contextlib
import functools

import torch

from . import planner
from .costs import Costs
from .inductor import Order, inductor_backend
from .limits import Limit, parse_bytes
from .partitioning import Partitioner, Settings, partition_joint
from .report import Report
from .torch_private import aot_autograd, boxed_nop, inductor_config, lite_options, planned_options

_states = {"sgd": 0, "momentum": 1, "rmsprop": 1, "adagrad": 1, "lion": 1, "adam": 2, "adamw": 2}


def _reserved(model, reserve) -> int | None:
    if reserve == "auto":
        return None
    if isinstance(reserve, str) and reserve.lower() in _states:
        if model is None:
            raise ValueError("neap_torch: reserve by an optimizer's name needs a model: give bytes")
        return _states[reserve.lower()] * sum(
            p.numel() * p.element_size() for p in model.parameters() if p.requires_grad
        )
    return parse_bytes(reserve) if reserve else 0


def _settings(model, limit, reserve, costs, iterations, on_infeasible, fused=False) -> Settings:
    planner.executable()  # at once, where it is missing
    if on_infeasible not in ("raise", "least", "default"):
        raise ValueError(f"neap_torch: on_infeasible is 'raise', 'least' or 'default', not {on_infeasible!r}")
    wanted = Limit.parse(limit, _reserved(model, reserve))
    return Settings(wanted, Costs.of(costs, fused), iterations, on_infeasible, _bytes_of(model))


def _bytes_of(model) -> int:
    if not isinstance(model, torch.nn.Module):
        return 0
    held = [t.untyped_storage() for t in (*model.parameters(), *model.buffers()) if t.layout == torch.strided]
    return sum({s._cdata: s.nbytes() for s in held}.values())


def compile(
    model,
    memory_limit,
    *,
    backend: str = "lite",
    reserve=0,
    costs: str = "device",
    iterations: int = planner.ITERATIONS,
    on_infeasible: str = "raise",
    fullgraph: bool = False,
    dynamic: bool | None = None,
):
    """torch.compile under a limit: `memory_limit` is bytes (an int, "4GiB") or a ratio of the peak without a plan (0.5), for
    forward and backward with parameters, inputs and gradients. `reserve`: bytes, an optimizer's name, whose states are
    counted in, or "auto": what a GPU holds beside the graph when it is planned. `backend`: "lite" (ATen kernels by
    Inductor, in the plan's order), "aten" (the same without Inductor) or "inductor" (fused kernels in the plan's order,
    within the limit by Inductor's own estimate). The result has `neap_report`."""
    settings = _settings(model, memory_limit, reserve, costs, iterations, on_infeasible, backend == "inductor")
    if backend == "aten":
        compiled = torch.compile(model, backend=aot_backend(settings), fullgraph=fullgraph, dynamic=dynamic)
    elif backend == "lite":
        options = planned_options(Partitioner(settings)) | lite_options()
        compiled = torch.compile(model, options=options, fullgraph=fullgraph, dynamic=dynamic)
    elif backend == "inductor":
        compiled = torch.compile(model, backend=inductor_backend(settings), fullgraph=fullgraph, dynamic=dynamic)
    else:
        raise ValueError(f"neap_torch: backend is 'lite', 'aten' or 'inductor', not {backend!r}")
    compiled.neap_report = Report(settings)
    return compiled


def aot_backend(settings: Settings):
    return aot_autograd(fw_compiler=boxed_nop, partition_fn=functools.partial(partition_joint, settings=settings))


def partition(
    limit, *, reserve=0, costs: str = "device", iterations: int = planner.ITERATIONS, on_infeasible: str = "raise"
):
    """A partition_fn for aot_autograd and its like."""
    settings = _settings(None, limit, reserve, costs, iterations, on_infeasible)
    return functools.partial(partition_joint, settings=settings)


@contextlib.contextmanager
def memory_limit(limit, *, model=None, reserve=0, costs: str = "device", iterations: int = planner.ITERATIONS,
                 on_infeasible: str = "raise"):  # fmt: skip
    """Graphs that torch.compile compiles by Inductor inside are under the limit. Gives the report."""
    settings = _settings(model, limit, reserve, costs, iterations, on_infeasible, fused=True)
    with inductor_config.patch(**planned_options(Partitioner(settings), Order(settings))):
        yield Report(settings)
