"""Bytes that a kernel allocates beside its results while it runs: copies in another layout, partial sums, workspaces.

No graph shows them. An op of which they are not known is called once, with made-up tensors of its sizes and strides."""

from __future__ import annotations

import contextlib
import threading

import torch
from torch.utils._pytree import tree_flatten, tree_map

from .costs import size_hint, values_of
from .torch_private import allocations_of

_aten = torch.ops.aten
# Their kernels write results alone where their operands are dense.
_DENSE = {
    _aten._log_softmax, _aten._log_softmax_backward_data, _aten._softmax, _aten._softmax_backward_data, _aten.amax,
    _aten.amin, _aten.any, _aten.arange, _aten.cat, _aten.clone, _aten._to_copy, _aten.empty, _aten.full,
    _aten.full_like, _aten.mean, _aten.nll_loss_backward, _aten.nll_loss_forward, _aten.ones, _aten.ones_like,
    _aten.slice_backward, _aten.sum, _aten.zeros, _aten.zeros_like, _aten.constant_pad_nd, _aten.native_layer_norm,
    _aten.select_backward, _aten.stack, _aten.index_select, _aten.copy, _aten.scalar_tensor,
}  # fmt: skip
_PRODUCTS = {_aten.mm, _aten.addmm, _aten.bmm, _aten.baddbmm}
_WHOLE = {torch.float32, torch.float64, torch.int64}  # of lower types a processor's kernels make copies in these
_known: dict[str, int] = {}  # of this process, by op, sizes and strides


def scratch_of(node: torch.fx.Node) -> int:
    """0 where the op cannot be tried: one of a user's own, one with effects, or one that refuses made-up numbers."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace not in ("aten", "prims", "torchvision"):
        return 0
    if target._schema.is_mutable:
        return 0
    said = values_of((node.args, node.kwargs))
    tensors = [a for a in tree_flatten(said)[0] if isinstance(a, torch.Tensor)]
    if torch.Tag.pointwise in target.tags and not any(
        _known_of(target, _small(said, mixed)) for mixed in (False, True)
    ):
        return 0  # few of these make more than their results
    if all(t.dtype in _WHOLE or t.device.type != "cpu" for t in tensors):
        if target.overloadpacket in _DENSE and all(_is_dense(t) for t in tensors):
            return 0
        if target.overloadpacket in _PRODUCTS and all(_is_matrix(t) for t in tensors):
            return 0
    return _known_of(target, said)


def _known_of(target, said) -> int:
    key = _key(target, said)
    if key not in _known:
        _known[key] = _measured(target, said)
    return _known[key]


def _small(said, mixed: bool):
    """A few numbers in place of each tensor; where strides are mixed, the first one has rows apart."""
    first = [mixed]

    def small(a):
        if not isinstance(a, torch.Tensor):
            return a
        return a.new_empty(64, 128)[:, :64] if first and first.pop() else a.new_empty(64, 64)

    return tree_map(small, said)


def _is_dense(t: torch.Tensor) -> bool:
    expected = 1
    for size, stride in zip(reversed(t.shape), reversed(t.stride())):
        size = size_hint(size)
        if size > 1 and size_hint(stride) != expected:
            return False
        expected *= size
    return True


def _is_matrix(t: torch.Tensor) -> bool:
    """Whether a product reads an operand as it lies: its rows or its columns are dense."""
    if t.dim() < 2:
        return True
    (rows, columns), (down, right) = ([size_hint(n) for n in x[-2:]] for x in (t.shape, t.stride()))
    by_rows = (right == 1 or columns == 1) and down >= max(columns, 1)
    by_columns = (down == 1 or rows == 1) and right >= max(rows, 1)
    return by_rows or by_columns


def _key(target, said) -> str:
    def text(a):
        if isinstance(a, torch.Tensor):
            sizes, strides = [size_hint(n) for n in a.shape], [size_hint(n) for n in a.stride()]
            return f"{a.device}{a.dtype}{sizes}{strides}"
        return str(size_hint(a)) if isinstance(a, torch.SymInt) else str(a)

    return f"{torch.get_num_threads()}:{target}:{tree_map(text, said)}"


def _measured(target, said) -> int:
    devices = {a.device for a in tree_flatten(said)[0] if isinstance(a, torch.Tensor)}
    if any(d.type == "meta" for d in devices):
        return 0
    found = []

    def made(a):
        if not isinstance(a, torch.Tensor):
            return size_hint(a) if isinstance(a, torch.SymInt) else a
        sizes, strides = [size_hint(n) for n in a.shape], [size_hint(n) for n in a.stride()]
        return torch.empty_strided(sizes, strides, dtype=a.dtype, device=a.device).zero_()

    def tried():  # in a thread of its own: no modes, no autocast, and no profiler of the user's
        torch.get_num_threads()  # tells a new thread how many to use
        others = [d for d in devices if d.type != "cpu"]
        with contextlib.suppress(Exception), torch.no_grad(), torch.random.fork_rng(others):
            args, kwargs = tree_map(made, said)
            found.append(allocations_of(lambda: target(*args, **kwargs)))

    thread = threading.Thread(target=tried)
    thread.start()
    thread.join()
    now = most = 0
    for n in found[0] if found else ():
        now += n
        most = max(most, now)
    return most - now if most - now > 256 else 0  # numbers of Python as tensors are no matter
