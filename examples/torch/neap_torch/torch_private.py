"""All that neap_torch uses of torch which torch does not promise to keep. tests/test_private.py names what has changed."""

import copy
import itertools
import math

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
    "lays_images_channels_last",
    "lite_options",
    "lowered_graph",
    "min_cut_rematerialization_partition",
    "placeholder_kind",
    "planned_options",
    "report_strides_of_results",
    "run_and_save_rng_state",
    "run_with_rng_state",
    "schedule_fx",
    "storages_of_results",
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


def storages_of_results() -> dict:
    """Of tensors that a forward half hands on, by name: the storage that they lie in, and its bytes; 0 where it is that
    of a parameter or an input."""
    graph = lowered_graph()
    found = {}
    for node, out in zip(graph.module.graph.output_node().args[0], graph.graph_outputs):
        if isinstance(node, fx.Node) and hasattr(node.meta.get("val"), "dtype"):  # a tensor
            name = out.get_name()
            layout = None if name in graph.graph_inputs else graph.get_buffer(name).get_layout()
            found[node.name] = name, _number(layout.storage_size()) * layout.dtype.itemsize if layout else 0
    return found


def _number(expression) -> int:
    sizes = lowered_graph().sizevars
    return int((getattr(sizes, "optimization_hint", None) or sizes.size_hint)(expression))


def scheduled(nodes: list, storage_of: dict, parameters: list, scratch_of) -> tuple:
    """Of kernels of Inductor's scheduler: for each, those before it; and a function from an order of them to the peak in
    bytes, parameters and inputs apart, by Inductor's account of what lives when. `storage_of`: what `storages_of_results`
    gave of the forward half; empty for that half itself. `parameters`: strides of those whose gradients the results are,
    in their order; None for others. `scratch_of`: of an op for which another library is called, and
    the sizes and strides that this call reads, bytes that it allocates besides its results."""
    from torch._inductor import memory
    from torch._inductor.ir import MultiOutput, NonOwningLayout
    from torch._inductor.scheduler import ExternKernelSchedulerNode

    graph, scheduler = lowered_graph(), nodes[0].scheduler
    results = OrderedSet(graph.get_output_names())
    _, freeable = memory.prepare_planning_info(
        nodes, scheduler.name_to_buf, scheduler.name_to_fused_node, OrderedSet(graph.graph_inputs), results
    )
    before = {n: list(n.mpi_node.pred_nodes) for n in nodes}
    called = [n for n in nodes if isinstance(n, ExternKernelSchedulerNode) and not isinstance(n.node, MultiOutput)]
    scratch = {n: _scratch_of_call(n.node, scratch_of) for n in called}

    copied = [_bytes_of(g) for g, lies in zip(graph.graph_outputs, parameters) if lies and _lies_otherwise(g, lies)]
    accumulation = max(copied, default=0)

    def peak(order: list) -> int:
        last = len(order)  # a step for autograd, which copies gradients that lie otherwise one after the other
        change = [0] * (last + 2)
        change[last] += accumulation
        begins, ends = _functions(order)
        saved: dict = {}  # of storages: where they end
        made = memory.compute_memory_timeline(order, freeable, results)[0]
        made = [b for b in made if b.buffer.get_name() not in freeable]
        earlier: dict = {}  # the step that writes the first part of a buffer, where parts are written apart
        for b in made:
            if isinstance(b.buffer.node.get_output_spec(), NonOwningLayout):
                whole = b.buffer.node.get_output_spec().view.get_name()
                earlier[whole] = min(b.start_step, earlier.get(whole, b.start_step))
        for b in made:
            if not isinstance(b.buffer.node.get_output_spec(), NonOwningLayout):
                change[begins[earlier.get(b.buffer.get_name(), b.start_step)]] += b.size_alloc
                change[last + 1 if b.end_step == -1 else ends[b.end_step]] -= b.size_free
        for step, kernel in enumerate(order):
            for read in kernel.read_writes.reads:
                if read.name in storage_of:
                    saved[storage_of[read.name]] = ends[step]
            change[step] += scratch.get(kernel, 0)
            change[step + 1] -= scratch.get(kernel, 0)
        for name in results & storage_of.keys():
            saved[storage_of[name]] = last + 1
        for (_, size), end in saved.items():
            change[0] += size
            change[end] -= size
        for step, size in _in_place(order, scheduler):
            change[begins[step]] -= size
            change[ends[step]] += size
        return max(itertools.accumulate(change))

    return before, peak


