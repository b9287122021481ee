"""All that neap_torch uses of torch which torch does not promise to keep. tests/test_private.py names what has changed."""

import copy
import itertools

from torch import fx
from torch._C._autograd import _disable_profiler_legacy, _enable_profiler_legacy
from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.debugging import boxed_nop
from torch._functorch import config as functorch_config
from torch._functorch.compile_utils import fx_graph_cse
from torch._functorch.partitioners import (
    _extract_fwd_bwd_modules as extract_forward_and_backward,
)
from torch._functorch.partitioners import (
    apply_graphsafe_rng_functionalization,
    default_partition,
    min_cut_rematerialization_partition,
)
from torch._inductor import config as inductor_config
from torch._inductor import list_mode_options
from torch._inductor.custom_graph_pass import CustomPartitionerFn
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from torch.fx.experimental.proxy_tensor import is_sym_node
from torch.utils._ordered_set import OrderedSet
from torch.utils._python_dispatch import _disable_current_modes as without_modes
from torch.utils.flop_counter import flop_registry

try:
    from torch._inductor.custom_graph_pass import CustomSchedulerPass
except ImportError:  # of older versions: any function serves
    CustomSchedulerPass = object

__all__ = [
    "CustomPartitionerFn",
    "CustomSchedulerPass",
    "OrderedSet",
    "Scheduled",
    "allocations_of",
    "aot_autograd",
    "apply_graphsafe_rng_functionalization",
    "boxed_nop",
    "captures_cuda_graphs",
    "compile_fx",
    "copied",
    "default_partition",
    "extract_forward_and_backward",
    "flop_registry",
    "functorch_config",
    "fx_graph_cse",
    "inductor_config",
    "is_sym_node",
    "lite_options",
    "lowered_graph",
    "min_cut_rematerialization_partition",
    "placeholder_kind",
    "planned_options",
    "report_strides_of_results",
    "run_and_save_rng_state",
    "run_with_rng_state",
    "schedule_fx",
    "scheduled",
    "without_modes",
    "written_as_loops",
]


_MODULES = {"trace.provenance_tracking_level": 1}  # nodes keep the modules that made them
# Older versions (2.10) do not have the first one among torch.compile's options.
_NO_CACHES = (
    {"force_disable_caches": True}
    if "force_disable_caches" in inductor_config.get_config_copy()
    else {"fx_graph_cache": False}
)


def planned_options(partitioner, order=None) -> dict:
    """What makes Inductor use a partitioner, for each compilation: a graph of torch's caches would be another's plan.
    `order`: a CustomSchedulerPass, whose order Inductor keeps. Buffers are freed then when they are dead, as Inductor's
    estimate counts them, and not kept for another of their size."""
    options = {"custom_partitioner_fn": partitioner, **_NO_CACHES, **_MODULES}
    if order is not None:
        options |= {"_post_fusion_custom_pass": order, "reorder_for_peak_memory": False, "allow_buffer_reuse": False}
    return options


def compile_fx(module, inputs, config_patches: dict):
    """Both halves at once: the backward half is not left to its first call."""
    from torch._inductor.compile_fx import compile_fx as compiled

    with functorch_config.patch(force_non_lazy_backward_lowering=True):
        return compiled(module, inputs, config_patches=config_patches)


class Scheduled(Exception):
    """Raised by an order of kernels, where Inductor shall write no code."""


def schedule_fx(module, inputs, config_patches: dict) -> None:
    """compile_fx as far as the order of kernels, which raises Scheduled for each half."""
    from torch._inductor.compile_fx import compile_fx as compiled
    from torch._inductor.compile_fx import compile_fx_inner

    def no_code(*_):
        raise AssertionError("neap_torch: kernels that were scheduled alone were called")

    no_code._boxed_call = True

    def inner(*args, **kwargs):
        try:
            return compile_fx_inner(*args, **kwargs)
        except Exception as e:
            while e is not None:
                if isinstance(e, Scheduled) or isinstance(getattr(e, "inner_exception", None), Scheduled):
                    return no_code
                e = e.__cause__ or e.__context__
            raise

    # Caches are off in another way here: for this one Inductor keeps the folder of what failed.
    patches = {**config_patches, **dict.fromkeys(_NO_CACHES, False), "fx_graph_cache": False}
    with functorch_config.patch(force_non_lazy_backward_lowering=True, enable_autograd_cache=False):
        compiled(module, inputs, inner_compile=inner, config_patches=patches)


