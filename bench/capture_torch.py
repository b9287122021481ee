"""PyTorch's side of bench/capture.cpp: the same eight programs on the CPU, eager and with torch.compile.

    python capture_torch.py [--only NAME] [--rounds 7] [--threads 1]

One CSV row a program and way: program, way (torch: eager; torch-compile: the whole step compiled; torch-compile-model: the
network alone compiled, the step around it eager), graphs (that Dynamo has compiled), breaks (places where Dynamo has cut
the program), ms (a call: median of rounds of the mean over one period of the inputs; rounds end after 10 s), peak_bytes
(as the profiler sees it within one period, with weights, states and inputs).
Results of the compiled ways are compared with eager ones, to rounding.
"""
import argparse, io, math, random, sys, time, warnings
import torch, torch.nn as nn, torch.nn.functional as F

warnings.filterwarnings("ignore")
BATCH, WIDTH, HIDDEN, INPUTS, WARM = 256, 32, 64, 12, 48


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(6))
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return self.head(x)


class SequenceNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x):
        h = torch.zeros(BATCH, HIDDEN)
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
        return self.head(h)


def distance(a, b):
    d = a - b
    return (d * d).mean()


class Program:
    def __init__(self, net=Network):
        torch.manual_seed(1)
        self.net, self.steps = net(), 0
        self.weights = list(self.net.parameters())
        self.velocity = [torch.zeros_like(w) for w in self.weights]

    def tensors(self):
        return self.weights + self.velocity

    def update(self, gradients, rate):
        with torch.no_grad():
            for w, v, g in zip(self.weights, self.velocity, gradients):
                v.mul_(0.9).add_(g)
                w.sub_(v * rate)

    def gradients(self, loss):
        return torch.autograd.grad(loss, self.weights, allow_unused=True, materialize_grads=True)


class BranchOnState(Program):
    name = "branch_on_state"

    def __init__(self):
        super().__init__()
        self.averaged = [torch.zeros_like(w) for w in self.weights]

    def tensors(self):
        return super().tensors() + self.averaged

    def step(self, x, y):
        loss = distance(self.net(x), y)
        self.update(self.gradients(loss), min(self.steps / 200 + 0.005, 0.05))
        self.steps += 1
        if self.steps % 4 == 0:
            with torch.no_grad():
                for a, w in zip(self.averaged, self.weights):
                    a.mul_(0.99).add_(w, alpha=0.01)
        return loss.detach()


class EarlyExit(Program):
    name = "early_exit"

    def step(self, x, y):
        first = 0
        for i in range(8):
            loss = distance(self.net(x), y)
            self.update(self.gradients(loss), 0.02)
            self.steps += 1
            if i == 0:
                first = loss.item()
            elif loss.item() < first * 0.7:
                break
        return loss.detach()


class History(Program):
    name = "history"

    def __init__(self):
        super().__init__()
        self.past = []

    def step(self, x, y):
        predicted = self.net(x)
        loss = distance(predicted, y)
        if self.past:
            total = self.past[0]
            for p in self.past[1:]:
                total = total + p
            loss = loss + distance(predicted, total / len(self.past)) * 0.1
        self.past.append(predicted.detach())
        if len(self.past) > 4:
            self.past.pop(0)
        self.update(self.gradients(loss), 0.02)
        return loss.detach()


class Features(Program):
    name = "features"

    def __init__(self):
        super().__init__()
        self.means = {}

    def step(self, x, y):
        found, h = {"input": x}, x
        for i, b in enumerate(self.net.blocks):
            h = b(h)
            found[f"block {i}"] = h
        loss = distance(self.net.head(h), y)
        for name in sorted(found):
            if name == "input":
                continue
            now = found[name].mean(0)
            if name in self.means:
                before = self.means[name]
                loss = loss + distance(now, before) * 0.1
                self.means[name] = before * 0.9 + now.detach() * 0.1
            else:
                self.means[name] = now.detach()
        self.update(self.gradients(loss), 0.02)
        return loss.detach()


class RandomDepth(Program):
    name = "random_depth"

    def __init__(self):
        super().__init__()
        self.random = random.Random(7)

    def step(self, x, y):
        h = x
        for group in range(3):
            if self.random.random() < 0.3:
                continue
            for i in range(2):
                h = self.net.blocks[2 * group + i](h)
        loss = distance(self.net.head(h), y)
        self.update(self.gradients(loss), 0.02)
        return loss.detach()


