"""What is read of a node of a graph: its tensors, their sizes as numbers, its arguments."""

from __future__ import annotations

import torch
from torch import fx
from torch.utils._pytree import tree_map


def is_tensor(x) -> bool:
    return isinstance(x, torch.Tensor)


def size_hint(n) -> int:
    """The number that a symbolic size had in the first call."""
    return n if isinstance(n, int) else int(n.node.hint)


def tensors_of(node: fx.Node) -> list:
    """The tensors that a node makes: one, or those of a tuple."""
    val = node.meta.get("val")
    return [t for t in (val if isinstance(val, (tuple, list)) else [val]) if is_tensor(t)]


def bytes_of(t: torch.Tensor) -> int:
    """Of its elements, whatever the storage that they lie in."""
    return size_hint(t.numel()) * t.element_size()


def values_of(x):
    """Arguments of a node with its inputs' values in their place."""
    return tree_map(lambda a: a.meta.get("val") if isinstance(a, fx.Node) else a, x)


def must_be_saved(node: fx.Node) -> bool:
    """Whether the program says that an op does not run again, by a policy of selective checkpoints."""
    return str(node.meta.get("recompute", "")).endswith("MUST_SAVE")


def mutated_inputs(graph: fx.Graph) -> set:
    """Inputs whose new values are results of the forward half: AOTAutograd copies them back after it."""
    descriptions = [getattr(d, "mutated_input", None) for d in graph.output_node().meta.get("desc") or ()]
    changing = {d for d in descriptions if d is not None}
    return {n for n in graph.nodes if n.op == "placeholder" and n.meta.get("desc") in changing}
