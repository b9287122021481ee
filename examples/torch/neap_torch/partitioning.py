"""Partitioners of AOTAutograd's joint graphs that keep to a limit of bytes."""

from __future__ import annotations

import hashlib
import json
import resource
import time
import warnings
from dataclasses import dataclass, field

from . import planner
from .costs import Costs
from .errors import Infeasible, NeapWarning, NotPlannable, PlanningError
from .export import Exporter
from .limits import Limit
from .nodes import is_tensor
from .report import GraphReport, module_of
from .rewrite import Rewriter
from .torch_private import CustomPartitionerFn, fx_graph_cse, min_cut_rematerialization_partition

CUDA_ALIGNMENT = 512  # of what PyTorch's allocator gives


@dataclass
class Settings:
    limit: Limit
    costs: Costs
    iterations: int = planner.ITERATIONS
    on_infeasible: str = "raise"
    module_bytes: int = 0  # of all parameters and buffers, whether a graph reads them or not
    graphs: list = field(default_factory=list)
    error: BaseException | None = None
    strides_of_parameters: list = field(default_factory=list)  # of the last graph's primals; None: no parameter


def partition_joint(
    joint, joint_inputs, settings: Settings, *, num_fwd_outputs: int, static_lifetime_input_indices=None
):
    """Forward and backward modules of a joint graph under the limit. Where the graph cannot be planned, torch's
    partitioner takes it, and one warning says why. Raises Infeasible, by default, where no plan fits."""
    begin = _processor_seconds()
    static = list(static_lifetime_input_indices or [])
    try:
        joint.graph.eliminate_dead_code()
        joint.graph = fx_graph_cse(joint.graph)
        joint.recompile()
        example = next((n.meta["val"] for n in joint.graph.nodes if is_tensor(n.meta.get("val"))), None)
        name = f"graph {len(settings.graphs)}"
        settings.costs.begin(example)
        exporter = Exporter(joint, num_fwd_outputs, static, settings.costs, settings.module_bytes)
        exported = exporter.export(name)
        settings.costs.end()
        resident = sum(b["bytes"] for b in exporter.buffers if b["kind"] != "temp")
        wanted = settings.limit.within(example.device, resident)
        alignment = 1 if example.device.type == "cpu" else CUDA_ALIGNMENT
        planned = planner.plan(exported.graph, wanted.text_for_planner(), settings.iterations, alignment)
        if not planned.fits and settings.on_infeasible != "least":
            if settings.on_infeasible == "default":
                raise NotPlannable(planned.why_not)
            settings.error = Infeasible(f"neap_torch: {planned.why_not}")
            raise settings.error
        rewriter = Rewriter(joint, exported, planned)
        halves = rewriter.halves(num_fwd_outputs, exporter.static)
    except (NotPlannable, PlanningError) as why:
        warn_of_fallback(why)
        return min_cut_rematerialization_partition(
            joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, static_lifetime_input_indices=static
        )
    saved = [n for n in rewriter.saved if is_tensor(n.meta.get("val")) and n.op != "placeholder"]
    settings.strides_of_parameters = exporter.strides_of_parameters()
    settings.graphs.append(
        GraphReport(
            name=name,
            limit_bytes=wanted.bytes_of(planned.original_peak_bytes),
            peak_bytes=planned.peak_bytes,
            original_peak_bytes=planned.original_peak_bytes,
            bound_bytes=planned.bound_bytes,
            latency_ratio=planned.latency_us / max(planned.original_latency_us, 1e-9),
            recomputed=[(module_of(n), str(n.target)) for n, runs in rewriter.runs.items() if runs > 1],
            saved=[(module_of(n), n.name) for n in saved],
            saved_bytes=sum(exporter.buffers[i]["bytes"] for i in _buffers_of(rewriter, exporter, saved)),
            planning_seconds=_processor_seconds() - begin,
            search_seconds=planned.seconds,
            digest=hashlib.sha256(json.dumps(planned.steps).encode()).hexdigest()[:16],
            fits=planned.fits,
            next_mib=planned.price(),
            picture=planned.picture,
            resident_bytes=resident,
            beside_backward_bytes=_beside_backward(exporter, rewriter, saved),
        )
    )
    return halves


def warn_of_fallback(why) -> None:
    warnings.warn(
        f"neap_torch: torch's partitioner takes this graph, without a limit: {why}", NeapWarning, stacklevel=3
    )


def _processor_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _buffers_of(rewriter, exporter, nodes) -> set:
    tensor_of = {new: old for old, new in rewriter.env.items()}
    return {exporter.tensors[exporter.id_of[tensor_of[n]]]["buf"] for n in nodes if tensor_of.get(n) in exporter.id_of}


def _beside_backward(exporter, rewriter, saved) -> int:
    """Bytes of tangents, and of results of the forward half that the caller holds and the backward half does not read."""
    held = {exporter.tensors[exporter.id_of[n]]["buf"] for n in exporter.forward_outputs if n in exporter.id_of}
    held -= _buffers_of(rewriter, exporter, saved)
    held |= {exporter.tensors[exporter.id_of[n]]["buf"] for n in exporter.tangents}
    return sum(exporter.buffers[i]["bytes"] for i in held if exporter.buffers[i]["kind"] == "temp")


class Partitioner(CustomPartitionerFn):
    """For torch._inductor.config.custom_partitioner_fn, beside which caches are off: torch_private.planned_options."""

    def __init__(self, settings: Settings):
        self.settings = settings

    def __call__(self, gm, joint_inputs, **kwargs):
        return partition_joint(
            gm,
            joint_inputs,
            self.settings,
            num_fwd_outputs=kwargs["num_fwd_outputs"],
            static_lifetime_input_indices=kwargs.get("static_lifetime_input_indices"),
        )

    def uuid(self):
        return None