class Recurrent(Program):
    name = "recurrent"

    def __init__(self):
        super().__init__(SequenceNetwork)

    def step(self, x, y):
        loss = distance(self.net(x), y)
        self.update(self.gradients(loss), 0.02)
        return loss.detach()


class LossScaling(Program):
    name = "loss_scaling"

    def __init__(self):
        super().__init__()
        self.scale, self.good, self.skipped = 1024.0, 0, 0

    def step(self, x, y):
        loss = distance(self.net(x), y)
        g = self.gradients(loss * self.scale)
        size = sum((each * each).sum() for each in g)
        if not math.isfinite(size.item()):
            self.scale, self.good = self.scale * 0.5, 0
            self.skipped += 1
            return loss.detach()
        self.update([each / self.scale for each in g], 0.02)
        self.good += 1
        if self.good >= 20:
            self.scale, self.good = self.scale * 2, 0
        return loss.detach()


class Logging(Program):
    name = "logging"

    def __init__(self):
        super().__init__()
        self.log = io.StringIO()

    def step(self, x, y):
        loss = distance(self.net(x), y)
        g = self.gradients(loss)
        self.steps += 1
        if self.steps % 10 == 0:
            print(f"{self.steps}: {loss.item():.9g} {(g[0] * g[0]).sum().item():.9g}", file=self.log)
        self.update(g, 0.02)
        return loss.detach()


PROGRAMS = [BranchOnState, EarlyExit, History, Features, RandomDepth, Recurrent, LossScaling, Logging]


def samples(name):
    g = torch.Generator().manual_seed(5)
    rows = []
    for i in range(INPUTS):
        sequence = name == "recurrent"
        x = torch.randn(*((6 + 4 * (i % 3), BATCH, WIDTH) if sequence else (BATCH, WIDTH)), generator=g)
        y = torch.tanh(x[-1] if sequence else x)
        if name == "loss_scaling" and i == 5:
            x = x * 1e18
        rows.append((x, y))
    return rows


def peak_bytes(run, resident):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as p:
        run()
    live = peak = 0
    for e in p.profiler.kineto_results.events():
        if e.name() == "[memory]":
            live += e.nbytes()
            peak = max(peak, live)
    return resident + peak


class Way:
    """A program run in one way; graphs and breaks are those of its warm-up."""

    def __init__(self, kind, way, rows, expected):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        self.program, self.way, self.rows, self.ms = kind(), way, rows, []
        self.step = self.program.step
        if way == "torch-compile":
            self.step = torch.compile(self.program.step)
        if way == "torch-compile-model":
            self.program.net.compile() if kind is not Features and kind is not RandomDepth else [
                b.compile() for b in self.program.net.blocks
            ]
        self.results = [self.step(*rows[i % INPUTS]).item() for i in range(WARM)]
        counters = torch._dynamo.utils.counters
        self.graphs, self.breaks = counters["stats"].get("unique_graphs", 0), sum(counters["graph_break"].values())
        self.note = ""
        if expected:
            for i, (a, b) in enumerate(zip(expected, self.results)):
                if math.isfinite(a) and abs(a - b) > 1e-2 * max(abs(a), 1e-3):
                    self.note = f"call {i}: {b} instead of {a}"
                    break

    def period(self):
        for row in self.rows:
            self.step(*row)

    def round(self):
        begin = time.perf_counter()
        self.period()
        self.ms.append(1e3 * (time.perf_counter() - begin) / INPUTS)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--only", default="")
    a.add_argument("--rounds", type=int, default=7)
    a.add_argument("--threads", type=int, default=1)
    a = a.parse_args()
    torch.set_num_threads(a.threads)
    print("program,way,graphs,breaks,ms,peak_bytes")
    for kind in PROGRAMS:
        if a.only and a.only != kind.name:
            continue
        rows, expected = samples(kind.name), None
        for way in ("torch", "torch-compile", "torch-compile-model"):
            w = Way(kind, way, rows, expected)
            expected = expected or w.results
            if w.note:
                print(f"{kind.name}, {way}: another result than eagerly, {w.note}", file=sys.stderr)
            for _ in range(a.rounds):
                w.round()
                if sum(w.ms) * INPUTS > 10000:
                    break
            resident = sum(t.numel() * t.element_size() for t in w.program.tensors() + [t for row in rows for t in row])
            peak = peak_bytes(w.period, resident)
            print(f"{kind.name},{way},{w.graphs},{w.breaks},{sorted(w.ms)[len(w.ms) // 2]:.4f},{peak}", flush=True)


main()