def _functions(order: list) -> tuple:
    """Of each kernel, the first of the function that it is a part of, and the one behind the last: for processors, loops
    without a call between them are one function, whose results are allocated before it and whose inputs are freed after."""
    begins, ends = list(range(len(order))), list(range(1, len(order) + 1))
    for step in range(1, len(order)):
        pair = order[step - 1 : step + 1]
        if not any(n.is_extern() or n.is_template() or str(n.get_device()) != "cpu" for n in pair):
            begins[step] = begins[step - 1]
    for step in reversed(range(len(order) - 1)):
        if begins[step + 1] != step + 1:
            ends[step] = ends[step + 1]
    return begins, ends


def _lies_otherwise(result, strides: tuple) -> bool:
    lies = result.maybe_get_stride() if hasattr(result, "maybe_get_stride") else None
    sizes = result.get_size() if lies else ()
    return any(_number(n) > 1 and _number(a) != b for n, a, b in zip(sizes, lies or (), strides))


def _bytes_of(result) -> int:
    return math.prod(map(_number, result.get_size())) * result.get_dtype().itemsize


def _scratch_of_call(kernel, scratch_of) -> int:
    def numbers(given) -> tuple:
        return tuple(map(_number, given))

    read = [n for n in kernel.inputs if hasattr(n, "get_size")]
    lies = [(numbers(n.get_size()), numbers(n.maybe_get_stride() or ())) for n in read]
    return max((scratch_of(n, lies=lies)[0] for n in kernel.get_origins()), default=0)


def lays_images_channels_last() -> bool:
    """Whether Inductor brings what 2-d convolutions of processors read into that layout."""
    from torch.backends import mkldnn

    return inductor_config.layout_optimization and mkldnn.enabled and mkldnn.is_available()


def _in_place(order: list, scheduler):
    """(step, bytes) of results that Inductor will write over an input that dies there: a part of its conditions, so that
    none is taken for one that is not."""
    from torch._inductor.ir import MultiOutputLayout, MutationLayoutSHOULDREMOVE, NoneLayout
    from torch._inductor.scheduler import BaseSchedulerNode, SchedulerNode

    without_storage = (MultiOutputLayout, MutationLayoutSHOULDREMOVE, NoneLayout)
    donated = getattr(scheduler, "name_to_donated_buffer", {})  # saved tensors that are written over
    step_of = {n: step for step, kernel in enumerate(order) for n in kernel.get_nodes()}
    taken = set()

    def is_left(user, at) -> bool:
        """Whether a reader of a buffer comes after a node, or is that node."""
        if not isinstance(user, BaseSchedulerNode):
            return True
        return step_of.get(user, -1) >= step_of[at] and user.get_name() not in at.ancestors

    for n, step in step_of.items():
        if not isinstance(n, SchedulerNode):
            continue
        for written in n.get_outputs():
            if not written.node.should_allocate() or written.node.get_mutation_names():
                continue
            for read in n.read_writes.reads:
                source = donated.get(read.name) or scheduler.name_to_buf.get(read.name)
                if source is None or read.name in taken or source.node is None or not source.users:
                    continue
                uses = [u for u in source.users if is_left(u.node, n)]
                is_last = len(uses) == 1 and uses[0].node is n and uses[0].can_inplace
                beside = [u.node for u in source.users if step_of.get(u.node) == step]
                is_last &= len({d for u in beside for d in u.read_writes.reads_and_writes() if d.name == read.name}) < 2
                if not is_last or isinstance(source.node.get_output_spec(), without_storage):
                    continue
                shapes = [(b.node.get_dtype(), b.node.get_layout().storage_size()) for b in (source, written)]
                if shapes[0] == shapes[1]:
                    taken.add(read.name)
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
