"""What Inductor fuses of a joint graph, and what each op then moves through memory.

Ops that Inductor writes as loops (pointwise ops, reductions, copies) fuse along edges that no call of another library
lies beside. Such a group reads what others have made, and writes what others read: its ends. An op costs its part of
these ends, and the arithmetic that it does. A copy of it in the backward half costs the same, as it fuses there too.

Pointwise ops of the forward half that only loops read, and whose inputs are there for the backward half in any case, are
inlined: each of their readers computes them again from these inputs, and their results are never written.
"""

from __future__ import annotations

import torch
from torch import fx

from .nodes import bytes_of, must_be_saved, mutated_inputs, tensors_of
from .torch_private import flop_registry, is_sym_node, placeholder_kind, written_as_loops

SMALL = 16  # an input that is this many times smaller than a result can be kept beside it
LONGEST = 30  # ops that a reader computes of one inlined input: beyond these Inductor writes it


class Fusion:
    """`moved`: of each loop, the bytes of its group's ends that fall to it; `ends`: the loops that write; `inlined`: ops
    whose readers compute them."""

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
        self.inlined: dict[fx.Node, list] = {}  # with what they read
        self._find_inlined(mutated_inputs(graph))
        self._price()

    def inputs(self, n: fx.Node) -> list:
        """The nodes that an op reads, with those that inlined ops read in their place."""
        return list(dict.fromkeys(read for i in n.all_input_nodes for read in self.inlined.get(i, [i])))

    def computed_by(self, n: fx.Node) -> list:
        """An op, and the inlined ones that it computes."""
        ops, open_nodes = {n: None}, [n]
        while open_nodes:
            more = [i for i in open_nodes.pop().all_input_nodes if i in self.inlined and i not in ops]
            ops.update(dict.fromkeys(more))
            open_nodes += more
        return list(ops)

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

    def _find_inlined(self, changing: set) -> None:
        kept = set(self._nodes) - self._forward  # storages that the backward half reads, and what is there in any case
        kept = {self._root[i] for n in kept for i in n.all_input_nodes if n.op == "call_function" and i in self._root}
        kept |= {n for n in self._nodes if n.op in ("placeholder", "get_attr") and n not in changing}
        for n in self._nodes:
            tags = getattr(n.target, "tags", ())
            is_pointwise = torch.Tag.pointwise in tags and torch.Tag.nondeterministic_seeded not in tags
            if n not in self.moved or n not in self._forward or not is_pointwise or must_be_saved(n) or not n.users:
                continue
            if not all(user in self.moved for user in n.users):
                continue
            read = self.inputs(n)
            roots = {self._root[i] for i in read if i in self._root}
            is_there = all(root in kept or SMALL * _bytes(root) <= _bytes(n) for root in roots)
            if is_there and len(self.computed_by(n)) <= LONGEST:
                self.inlined[n] = read

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
            if self._root.get(n) is n and n.op == "call_function" and n not in self.inlined:
                edges += [(n, self._root[i], i) for i in self.inputs(n) if i in self._root]
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
