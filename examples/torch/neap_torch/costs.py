"""Seconds of an op of a joint graph: a roofline of a device, by flops and bytes moved, or measured calls."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch.utils._pytree import tree_map

from .fusion import Fusion
from .nodes import size_hint, tensors_of, values_of
from .torch_private import flop_registry, without_modes


@dataclass(frozen=True)
class Device:
    """Floating-point operations a second by element type, bytes a second, and seconds to begin an op."""

    name: str
    flops: dict
    bandwidth: float
    launch: float

    def seconds(self, flops: float, moved: float, dtype: torch.dtype) -> float:
        rate = self.flops.get(dtype, self.flops[torch.float32])
        return max(flops / rate, moved / self.bandwidth) + self.launch


def _gpu(name: str, f32: float, low: float, bandwidth: float, f64: float) -> Device:
    rates = {torch.float32: f32, torch.float64: f64, torch.bfloat16: low, torch.float16: low}
    return Device(name, rates, bandwidth, 3e-6)


DEVICES = {
    "h100": _gpu("h100", 5.0e13, 8.0e14, 3.0e12, 5.0e13),
    "h200": _gpu("h200", 5.0e13, 8.0e14, 4.4e12, 5.0e13),
    "a100": _gpu("a100", 1.9e13, 2.5e14, 1.6e12, 9.7e12),
    "rtx4090": _gpu("rtx4090", 7.0e13, 1.5e14, 9.0e11, 1.3e12),
}


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "neap"


@contextlib.contextmanager
def _alone(devices: list):
    """Partitioners run beside fake tensors, in the midst of a user's program: its next random numbers stay the same."""
    with without_modes(), torch.random.fork_rng(devices):
        yield


def _devices(node: torch.fx.Node) -> list:
    return list({t.device for t in tensors_of(node) if t.device.type == "cuda"})


def _least_seconds(run, times: int = 5, enough: float = 0.01) -> float:
    """The least of so many runs, and of more until they have taken `enough` seconds: beside other programs a short run
    is soon one that nothing interrupts."""
    # Of this thread where torch has one: others of the process, as Inductor's, do not count then.
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    run()
    least, taken = float("inf"), 0.0
    while times > 0 or taken < enough:
        begin = clock()
        run()
        seconds = clock() - begin
        least, taken, times = min(least, seconds), taken + seconds, times - 1
    return least


@functools.cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return "cpu"


def this_cpu() -> Device:
    """The processor that this runs on, as many threads as torch has: measured once, and kept in the cache folder."""
    name = f"{_processor()}, {torch.get_num_threads()} threads"
    file = cache_folder() / "torch-cpu.json"
    try:
        known = json.loads(file.read_text())
    except (OSError, ValueError):
        known = {}
    if name not in known:
        with torch.no_grad(), _alone([]):
            a, b = torch.rand(384, 384), torch.rand(1 << 23)
            product = _least_seconds(lambda: a @ a)
            double = a.double()
            product64 = _least_seconds(lambda: double @ double)
            low = a.bfloat16()
            product_low = _least_seconds(lambda: low @ low)
            c = torch.empty_like(b)
            copied = _least_seconds(lambda: c.copy_(b))
            small = torch.rand(8)
            launch = _least_seconds(lambda: [small + small for _ in range(200)]) / 200
        work = 2 * 384**3
        known[name] = {
            "f32": work / product, "f64": work / product64, "low": work / product_low,
            "bandwidth": 2 * b.numel() * 4 / copied, "launch": launch,
        }  # fmt: skip
        _write(file, known)
    k = known[name]
    rates = {torch.float32: k["f32"], torch.float64: k["f64"], torch.bfloat16: k["low"], torch.float16: k["low"]}
    return Device("cpu", rates, k["bandwidth"], k["launch"])


def _write(file: Path, content: dict) -> None:
    """Whole or not at all; a cache that cannot be written is none."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(content))
        new.replace(file)
    except OSError:
        pass


def device_of(name: str, example: torch.Tensor | None) -> Device:
    """One by its name, or "device": that of a tensor."""
    if name in DEVICES:
        return DEVICES[name]
    if name == "cpu" or example is None or example.device.type == "cpu":
        return this_cpu()
    title = torch.cuda.get_device_name(example.device).lower().replace(" ", "")
    return next((d for key, d in DEVICES.items() if key in title), DEVICES["h100"])


def flops_of(node: torch.fx.Node) -> float:
    """Of matrix products and convolutions, as torch's own counter counts them; 0 of everything else."""
    count = flop_registry.get(getattr(node.target, "overloadpacket", None))
    if count is None:
        return 0.0

    def sizes(x):  # numbers in place of symbols: a question about a symbol would bind it
        if isinstance(x, torch.Tensor):
            return torch.Size([size_hint(n) for n in x.shape])
        return size_hint(x) if isinstance(x, torch.SymInt) else x

    args, kwargs, out = tree_map(sizes, (values_of(node.args), values_of(node.kwargs), node.meta.get("val")))
    try:
        return float(count(*args, **kwargs, out_val=out))
    except Exception:  # a formula that does not know these arguments
        return 0.0


