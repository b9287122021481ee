"""All that neap_torch uses of torch which torch does not promise to keep. tests/test_private.py names what has changed."""

from torch._C._autograd import _disable_profiler_legacy, _enable_profiler_legacy
from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.debugging import boxed_nop
from torch._functorch.compile_utils import fx_graph_cse
from torch._functorch.partitioners import (
    _extract_fwd_bwd_modules as extract_forward_and_backward,
)
from torch._functorch.partitioners import (
    default_partition,
    min_cut_rematerialization_partition,
)
from torch._inductor import config as inductor_config
from torch._inductor import list_mode_options
from torch._inductor.custom_graph_pass import CustomPartitionerFn
from torch.fx.experimental.proxy_tensor import is_sym_node
from torch.utils._ordered_set import OrderedSet
from torch.utils._python_dispatch import _disable_current_modes as without_modes
from torch.utils.flop_counter import flop_registry

__all__ = [
    "CustomPartitionerFn",
    "OrderedSet",
    "allocations_of",
    "aot_autograd",
    "boxed_nop",
    "default_partition",
    "extract_forward_and_backward",
    "flop_registry",
    "fx_graph_cse",
    "inductor_config",
    "is_sym_node",
    "lite_options",
    "min_cut_rematerialization_partition",
    "placeholder_kind",
    "planned_options",
    "without_modes",
]


def planned_options(partitioner) -> dict:
    """What makes Inductor use a partitioner, for each compilation: a graph of torch's caches would be another's plan."""
    return {"custom_partitioner_fn": partitioner, "force_disable_caches": True}


def lite_options() -> dict:
    """Inductor with ATen kernels, in the order of its graphs. Raises RuntimeError where this torch has no such mode."""
    options = list_mode_options().get("lite")
    if options is None:
        raise RuntimeError("neap_torch: this torch has no mode 'lite': use backend='aten'")
    # Inductor's other layouts of convolutions are wrong for ATen's batch norm there (torch 2.15, processors).
    # Its checks of types at run time refuse ATen's batch norm of low-precision images, of which torch describes the
    # statistics wrongly; nothing is generated there that depends on these types.
    return {**options, "layout_optimization": False, "size_asserts": False}


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
