"""A plan as a joint graph again: ops in the plan's order, with copies of those that run again; and its two halves."""

from __future__ import annotations

import contextlib
import operator
from collections import Counter

import torch
from torch import fx

from .errors import NotPlannable
from .export import LAYOUT, Exported, is_batch_norm, is_sym_only, random_state_of
from .nodes import is_tensor, tensors_of
from .planner import Plan
from .torch_private import (
    OrderedSet,
    apply_graphsafe_rng_functionalization,
    captures_cuda_graphs,
    extract_forward_and_backward,
    is_sym_node,
    run_and_save_rng_state,
    run_with_rng_state,
)

CAPTURED = "cuda"  # the type of devices with CUDA graphs


class Rewriter:
    def __init__(self, joint: fx.GraphModule, exported: Exported, plan: Plan):
        self.joint, self.exported, self.plan = joint, exported, plan
        self.graph = fx.Graph()
        self.at: dict[int, fx.Node] = {}  # tensors of the plan
        self.env: dict[fx.Node, fx.Node] = {}  # sources, sizes, and the latest copy of everything else
        self.runs: dict[fx.Node, int] = {}
        self.before_boundary: set[fx.Node] = set()
        self.saved: dict[fx.Node, None] = {}
        self.is_late = False
        self.times = Counter(row for row, _, _ in plan.steps)
        self.states: dict[fx.Node, fx.Node] = {}  # of random ops that run again: their generators' states
        self.pairs = self.paired()  # of random ops, by what they are in the joint graph: their two runs

    def paired(self) -> dict[fx.Node, list[fx.Node]]:
        """Random ops with generators of their own, one in each half, where CUDA graphs are captured: they run once in
        each, on one device. As in torch's partitioner, their numbers are not those of eager mode."""
        if not captures_cuda_graphs():
            return {}
        boundary = next(k for k, (row, _, _) in enumerate(self.plan.steps) if self.exported.rows[row] is None)
        early = Counter(row for row, _, _ in self.plan.steps[:boundary])
        rows = [r for r, n in self.times.items() if self.exported.is_random[r] and n == 2 and early[r] == 1]
        nodes = [self.exported.rows[r] for r in rows]
        devices = {tensors_of(n)[0].device for n in nodes}
        return {n: [] for n in nodes} if len(devices) == 1 and devices.pop().type == CAPTURED else {}

    def use(self, old: fx.Node, local: dict) -> fx.Node:
        """The new node of an argument: what the plan says, or a source, or a size or an inlined op, which is computed on
        demand."""
        new = local.get(old) or self.env.get(old)
        if new is None and old in self.exported.inlined:
            new = local[old] = self.graph.node_copy(old, lambda n: self.use(n, local))
            new.meta = _meta_of_copy(old, new)
            if not self.is_late:
                self.before_boundary.add(new)
        if new is None:
            if not is_sym_only(old):
                raise NotPlannable(f"{old.name} is read, and the plan does not make it")
            for i in old.all_input_nodes:
                self.use(i, {})
            new = self.env[old] = self.graph.node_copy(old, lambda n: self.use(n, {}))
            if not self.is_late:
                self.before_boundary.add(new)
        if self.is_late and new in self.before_boundary:
            self.saved[new] = None
        return new

    def run(self, row: int, read: list, made: list) -> None:
        old = self.exported.rows[row]
        local = {n: self.at[read[i]] for i, n in enumerate(self.exported.read[row])}
        # Tensors that are changed in place have other numbers in the plan from then on: the first of what is made.
        changed = len(made) - len(self.exported.graph["nodes"][row]["out"])
        for tensor, n in zip(made[:changed], self.exported.written[row]):
            self.at[tensor] = local[n]
        made = made[changed:]
        for n in local.values():
            if self.is_late and n in self.before_boundary:
                self.saved[n] = None
        again = self.runs.get(old, 0)
        self.runs[old] = again + 1
        if self.exported.is_random[row] and self.times[row] > 1 and old not in self.pairs:
            new = self.drawn(old, local)
        elif again and is_batch_norm(old):
            x, weight, bias = (None if a is None else self.use(a, local) for a in old.args[:3])
            new = self.graph.call_function(_batch_norm_alone, (x, weight, bias, *old.args[5:]))
        else:
            new = self.graph.node_copy(old, lambda n: self.use(n, local))
        if again:
            new.meta = _meta_of_copy(old, new)
        if old in self.pairs:
            self.pairs[old].append(new)
        new_nodes = [new]
        for k, who in enumerate(self.exported.made[row]):
            if who is old:
                self.at[made[k]] = self.env[old] = new
            elif isinstance(who, fx.Node):  # an item of a tuple
                if who.args[1] >= len(new.meta["val"]):
                    continue  # statistics, which a copy does not make
                item = self.graph.call_function(operator.getitem, (new, who.args[1]))
                item.meta = dict(who.meta)
                if again:
                    item.meta["val"] = new.meta["val"][who.args[1]]
                self.at[made[k]] = self.env[who] = item
                new_nodes.append(item)
        if not self.is_late:
            self.before_boundary.update(new_nodes)

    def drawn(self, old: fx.Node, local: dict) -> fx.Node:
        """A random op that the plan runs several times: each draws the numbers of the first."""
        args, kwargs = fx.node.map_arg((old.args, old.kwargs), lambda n: self.use(n, local))
        if old in self.states:
            state = self.states[old]
            if self.is_late and state in self.before_boundary:
                self.saved[state] = None
            return self.graph.call_function(run_with_rng_state, (state, old.target, *args), kwargs)
        both = self.graph.call_function(run_and_save_rng_state, (old.target, *args), kwargs)
        state, new = (self.graph.call_function(operator.getitem, (both, i)) for i in range(2))
        made = tensors_of(old)[0]
        with _mode_of(made):
            state.meta["val"] = torch.empty(random_state_of(made).shape, dtype=torch.uint8)
        new.meta = dict(old.meta)
        both.meta = {**old.meta, "val": (state.meta["val"], old.meta["val"])}
        self.states[old] = state
        if not self.is_late:
            self.before_boundary.update((both, state))
        return new

    def boundary(self, made: list) -> None:
        for n in self.joint.graph.nodes:  # of sizes, what is said of them
            if n.op == "call_function" and is_sym_only(n) and n not in self.env:
                try:
                    self.use(n, {})
                except NotPlannable:  # of the backward half
                    continue
        for tangent, tensor in zip(self.exported.made[self.exported.rows.index(None)], made):
            self.at[tensor] = self.env[tangent]
        self.is_late = True

    def rewritten(self) -> fx.GraphModule:
        for n in self.joint.graph.nodes:
            if n.op in ("placeholder", "get_attr"):
                self.env[n] = self.graph.node_copy(n, lambda i: self.env[i])
                if n.op == "placeholder":
                    self.before_boundary.add(self.env[n])
        tangents = set(self.exported.made[self.exported.rows.index(None)])
        self.before_boundary -= {self.env[t] for t in tangents}
        for i, n in enumerate(self.exported.sources):
            self.at[i] = self.env[n]
        for row, read, made in self.plan.steps:
            if self.exported.rows[row] is None:
                self.boundary(made)
            elif isinstance(self.exported.rows[row], fx.Node):
                self.run(row, read, made)
            elif self.exported.rows[row] == LAYOUT:  # Inductor makes these copies
                self.at.update({copy: self.at[weight] for copy, weight in zip(made, read)})
        kept = {}
        if len(self.plan.outputs) != len(self.exported.graph["outputs"]):
            raise NotPlannable(
                f"{len(self.exported.graph['outputs'])} results, of which the plan has {len(self.plan.outputs)}"
            )
        for o, tensor in zip(self.exported.graph["outputs"], self.plan.outputs):
            kept[o["tensor"]] = self.at[tensor]
        old_output = self.joint.graph.output_node()
        late = self.exported.num_forward_outputs

        def result(k: int, n):
            if not isinstance(n, fx.Node):
                return n
            new = kept.get(self.exported.id_of.get(n)) or self.use(n, {})
            if k >= late and new in self.before_boundary:
                self.saved[new] = None
            return new

        results = tuple(result(k, n) for k, n in enumerate(old_output.args[0]))
        output = self.graph.output(results)
        output.meta = dict(old_output.meta)
        self.graph.lint()
        return fx.GraphModule(self.joint, self.graph)

    def halves(self, num_forward_outputs: int, static: set) -> tuple:
        module = self.rewritten()
        # Fresh nodes: those of the module's own graph.
        own = dict(zip(self.graph.nodes, module.graph.nodes))
        saved = [own[n] for n in self.saved]
        sizes = [n for n in saved if is_sym_node(n)]
        opaque = [n for n in saved if not is_sym_node(n) and not is_tensor(n.meta.get("val"))]
        if opaque:
            raise NotPlannable(f"{opaque[0].name} is saved for the backward half, and is no tensor")
        values = [n for n in saved if not is_sym_node(n)]
        static_nodes = OrderedSet(own[self.env[n]] for n in static)
        forward, backward = extract_forward_and_backward(
            module,
            values,
            saved_sym_nodes=sizes,
            num_fwd_outputs=num_forward_outputs,
            static_lifetime_input_nodes=static_nodes,
        )
        self.give_generators(forward, backward, own)
        return forward, backward

    def give_generators(self, forward: fx.GraphModule, backward: fx.GraphModule, own: dict) -> None:
        """Each pair of random ops draws from two generators with equal states, which are further inputs of the halves."""
        if not self.pairs:
            return
        early, late = ({n.name: n for n in half.graph.nodes} for half in (forward, backward))
        last = [next(reversed(half.graph.find_nodes(op="placeholder"))) for half in (forward, backward)]
        for count, (old, runs) in enumerate(self.pairs.items()):
            first, again = early.get(own[runs[0]].name), late.get(own[runs[1]].name)
            if first is None or again is None:  # dead in its half
                continue
            device = tensors_of(old)[0].device
            last = apply_graphsafe_rng_functionalization(forward, backward, first, again, device, count, *last)
        for half in (forward, backward):
            half.graph.lint()
            half.recompile()