@dataclass
class Costs:
    """`source`: "device", "measure", the name of a device, or a file of measured calls, as "measure" keeps them. Where
    ops are `fused` by Inductor, a loop costs what it moves of its kernel's ends, and its arithmetic."""

    source: str = "device"
    fused: bool = False
    table: dict = field(default_factory=dict)  # of a file
    _kept: dict = field(default_factory=dict)  # measured calls, by device
    _device: Device | None = None
    _measured_anew: bool = False
    _fusion: Fusion | None = None
    _graph: torch.fx.Graph | None = None

    @staticmethod
    def of(source: str, fused: bool = False) -> Costs:
        costs = Costs(source, fused)
        if source not in DEVICES and source not in ("cpu", "device", "measure"):
            try:
                costs.table = json.loads(Path(source).read_text())
            except (OSError, ValueError) as why:
                raise ValueError(
                    f"neap_torch: costs are 'device', 'measure', a file or one of cpu, {', '.join(DEVICES)}, not {source!r}: {why}"
                ) from None
        if source not in DEVICES and not torch.cuda.is_available():
            this_cpu()  # now, before Inductor's own processes begin
        return costs

    def begin(self, example: torch.Tensor | None) -> None:
        self._device = device_of(self.source if self.source in (*DEVICES, "cpu") else "device", example)
        self._graph = None
        try:
            self._kept = json.loads(self._file().read_text())
        except (OSError, ValueError):
            self._kept = {}

    def end(self) -> None:
        self._graph = self._fusion = None  # torch copies its options, and what they hold
        if self._measured_anew:
            _write(self._file(), self._kept)
            self._measured_anew = False

    def fusion(self, graph: torch.fx.Graph) -> Fusion | None:
        """What Inductor fuses of a graph; None where nothing is fused."""
        if self.fused and self._graph is not graph:
            self._graph, self._fusion = graph, Fusion(graph)
        return self._fusion if self.fused else None

    def seconds(self, node: torch.fx.Node, flops: float, moved: float, dtype: torch.dtype) -> float:
        """Of a loop: with the inlined ops that it computes."""
        fusion = self.fusion(node.graph)
        if fusion is not None and node in fusion.moved:
            arithmetic = sum(self._seconds_of_arithmetic(n) for n in fusion.computed_by(node))
            launch = self._device.launch if node in fusion.ends else 0.0
            return fusion.moved[node] / self._device.bandwidth + arithmetic + launch
        seconds = None
        if self.table:
            seconds = self.table.get(self.key(node))
        elif self.source == "measure":
            seconds = self._measured(self.key(node), lambda: _measured(node))
        return self._device.seconds(flops, moved, dtype) if seconds is None else seconds

    def seconds_of_copy(self, moved: float) -> float:
        return self._device.seconds(0.0, moved, torch.float32)

    def keeps_masks(self) -> bool:
        """Whether a mask can be written and read for what its bytes cost. Inductor's loops for processors do so element
        by element, for 15 and 5 ns: 30 times what a comparison costs that is made again (AVX-512, torch 2.15)."""
        return not (self.fused and self._device.name == "cpu")

    def _seconds_of_arithmetic(self, node: torch.fx.Node) -> float:
        """Of a loop whose tensors are in a processor's first cache."""
        if self._device.name != "cpu" or torch.Tag.pointwise not in getattr(node.target, "tags", ()):
            return 0.0
        key = f"{_processor()}:in cache:{node.target}:{_types(node)}"
        each = self._measured(key, lambda: _measured_in_cache(node)) or 0.0
        val = node.meta["val"]
        return each * size_hint(val.numel()) / torch.get_num_threads() if torch.is_tensor(val) else 0.0

    def _measured(self, key: str, measure) -> float | None:
        if key not in self._kept:
            self._kept[key] = measure()
            self._measured_anew = True
        return self._kept[key]

    def _file(self) -> Path:
        return cache_folder() / "torch-ops.json"

    def key(self, node: torch.fx.Node) -> str:
        def text(a):
            if isinstance(a, torch.Tensor):
                return f"{a.dtype}{[size_hint(n) for n in a.shape]}{[size_hint(n) for n in a.stride()]}"
            return str(a)

        args = tree_map(text, values_of((node.args, node.kwargs)))
        name = _processor() if self._device.name == "cpu" else self._device.name
        return f"{name}:{torch.get_num_threads()}:{node.target}:{args}"


def _types(node: torch.fx.Node) -> str:
    return str(tree_map(lambda a: a.dtype if isinstance(a, torch.Tensor) else a, values_of(node.args)))


def _seconds_of(node: torch.fx.Node, made, times: int = 1) -> float | None:
    """The least of runs of so many calls each; None where a call with made-up tensors fails."""

    def argument(a):
        if not isinstance(a, torch.Tensor):
            return size_hint(a) if isinstance(a, torch.SymInt) else a
        t = made(a)
        return t.uniform_(0.1, 0.9) if a.dtype.is_floating_point else t.zero_()

    try:
        with torch.no_grad(), _alone(_devices(node)):
            args, kwargs = tree_map(argument, values_of((node.args, node.kwargs)))

            def run():
                for _ in range(times):
                    node.target(*args, **kwargs)

            return _least_seconds(run) / times
    except Exception:
        return None


def _measured_in_cache(node: torch.fx.Node, elements: int = 2048) -> float | None:
    """Seconds of one more element of a pointwise op whose tensors are in the first cache: without its beginning, and
    without memory."""

    def seconds(n: int) -> float | None:
        return _seconds_of(node, lambda a: torch.empty(n, dtype=a.dtype, device=a.device), times=20)

    few, many = seconds(elements // 8), seconds(elements)
    return None if few is None or many is None else max(many - few, 0.0) / (elements - elements // 8)


def _measured(node: torch.fx.Node) -> float | None:
    def made(a):
        sizes, strides = [size_hint(n) for n in a.shape], [size_hint(n) for n in a.stride()]
        return torch.empty_strided(sizes, strides, dtype=a.dtype, device=a.device)

    return _seconds_of(node, made)