def copied(module: fx.GraphModule) -> fx.GraphModule:
    """Another graph over the same tensors: Inductor changes what it compiles. Which inputs are parameters is said by
    attributes that a copy loses."""
    same = fx.GraphModule(module, copy.deepcopy(module.graph))
    same.meta = dict(module.meta)
    for old, new in [(module, same), *zip(module.graph.nodes, same.graph.nodes)]:
        for name in ("_param_name_to_source", "_dynamo_source"):
            if hasattr(old, name):
                setattr(new, name, getattr(old, name))
    return same


def report_strides_of_results() -> None:
    """In place of the code of a forward half: the backward half begins with what is saved as it lies."""
    from torch._guards import TracingContext

    context, graph = TracingContext.try_get(), lowered_graph()
    if context is None or context.output_strides != [] or graph.is_backward:
        return
    for out in graph.graph_outputs:
        strides = out.maybe_get_stride() if hasattr(out, "maybe_get_stride") else None
        is_known = strides is not None and not any(getattr(n, "free_symbols", ()) for n in strides)
        context.output_strides.append(tuple(int(n) for n in strides) if is_known else None)


def lowered_graph():
    """The graph that Inductor lowers now: name (of a branch), is_backward, module."""
    from torch._inductor.virtualized import V

    return V.graph


def scheduled(nodes: list, storage_of: dict, scratch: dict) -> tuple:
    """Of kernels of Inductor's scheduler: for each, those before it; and a function from an order of them to the peak in
    bytes, parameters and inputs apart, by Inductor's account of what lives when. `storage_of`: of tensors that are saved,
    a key of the storage that they lie in, its bytes, and strides of a parameter or input, which takes no memory here but
    where other strides arrive: then a copy in another layout was saved. `scratch`: bytes that ops, by name, allocate
    besides their results where another library is called for them."""
    from torch._inductor import memory
    from torch._inductor.ir import MultiOutput
    from torch._inductor.scheduler import ExternKernelSchedulerNode

    graph, scheduler = lowered_graph(), nodes[0].scheduler
    results = OrderedSet(graph.get_output_names())
    _, freeable = memory.prepare_planning_info(
        nodes, scheduler.name_to_buf, scheduler.name_to_fused_node, OrderedSet(graph.graph_inputs), results
    )
    before = {n: list(n.mpi_node.pred_nodes) for n in nodes}
    inputs = graph.graph_inputs
    is_resident = {n: of[2] is not None and not _lies_otherwise(inputs.get(n), of[2]) for n, of in storage_of.items()}

    def peak(order: list) -> int:
        change = [0] * (len(order) + 1)
        ends: dict = {}  # of storages of saved tensors, with their bytes

        def keep(name: str, end: int) -> None:
            if not is_resident[name]:
                storage, size, _ = storage_of[name]
                extent = _bytes_of_input(inputs[name]) if name in inputs else size
                kept = (storage, size) if extent <= size else (name, extent)  # a view that was written out
                ends[kept] = max(ends.get(kept, 0), end)

        for b in memory.compute_memory_timeline(order, freeable, results)[0]:
            end = len(order) if b.end_step == -1 else b.end_step + 1
            name = b.buffer.get_name()
            if name in freeable and name in storage_of:
                keep(name, end)
            else:
                change[b.start_step] += b.size_alloc
                change[end] -= b.size_free
        for step, kernel in enumerate(order):
            for name in {r.name for r in kernel.read_writes.reads} & storage_of.keys():
                if name not in freeable:  # as Inductor takes parameters to be, by their names
                    keep(name, step + 1)
            if isinstance(kernel, ExternKernelSchedulerNode) and not isinstance(kernel.node, MultiOutput):
                size = max((scratch.get(n.name, 0) for n in kernel.node.get_origins()), default=0)
                change[step] += size
                change[step + 1] -= size
        for step, size in _in_place(order, scheduler):
            change[step] -= size
            change[step + 1] += size
        for (_, bytes_), end in ends.items():
            change[0] += bytes_
            change[end] -= bytes_
        return max(itertools.accumulate(change))

    return before, peak