_batch_norm_alone = torch.ops.aten._native_batch_norm_legit.no_stats


def _mode_of(t: torch.Tensor):
    return t.fake_mode if hasattr(t, "fake_mode") else contextlib.nullcontext()


def _meta_of_copy(old: fx.Node, new: fx.Node) -> dict:
    """Of a node that runs again: its fake tensors have storages of their own, or those of what it is a view of."""
    meta = {k: v for k, v in old.meta.items() if k not in ("partitioner_tag", "recompute")}
    val = old.meta.get("val")

    def fresh(t):
        if not is_tensor(t):
            return t
        with _mode_of(t):
            return torch.empty_strided(t.size(), t.stride(), dtype=t.dtype, device=t.device)

    base = next((n for n in new.all_input_nodes if is_tensor(n.meta.get("val"))), None)
    old_base = next((n for n in old.all_input_nodes if is_tensor(n.meta.get("val"))), None)
    if is_tensor(val) and base is not None and torch._C._is_alias_of(val, old_base.meta["val"]):
        t = base.meta["val"]
        with _mode_of(t):
            meta["val"] = t.as_strided(val.size(), val.stride(), val.storage_offset())
    elif isinstance(val, (tuple, list)):
        meta["val"] = type(val)(fresh(t) for t in val)
        if is_batch_norm(old):
            meta["val"] = meta["val"][:3]
    else:
        meta["val"] = fresh(val)
    return meta
