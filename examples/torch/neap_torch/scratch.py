"""Bytes that a kernel allocates beside its results while it runs: copies in another layout, partial sums, workspaces; and
bytes that its results hold beyond their own.

No graph shows them. An op of which they are not known is called once, with made-up tensors of its sizes and strides."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch.utils._pytree import tree_flatten, tree_map

from .nodes import size_hint, values_of
from .torch_private import allocations_of

NUMBERS = 256  # bytes that are not looked at: numbers of Python as tensors, which the exporter counts once in all
_aten = torch.ops.aten
# Their kernels write results alone where their operands are dense.
_DENSE = {
    _aten._log_softmax, _aten._log_softmax_backward_data, _aten._softmax, _aten._softmax_backward_data, _aten.amax,
    _aten.amin, _aten.any, _aten.arange, _aten.cat, _aten.clone, _aten._to_copy, _aten.empty, _aten.full,
    _aten.full_like, _aten.mean, _aten.nll_loss_backward, _aten.nll_loss_forward, _aten.ones, _aten.ones_like,
    _aten.slice_backward, _aten.sum, _aten.zeros, _aten.zeros_like, _aten.constant_pad_nd, _aten.native_layer_norm,
    _aten.select_backward, _aten.stack, _aten.index_select, _aten.copy, _aten.scalar_tensor,
}  # fmt: skip
_CONVOLUTIONS = {_aten.convolution, _aten.convolution_backward}
_PRODUCTS = {_aten.mm, _aten.addmm, _aten.bmm, _aten.baddbmm}
# Each thread has a block of scores, whatever batch and heads: of large ones, one of each is tried.
_BY_THREAD = {
    _aten._scaled_dot_product_flash_attention_for_cpu,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward,
}
_WHOLE = {torch.float32, torch.float64, torch.int64}  # of lower types a processor's kernels make copies in these
_known: dict[str, tuple] = {}  # of this process, by op, sizes and strides
_NOTHING = (0, 0)


@dataclass(frozen=True)
class Like:
    """What a kernel sees of a tensor, and no numbers."""

    shape: tuple
    strides: tuple
    dtype: torch.dtype
    device: torch.device

    def is_dense(self) -> bool:
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides)):
            if size > 1 and stride != expected:
                return False
            expected *= size
        return True

    def is_matrix(self) -> bool:
        """Whether a product reads it as it lies: its rows or its columns are dense."""
        if len(self.shape) < 2:
            return True
        (rows, columns), (down, right) = self.shape[-2:], self.strides[-2:]
        by_rows = (right == 1 or columns == 1) and down >= max(columns, 1)
        by_columns = (down == 1 or rows == 1) and right >= max(rows, 1)
        return by_rows or by_columns

    def channels_last(self) -> Like:
        """An image in that layout; others as they are."""
        if len(self.shape) != 4:
            return self
        strides, expected = [0] * len(self.shape), 1
        for axis in (1, 3, 2, 0):
            strides[axis] = expected
            expected *= self.shape[axis]
        return replace(self, strides=tuple(strides))

    def made(self) -> torch.Tensor:
        return torch.empty_strided(self.shape, self.strides, dtype=self.dtype, device=self.device).zero_()


def _like(a):
    if isinstance(a, torch.Tensor):
        return Like(tuple(size_hint(n) for n in a.shape), tuple(size_hint(n) for n in a.stride()), a.dtype, a.device)
    return size_hint(a) if isinstance(a, torch.SymInt) else a


def is_convolution(target) -> bool:
    return getattr(target, "overloadpacket", None) in _CONVOLUTIONS


def lies_channels_last(tensor: torch.Tensor) -> bool:
    lies = _like(tensor)
    return all(n == 1 or a == b for n, a, b in zip(lies.shape, lies.strides, lies.channels_last().strides))


def scratch_of(node: torch.fx.Node, channels_last: bool = False, lies: Sequence = ()) -> tuple:
    """Bytes while it runs, and bytes of its results, 0 where these are as torch says. Both are 0 where the op cannot be
    tried: one of a user's own, one with effects, or one that refuses made-up numbers. `channels_last`: 2-d convolutions of
    processors read that layout, whatever the graph has. `lies`: sizes and strides of what a call reads, in the op's order,
    where they are known better than from the graph."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace not in ("aten", "prims", "torchvision"):
        return _NOTHING
    if target._schema.is_mutable:
        return _NOTHING
    said = tree_map(_like, values_of((node.args, node.kwargs)))
    if channels_last and is_convolution(target):
        said = tree_map(lambda a: a.channels_last() if isinstance(a, Like) and a.device.type == "cpu" else a, said)
    tensors = [a for a in tree_flatten(said)[0] if isinstance(a, Like)]
    if [a.shape for a in tensors] == [shape for shape, _ in lies]:
        called = iter(lies)
        said = tree_map(lambda a: replace(a, strides=next(called)[1]) if isinstance(a, Like) else a, said)
        tensors = [a for a in tree_flatten(said)[0] if isinstance(a, Like)]
    if torch.Tag.pointwise in target.tags and not any(
        _known_of(target, _small(said, mixed))[0] for mixed in (False, True)
    ):
        return _NOTHING  # few of these make more than their results
    if all(t.dtype in _WHOLE or t.device.type != "cpu" for t in tensors):
        if target.overloadpacket in _DENSE and all(t.is_dense() for t in tensors):
            return _NOTHING
        if target.overloadpacket in _PRODUCTS and all(t.is_matrix() for t in tensors):
            return _NOTHING
    if target.overloadpacket in _BY_THREAD and sum(math.prod(t.shape) for t in tensors) > 1 << 20:
        said = tree_map(lambda a: replace(a, shape=(1, 1, *a.shape[2:])) if isinstance(a, Like) else a, said)
        return _known_of(target, said)[0], 0
    return _known_of(target, said)


def _small(said, mixed: bool):
    """A few numbers in place of each tensor; where strides are mixed, the first one has rows apart."""
    apart = [mixed]

    def small(a):
        if not isinstance(a, Like):
            return a
        return replace(a, shape=(64, 64), strides=(128 if apart and apart.pop() else 64, 1))

    return tree_map(small, said)


def _known_of(target, said) -> tuple:
    key = f"{torch.get_num_threads()}:{target}:{said}"
    if key not in _known:
        _known[key] = _measured(target, said)
    return _known[key]


def _measured(target, said) -> tuple:
    devices = {a.device for a in tree_flatten(said)[0] if isinstance(a, Like)}
    if any(d.type == "meta" for d in devices):
        return _NOTHING
    found = []

    def tried():  # in a thread of its own: no modes, no autocast, and no profiler of the user's
        torch.get_num_threads()  # tells a new thread how many to use
        others = [d for d in devices if d.type != "cpu"]
        with contextlib.suppress(Exception), torch.no_grad(), torch.random.fork_rng(others):
            args, kwargs = tree_map(lambda a: a.made() if isinstance(a, Like) else a, said)
            found.append(allocations_of(lambda: target(*args, **kwargs)))

    thread = threading.Thread(target=tried)
    thread.start()
    thread.join()
    now = most = 0
    for n in found[0] if found else ():
        now += n
        most = max(most, now)
    return (most - now if most - now > NUMBERS else 0), now