def _lies_otherwise(tensor, strides: tuple) -> bool:
    """Whether an input of a graph, where it is one, has other strides than these, of axes longer than 1."""
    if tensor is None:
        return False
    lies = zip(tensor.get_size(), tensor.get_stride(), strides)
    return any(size != 1 and not getattr(stride, "free_symbols", ()) and stride != s for size, stride, s in lies)


def _bytes_of_input(tensor) -> int:
    """From the first to the last element of a graph's input; 0 where its sizes are symbols."""
    lies = [*tensor.get_size(), *tensor.get_stride()]
    if any(getattr(n, "free_symbols", ()) for n in lies):
        return 0
    last = sum((int(size) - 1) * int(stride) for size, stride in zip(tensor.get_size(), tensor.get_stride()))
    return (1 + last) * tensor.get_dtype().itemsize


def _in_place(order: list, scheduler):
    """(step, bytes) of results that Inductor will write over an input that dies there: a part of its conditions, so that
    none is taken for one that is not."""
    from torch._inductor.scheduler import BaseSchedulerNode, SchedulerNode

    step_of = {n: step for step, kernel in enumerate(order) for n in kernel.get_nodes()}
    taken = set()
    for n, step in step_of.items():
        if not isinstance(n, SchedulerNode):
            continue
        for written in n.get_outputs():
            if not written.node.should_allocate() or written.node.get_mutation_names():
                continue
            for read in n.read_writes.reads:
                source = scheduler.name_to_buf.get(read.name)
                if source is None or source in taken or source.node is None or not source.users:
                    continue
                uses = [u for u in source.users if not isinstance(u.node, BaseSchedulerNode) or step_of[u.node] >= step]
                is_last = len(uses) == 1 and uses[0].node is n and uses[0].can_inplace
                if not is_last or not source.node.should_allocate():  # what allocates nothing may have no type
                    continue
                shapes = [(b.node.get_dtype(), b.node.get_layout().storage_size()) for b in (source, written)]
                if shapes[0] == shapes[1]:
                    taken.add(source)
                    yield step, written.mpi_buffer.size_alloc
                    break


def lite_options() -> dict:
    """Inductor with ATen kernels, in the order of its graphs. Raises RuntimeError where this torch has no such mode."""
    options = list_mode_options().get("lite")
    if options is None:
        raise RuntimeError("neap_torch: this torch has no mode 'lite': use backend='aten'")
    # Inductor's other layouts of convolutions are wrong for ATen's batch norm there (torch 2.15, processors).
    # Its checks of types at run time refuse ATen's batch norm of low-precision images, of which torch describes the
    # statistics wrongly; nothing is generated there that depends on these types.
    return {**options, "layout_optimization": False, "size_asserts": False}


def written_as_loops(target) -> bool:
    """Whether Inductor writes an op's kernel itself, so that it fuses, and calls no other library for it."""
    from torch._inductor.lowering import fallbacks, lowerings  # imported late: it takes a second

    return target in lowerings and target not in fallbacks


def captures_cuda_graphs() -> bool:
    """Whether steps may be captured as CUDA graphs, where a random state cannot be read and set by the host."""
    return inductor_config.triton.cudagraphs and functorch_config.graphsafe_rng_functionalization


def placeholder_kind(node) -> str:
    """tangent, seed (of a random generator, given to Inductor's graphs), or primal."""
    name = str(node.target)
    if "tangents" in name:
        return "tangent"
    return "seed" if "seed" in name or "base_offset" in name else "primal"


def allocations_of(run) -> list:
    """Bytes that a call allocates and, below 0, frees, one after the other; its results live until the end. Of this thread
    alone, which may have no other profiler."""
    _enable_profiler_legacy(ProfilerConfig(ProfilerState.CPU, False, True, False, False, False, _ExperimentalConfig()))
    result = None
    try:
        result = run()
    finally:
        events = _disable_profiler_legacy()
        del result
    made = [e for thread in events for e in thread if e.kind() == "memory_alloc"]
    return [e.cpu_memory_usage() + e.cuda_memory_usage() for e in made]
