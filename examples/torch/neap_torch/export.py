"""A joint graph of AOTAutograd as a graph file of neap.

Forward ops come first. What flows into the backward half, the tangents, is made by one op without cost that reads all
results of the forward half (`neap.boundary`) and runs once: no plan can begin the backward half before it. Symbolic sizes
stay outside of the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import fx
from torch.multiprocessing.reductions import StorageWeakRef

from .costs import Costs, flops_of
from .errors import NotPlannable
from .nodes import bytes_of, is_tensor, must_be_saved, mutated_inputs, size_hint
from .scratch import NUMBERS, lies_channels_last, scratch_of
from .torch_private import is_sym_node, lays_images_channels_last, placeholder_kind, without_modes

BOUNDARY = "neap.boundary"
RANDOM_STATE = "neap.random_state"
ACCUMULATION = "neap.accumulation"
LAYOUT = "neap.layout"
_names = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
    torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool",
    torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64", torch.complex32: "c32", torch.complex64: "c64",
    torch.complex128: "c128", torch.float8_e4m3fn: "f8e4m3", torch.float8_e5m2: "f8e5m2",
    torch.float8_e4m3fnuz: "f8e4m3fnuz", torch.float8_e5m2fnuz: "f8e5m2fnuz", torch.float8_e8m0fnu: "f8e8m0",
}  # fmt: skip


def random_state_of(tensor: torch.Tensor) -> torch.Tensor:
    """The state of the generator that ops draw from on the device of a tensor."""
    with without_modes():
        return torch.get_rng_state() if tensor.device.type == "cpu" else torch.cuda.get_rng_state(tensor.device)


def is_sym_only(node: fx.Node) -> bool:
    """Whether a node computes sizes or says something of them, and no tensor."""
    if is_sym_node(node):
        return True
    val = node.meta.get("val")
    return (
        node.op == "call_function"
        and val is None
        and not any(is_tensor(n.meta.get("val")) for n in node.all_input_nodes)
    )


def is_batch_norm(node: fx.Node) -> bool:
    """Whether an op normalises by the batch, and makes new statistics beside. A copy can do without these."""
    return node.target == torch.ops.aten._native_batch_norm_legit_functional.default and node.args[5] is True


def is_getitem(node: fx.Node) -> bool:
    return node.op == "call_function" and getattr(node.target, "__name__", "") == "getitem" and not is_sym_node(node)


@dataclass
class Exported:
    """The file, and which node of the joint graph each of its rows stands for."""

    graph: dict
    rows: list = field(default_factory=list)  # the node of each op; None: the boundary; a text: nothing of the graph
    made: list = field(default_factory=list)  # of each op: the nodes whose tensors are its outputs, in their order
    written: list = field(default_factory=list)  # of each op: the nodes whose tensors it changes in place
    read: list = field(default_factory=list)  # of each op: the nodes whose tensors it reads, in their order
    sources: list = field(default_factory=list)  # nodes of tensors that no op makes, by tensor id
    is_random: list = field(default_factory=list)
    id_of: dict = field(default_factory=dict)  # of nodes: their tensors in the file
    num_forward_outputs: int = 0
    inlined: set = field(default_factory=set)  # nodes without a row: the ops that read them compute them again


def _is_random(node: fx.Node, is_fused: bool) -> bool:
    """Inductor's own random ops have seeds: its kernels draw the same numbers again, and others draw new ones."""
    tags = getattr(node.target, "tags", ())
    if "scaled_dot_product" in str(node.target):  # the tag is for its dropout
        names = [a.name for a in node.target._schema.arguments]
        given = dict(zip(names, node.args)) | node.kwargs
        return given.get("dropout_p", 0.0) != 0.0
    if "inductor_rand" in str(node.target):
        return not is_fused
    return torch.Tag.nondeterministic_seeded in tags


