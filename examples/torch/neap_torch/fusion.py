"""What Inductor fuses of a joint graph, and what each op then moves through memory.

Ops that Inductor writes as loops (pointwise ops, reductions, copies) fuse along edges that no call of another library
lies beside. Such a group reads what others have made, and writes what others read: its ends. An op costs its part of
these ends, and the arithmetic that it does. A copy of it in the backward half costs the same, as it fuses there too.
"""

from __future__ import annotations

from torch import fx

from .nodes import bytes_of, tensors_of
from .torch_private import flop_registry, is_sym_node, placeholder_kind, written_as_loops


class Fusion:
    """`moved`: of each loop, the bytes of its group's ends that fall to it; `ends`: the loops that write."""

    def __init__(self, graph: fx.Graph):
        self.moved: dict[fx.Node, float] = {}
        self.ends: set[fx.Node] = set()
        self._nodes = [n for n in graph.nodes if not is_sym_node(n)]
        self._root: dict[fx.Node, fx.Node] = {}  # of views and items of tuples: the op that made the storage
        self._before: dict[fx.Node, int] = {}  # bits of the nodes that one depends on
        self._apart: dict[fx.Node, int] = {}  # of these, those with a call of a library on a way to the node
        self._number = {n: i for i, n in enumerate(self._nodes)}
        for n in self._nodes:
            self._add(n)
        self._forward = self._forward_nodes()
        self._group = {n: n for n in self.moved}
        self._price()

    def _add(self, n: fx.Node) -> None:
        inputs = [i for i in n.all_input_nodes if i in self._root]
        if n.op == "call_function" and inputs:
            made = _storages(n)
            base = next((i for i in inputs if made & _storages(i)), None)
            if base is not None or getattr(n.target, "__name__", "") == "getitem":
                self._root[n] = self._root[inputs[0] if base is None else base]
                return
        self._root[n] = n
        counted = getattr(n.target, "overloadpacket", None) in flop_registry
        is_loop = n.op == "call_function" and not counted and written_as_loops(n.target)
        before, apart = 0, 0
        for i in {self._root[i] for i in inputs}:
            before |= self._before[i]
            apart |= self._apart[i] if is_loop and (i in self.moved or i.op != "call_function") else self._before[i]
        self._before[n], self._apart[n] = before | 1 << self._number[n], apart
        if is_loop:
            self.moved[n] = 0.0

    def _forward_nodes(self) -> set:
        """Those that results need which no tangent reaches."""
        tangents = 0
        number = self._number
        for n in self._nodes:
            if n.op == "placeholder" and placeholder_kind(n) == "tangent":
                tangents |= 1 << number[n]
        results = [self._root[n] for n in self._nodes[-1].all_input_nodes if n in self._root]
        needed = 0
        for n in results:
            if not self._before[n] & tangents:
                needed |= self._before[n]
        return {n for n in self._nodes if needed >> number[n] & 1}

    def _together(self, made: fx.Node, n: fx.Node) -> bool:
        if made not in self.moved or n not in self.moved or (made in self._forward) != (n in self._forward):
            return False
        return not self._apart[n] >> self._number[made] & 1

    def _find(self, n: fx.Node) -> fx.Node:
        while self._group[n] is not n:
            self._group[n] = n = self._group[self._group[n]]
        return n

    def _price(self) -> None:
        edges = []  # (what reads, the op that made it, as what it is read)
        for n in self._nodes:
            if self._root.get(n) is n and n.op == "call_function":
                edges += [(n, self._root[i], i) for i in n.all_input_nodes if i in self._root]
        is_written = {self._root[i] for i in self._nodes[-1].all_input_nodes if i in self._root}
        readers: dict[tuple, list] = {}
        for n, made, _ in edges:
            if self._together(made, n):
                self._group[self._find(n)] = self._find(made)
        for n, made, read in edges:
            together = self._together(made, n)
            if n in self.moved and not together:
                readers.setdefault((made, self._find(n)), []).append((n, read))
            if not together and (made in self._forward) == (n in self._forward):
                is_written.add(made)
        for (made, _), by in readers.items():
            held = _bytes(made)
            for n, read in by:
                self.moved[n] += min(_bytes(read), held) / len(by)
        self.ends = {n for n in is_written if n in self.moved}
        for n in self.ends:
            self.moved[n] += _bytes(n)


def _storages(n: fx.Node) -> set:
    return {t.untyped_storage()._cdata for t in tensors_of(n)}


def _bytes(n: fx.Node) -> int:
    return sum(bytes_of(t) for t in tensors_of(n))