def _draws_again(node: fx.Node) -> bool:
    """Whether a random op can run once more, from the state that its generator had."""
    target = node.target
    return isinstance(target, torch._ops.OpOverload) and not target._schema.is_mutable and "inductor" not in str(target)


def _runs_once(node: fx.Node, is_random: bool) -> bool:
    """Ops with effects, or that torch does not describe by a schema of pure tensors."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return True  # higher-order: cond, triton, autocast regions
    if target.namespace in ("_c10d_functional", "c10d_functional", "_dtensor", "fsdp", "c10d"):
        return True
    if target._schema.is_mutable or (is_random and not _draws_again(node)):
        return True
    return must_be_saved(node)


class Exporter:
    def __init__(
        self, joint: fx.GraphModule, num_forward_outputs: int, static: list, costs: Costs, module_bytes: int = 0
    ):
        """`static`: numbers of the primals that are parameters and buffers; `module_bytes`: of all that the module has."""
        self.joint, self.costs, self.module_bytes = joint, costs, module_bytes
        self.buffers, self.tensors, self.nodes = [], [], []
        self.id_of: dict[fx.Node, int] = {}  # a node's tensor
        self.storage_of: dict[int, int] = {}  # fake storages to buffers
        outputs = joint.graph.output_node().args[0]
        self.forward_outputs = [n for n in outputs[:num_forward_outputs] if isinstance(n, fx.Node)]
        self.backward_outputs = [n for n in outputs[num_forward_outputs:] if isinstance(n, fx.Node)]
        placeholders = [n for n in joint.graph.nodes if n.op == "placeholder"]
        primals = [n for n in placeholders if placeholder_kind(n) == "primal"]
        self.primals = primals
        self.static = {primals[i] for i in static if i < len(primals)}
        self.changing = mutated_inputs(joint.graph)
        self.fusion = costs.fusion(joint.graph)
        inlined = set(self.fusion.inlined) if self.fusion else set()
        self.out = Exported({}, id_of=self.id_of, num_forward_outputs=num_forward_outputs, inlined=inlined)
        self.converted: dict[fx.Node, int] = {}  # of sources that Inductor brings into another layout: the copy
        self.channels_last = costs.fused and lays_images_channels_last()
        self.begins_backward = None  # a byte that the boundary makes, for ops that no plan may move before it
        self.tangents = [n for n in placeholders if placeholder_kind(n) == "tangent" and is_tensor(n.meta.get("val"))]

    def buffer(self, val: torch.Tensor, kind: str) -> int:
        try:
            elements = size_hint(val.untyped_storage().nbytes())
        except Exception:
            elements = bytes_of(val)
        self.buffers.append({"bytes": elements, "kind": kind})
        return len(self.buffers) - 1

    def tensor(self, node: fx.Node, val: torch.Tensor, buffer: int) -> int:
        if val.dtype not in _names:
            raise NotPlannable(f"{node.name} has elements of type {val.dtype}")
        self.tensors.append(
            {
                "buf": buffer,
                "dtype": _names[val.dtype],
                "shape": [size_hint(n) for n in val.shape],
                "stride": [size_hint(n) for n in val.stride()],
                "offset": size_hint(val.storage_offset()),
            }
        )
        self.id_of[node] = len(self.tensors) - 1
        return self.id_of[node]

    def source(self, node: fx.Node, kind: str) -> None:
        val = node.meta["val"]
        key = StorageWeakRef(val.untyped_storage())
        buffer = self.storage_of.get(key)
        if buffer is None:
            buffer = self.storage_of[key] = self.buffer(val, kind)
        self.tensor(node, val, buffer)
        self.out.sources.append(node)

    def results(self, node: fx.Node) -> list:
        """The nodes that stand for the tensors that an op makes, and those tensors."""
        val = node.meta.get("val")
        if is_tensor(val):
            return [(node, val)]
        if not isinstance(val, (tuple, list)):
            return []
        items = {}
        for user in node.users:
            if is_getitem(user) and isinstance(user.args[1], int):
                items.setdefault(user.args[1], user)
        made = []
        for i, v in enumerate(val):
            if is_tensor(v):
                made.append((items.get(i, (node, i)), v))
        return made

    def op(self, node: fx.Node) -> None:
        target = node.target
        read = self.fusion.inputs(node) if self.fusion else node.all_input_nodes
        read = [n for n in read if n in self.id_of]
        schema = getattr(target, "_schema", None)
        arguments = {StorageWeakRef(n.meta["val"].untyped_storage()): n for n in read if is_tensor(n.meta.get("val"))}
        writes = []
        if schema is not None and schema.is_mutable:
            for given, a in zip(node.args, schema.arguments):
                if a.alias_info is not None and a.alias_info.is_write and given in self.id_of:
                    writes.append(given)
        made = self.results(node)
        outs, is_view = [], bool(made)
        own, made_bytes = None, 0  # the first buffer of its own, and bytes of all
        for who, val in made:
            key = StorageWeakRef(val.untyped_storage())
            base = arguments.get(key)
            if base is None and schema is not None and len(schema.returns) == 1:
                alias = schema.returns[0].alias_info
                if alias is not None and read:
                    base = next(
                        (n for n, a in zip(node.args, schema.arguments) if a.alias_info and n in self.id_of), None
                    )
            if base is not None:
                buffer = self.tensors[self.id_of[base]]["buf"]
            else:
                is_view = False
                buffer = self.buffer(val, "temp")
                own = buffer if own is None else own
                made_bytes += self.buffers[buffer]["bytes"]
            outs.append(self.tensor(who, val, buffer))
        is_view = is_view and not writes
        moved = float(made_bytes)
        if not is_view:
            for n in read:
                moved += bytes_of(n.meta["val"])
        row = {"name": node.name, "op": str(target), "in": [self.read_as(n, is_view) for n in read], "out": outs}
        is_random = _is_random(node, self.costs.fused)
        dtype = made[0][1].dtype if made else torch.float32
        flops = 0.0
        if is_view:
            row["flags"] = ["view"]
            row["latency_us"] = 0
        else:
            if isinstance(target, torch._ops.OpOverload):
                flops = flops_of(node)
                if torch.Tag.pointwise in target.tags:
                    row["flags"] = ["pointwise"]
            row["latency_us"] = 1e6 * self.costs.seconds(node, flops, moved, dtype)
            row["flops"] = flops
        if writes:
            row["mutates"] = [read.index(n) for n in writes]  # places among what it reads
        # The runtime updates these inputs when the forward half has ended.
        stale = any(n in self.changing for n in read) and not is_view and not is_batch_norm(node)
        if stale or _runs_once(node, is_random):
            row["pins"] = ["run_once"]
        is_loop = self.fusion is not None and node in self.fusion.moved  # which needs no memory beside its results
        if not is_view and not is_loop:
            scratch, held = scratch_of(node, self.channels_last)
            if held > made_bytes + NUMBERS and own is not None:
                self.buffers[own]["bytes"] += held - made_bytes  # a result lies in a larger storage
            if scratch:
                row["out"] = [*row["out"], self.token(scratch)]  # that nothing reads: it lives while the op runs
        if not outs:
            row["out"] = [*row["out"], self.token()]
        if is_random and "pins" not in row:
            row["in"] = [*row["in"], self.random_state(node, made)]
        if self.begins_backward is not None and dtype == torch.bool and not self.costs.keeps_masks():
            row["in"] = [*row["in"], self.begins_backward]
        self.add(row, node, [m[0] for m in made], read, writes, is_random)

    def read_as(self, node: fx.Node, by_view: bool) -> int:
        """The tensor that an op reads of a node."""
        return self.id_of[node] if by_view else self.converted.get(node, self.id_of[node])

    def layouts(self) -> None:
        """Where Inductor fuses, one of its kernels for processors copies images and weights that convolutions read, channels
        last, before all else. All ops read these copies, those of the backward half too."""
        reach = set()  # what reaches a convolution
        for n in reversed(self.joint.graph.nodes):
            if n.target == torch.ops.aten.convolution.default or any(user in reach for user in n.users):
                reach.add(n)
        images = [n for n in self.out.sources if n in reach and n.meta["val"].dim() == 4]
        images = [n for n in images if n.meta["val"].device.type == "cpu" and not lies_channels_last(n.meta["val"])]
        if not images or not self.channels_last:
            return
        self.converted = {n: self.token(bytes_of(n.meta["val"])) for n in images}
        moved = 2.0 * sum(bytes_of(n.meta["val"]) for n in images)
        row = {"name": LAYOUT, "op": LAYOUT, "in": [self.id_of[n] for n in images], "out": [*self.converted.values()]}
        row |= {"latency_us": 1e6 * self.costs.seconds_of_copy(moved), "pins": ["run_once"]}
        self.add(row, LAYOUT, [], [])

    def random_state(self, node: fx.Node, made: list) -> int:
        """The state of a generator before an op draws: kept until the last copy of the op has drawn the same numbers."""
        state = self.token(random_state_of(made[0][1]).numel())
        row = {"name": f"{node.name}_state", "op": RANDOM_STATE, "in": [], "out": [state], "latency_us": 0}
        self.add(row | {"pins": ["run_once"]}, RANDOM_STATE, [], [])
        return state

    def add(self, row: dict, node, made: list, read: list, written: list = (), is_random: bool = False) -> None:
        self.nodes.append(row)
        self.out.is_random.append(is_random)
        self.out.written.append(list(written))
        self.out.rows.append(node)
        self.out.made.append(made)
        self.out.read.append(read)

    def token(self, size: int = 1) -> int:
        """A byte that one op hands to another, so that they stay in order; or scratch of an op."""
        self.buffers.append({"bytes": size, "kind": "temp"})
        self.tensors.append({"buf": len(self.buffers) - 1, "dtype": "u8", "shape": [size]})
        return len(self.tensors) - 1

    def boundary(self) -> None:
        outs = []
        for t in self.tangents:
            outs.append(self.tensor(t, t.meta["val"], self.buffer(t.meta["val"], "temp")))
        if not outs:
            raise NotPlannable("the graph has no tangents, and so no backward half")
        read = list(dict.fromkeys(self.id_of[n] for n in self.forward_outputs if n in self.id_of))
        for row in self.nodes:  # what has effects takes place in this half
            if "run_once" in row.get("pins", ()):
                row["out"] = [*row["out"], self.token()]
                read.append(row["out"][-1])
        if not self.costs.keeps_masks():
            self.begins_backward = self.token()
            outs.append(self.begins_backward)
        row = {"name": BOUNDARY, "op": BOUNDARY, "in": read, "out": outs, "latency_us": 0, "pins": ["run_once"]}
        self.add(row, None, list(self.tangents), [])

    def accumulation(self) -> None:
        """A gradient that lies otherwise than its parameter is copied by autograd when the backward half has ended: they
        are copied one after the other, and all others are there."""
        outputs = self.joint.graph.output_node().args[0][self.out.num_forward_outputs :]
        most = 0
        for gradient, parameter in zip(outputs, self.primals):
            if parameter in self.static and gradient in self.id_of and parameter in self.id_of:
                ours, its = (self.tensors[self.id_of[n]] for n in (gradient, parameter))
                if any(a != b for a, b, n in zip(ours["stride"], its["stride"], its["shape"]) if n > 1):
                    most = max(most, bytes_of(gradient.meta["val"]))
        if most:
            read = list(dict.fromkeys(self.id_of[n] for n in self.backward_outputs if n in self.id_of))
            row = {"name": ACCUMULATION, "op": ACCUMULATION, "in": read, "out": [self.token(most)], "latency_us": 0}
            self.add(row | {"pins": ["run_once"]}, ACCUMULATION, [], [])

    def strides_of_parameters(self) -> list:
        """Of each primal; None where it is no parameter."""
        known = [self.tensors[self.id_of[n]] if n in self.static and n in self.id_of else {} for n in self.primals]
        return [tensor.get("stride") for tensor in known]

    def beside(self) -> None:
        """What is there and no op reads: parameters of other graphs, and numbers of Python as tensors, while ops run."""
        read = sum(b["bytes"] for b in self.buffers if b["kind"] == "param")
        self.buffers.append({"bytes": max(self.module_bytes - read, 0) + NUMBERS, "kind": "param"})
        self.tensors.append({"buf": len(self.buffers) - 1, "dtype": "u8", "shape": [1]})

    def export(self, name: str) -> Exported:
        nodes = list(self.joint.graph.nodes)
        for n in nodes:
            if n.op in ("placeholder", "get_attr") and is_tensor(n.meta.get("val")) and n not in self.tangents:
                self.source(n, "param" if n in self.static else "const" if n.op == "get_attr" else "input")
        self.beside()
        calls = [n for n in nodes if n.op == "call_function" and not is_sym_only(n) and not is_getitem(n)]
        calls = [n for n in calls if n not in self.out.inlined]
        if any(n.op in ("call_module", "call_method") for n in nodes):
            raise NotPlannable("the graph calls a module")
        forward = _forward_nodes(calls, self.forward_outputs, self.tangents, self.costs.fused)
        self.layouts()
        for n in calls:
            if n in forward:
                self.op(n)
        self.boundary()
        for n in calls:
            if n not in forward:
                self.op(n)
        self.accumulation()
        self._keep_order_of_draws()
        seen, outputs = set(range(len(self.out.sources))), []  # what no op makes is there without a plan
        for t in self.tangents:  # the gradient of a loss, which the call of backward() holds
            if self.buffers[self.tensors[self.id_of[t]]["buf"]]["bytes"] <= 512:
                seen.add(self.id_of[t])
                outputs.append({"tensor": self.id_of[t], "kind": "output"})
        for kind, of in (("output", self.forward_outputs), ("grad", self.backward_outputs)):
            for n in of:
                if n in self.id_of and self.id_of[n] not in seen:
                    seen.add(self.id_of[n])
                    outputs.append({"tensor": self.id_of[n], "kind": kind})
        self.out.graph = {
            "format": "neap-graph", "version": 1, "name": name, "buffers": self.buffers, "tensors": self.tensors,
            "nodes": self.nodes, "outputs": outputs,
        }  # fmt: skip
        return self.out

    def _keep_order_of_draws(self) -> None:
        last, has_state = None, False
        for i, row in enumerate(self.nodes):
            if last is not None and (row["op"] == RANDOM_STATE or (self.out.is_random[i] and not has_state)):
                row["in"] = [*row["in"], last]
            has_state = row["op"] == RANDOM_STATE
            if self.out.is_random[i]:
                last = self.token()
                row["out"] = [*row["out"], last]


def _forward_nodes(calls: list, outputs: list, tangents: list, is_fused: bool) -> set:
    """The ops that the results of the forward half need, and those with effects there."""
    late = set(tangents)
    for n in calls:
        if any(i in late for i in n.all_input_nodes):
            late.add(n)
    needed = set()
    open_nodes = list(outputs)
    for n in calls:
        is_backward = n in late or n.meta.get("partitioner_tag") in ("is_backward", "must_be_in_backward")
        is_random = _is_random(n, is_fused)
        if not is_backward and (is_random or _runs_once(n, is_random)):
            open_nodes.append(n)
    while open_nodes:
        n = open_nodes.pop()
        if n not in needed:
            needed.add(n)
            open_nodes.extend(n.all_input_nodes)
    return needed
