"""neap_torch beside the planners of PyTorch, on the processor or (with --fake) on shapes alone.

    NEAP_EXECUTABLE=build/dev/bin/neap PYTHON bench/torch_door.py [--models gpt2,bert] [--backend aten|inductor|lite]
        [--device cpu|cuda] [--rounds 7] [--costs measure] [--budgets 0.75,0.5] [--solvers dp,greedy,ilp] [--fake]

PYTHON has torch, torchvision, transformers and scipy. Each model is planned by PyTorch with each budget and solver of
its memory budget. neap then has the measured peak of each of these rows as its limit. One CSV row each: model, backend,
method, limit, planned_peak, measured_peak (bytes, parameters and inputs counted), saved (bytes between the halves),
latency (by the costs, beside no recomputation), ms (of the processor, a step: the minimum of --rounds, methods in turn,
two steps each), planning_s (processor time of export, search and rewriting), result: ok, what is wrong, or why
PyTorch's plan fails.
Gradients of each row are those of the first, without recomputation: equal, or near under Inductor. Limits hold exactly,
or within 2 % on a GPU.
Exit status 0: all rows are ok; 2: there is no torch, or no GPU for it.
"""

from __future__ import annotations

import argparse
import copy
import gc
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError:
    print("there is no torch", file=sys.stderr)
    sys.exit(2)

here = Path(__file__).resolve().parent
package = here.parent / "examples" / "torch"
if not package.exists():
    package = here / "torch"  # of a folder of bench/gpu/run.sh
sys.path[:0] = [str(package), str(package / "tests")]
import models as small  # noqa: E402
import neap_torch  # noqa: E402
from neap_torch.costs import Costs  # noqa: E402
from neap_torch.export import Exporter  # noqa: E402
from neap_torch.measure import peak_of  # noqa: E402
from neap_torch.nodes import is_tensor, tensors_of  # noqa: E402
from neap_torch.torch_private import (  # noqa: E402
    CustomPartitionerFn,
    aot_autograd,
    boxed_nop,
    default_partition,
    functorch_config,
    fx_graph_cse,
    lite_options,
    min_cut_rematerialization_partition,
    planned_options,
)

BUDGETS = (0.75, 0.5, 0.25, 0.1, 0.05)
SOLVERS = ("dp", "greedy", "ilp")


class Language(nn.Module):
    """A net of transformers, and the loss of the next word beside it: its own breaks the graph."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, ids):
        logits = self.net(input_ids=ids, use_cache=False).logits
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


class Unet(nn.Module):
    """Three levels, batch norm, joined by concatenation."""

    def __init__(self, c=16):
        super().__init__()

        def pair(i, o):
            return nn.Sequential(
                nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(),
                nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(),
            )  # fmt: skip

        self.down = nn.ModuleList([pair(3, c), pair(c, 2 * c), pair(2 * c, 4 * c)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(4 * c, 2 * c, 2, 2), nn.ConvTranspose2d(2 * c, c, 2, 2)])
        self.join = nn.ModuleList([pair(4 * c, 2 * c), pair(2 * c, c)])
        self.head = nn.Conv2d(c, 2, 1)

    def forward(self, x, labels):
        a = self.down[0](x)
        b = self.down[1](F.max_pool2d(a, 2))
        x = self.down[2](F.max_pool2d(b, 2))
        for up, join, kept in zip(self.up, self.join, (b, a)):
            x = join(torch.cat([up(x), kept], 1))
        return F.cross_entropy(self.head(x), labels)


def words(b, t, n):
    return (torch.randint(0, n, (b, t)),)


def gpt2(layers=4, d=256, heads=4, b=8, t=128, vocabulary=1024):
    import transformers

    config = transformers.GPT2Config(
        vocab_size=vocabulary, n_embd=d, n_layer=layers, n_head=heads, n_positions=max(t, 128), resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return Language(transformers.GPT2LMHeadModel(config)), words(b, t, vocabulary)


def bert():
    import transformers

    config = transformers.BertConfig(
        vocab_size=1024, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return small.Words(transformers.BertForMaskedLM(config)), words(8, 128, 1024)


def llama(layers=4, d=256, heads=4, b=8, t=128, vocabulary=1024, hidden=688, kv=2):
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=vocabulary, hidden_size=d, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=kv, intermediate_size=hidden, max_position_embeddings=max(t, 128),
    )  # fmt: skip
    return Language(transformers.LlamaForCausalLM(config)), words(b, t, vocabulary)


def vit():
    import torchvision

    net = torchvision.models.VisionTransformer(
        image_size=64, patch_size=8, num_layers=6, num_heads=4, hidden_dim=192, mlp_dim=768, num_classes=10
    )
    return small.Classes(net), (torch.randn(16, 3, 64, 64), torch.randint(0, 10, (16,)))


def resnet18():
    import torchvision

    return small.Classes(torchvision.models.resnet18(num_classes=10)), (
        torch.randn(32, 3, 64, 64),
        torch.randint(0, 10, (32,)),
    )


def unet():
    return Unet(), (torch.randn(8, 3, 64, 64), torch.randint(0, 2, (8, 64, 64)))


def nanogpt():
    return small.Gpt(d=256, layers=4, words=1024, length=128), small.words(0, 8, 128, 1024)


MODELS = {
    "gpt2": gpt2,
    "bert": bert,
    "vit": vit,
    "resnet18": resnet18,
    "nanogpt": nanogpt,
    "unet": unet,
    "llama": llama,
}


def gpt_124m():
    return small.Gpt(d=768, layers=12, words=50257, length=1024, heads=12), small.words(0, 8, 1024, 50257)


def gpt_toy():
    return small.Gpt(), small.words(0)


ONES = {"gpt-124m": gpt_124m, "gpt-toy": gpt_toy}  # that are named alone
FAKE = {
    "gpt2-124m": lambda: gpt2(12, 768, 12, 8, 1024, 50257),
    "llama-1b": lambda: llama(16, 2048, 32, 4, 2048, 128256, 8192, 8),
}


@dataclass
class Row:
    method: str
    limit: int = 0
    planned_peak: int = 0
    measured_peak: int = 0
    saved: int = 0
    latency: float = 0
    ms: float = 0
    planning_s: float = 0
    result: str = "ok"


class Torch(CustomPartitionerFn):
    """A partitioner of PyTorch, whose halves are priced as neap prices its own."""

    def __init__(self, options, budget=None, solver=None):
        self.costs = Costs.of(options.costs, options.backend == "inductor")
        self.budget, self.solver = budget, solver
        self.latency, self.saved, self.seconds, self.peak = 0.0, 0, 0.0, 0

    def __call__(self, gm, joint_inputs, *, num_fwd_outputs, static_lifetime_input_indices=None, **_):
        gm.graph.eliminate_dead_code()
        gm.graph = fx_graph_cse(gm.graph)
        example = next(n.meta["val"] for n in gm.graph.nodes if is_tensor(n.meta.get("val")))
        self.costs.begin(example)
        exported = Exporter(gm, num_fwd_outputs, static_lifetime_input_indices or [], self.costs).export("costs")
        self.costs.end()
        price = {
            n.name: row["latency_us"] for n, row in zip(exported.rows, exported.graph["nodes"]) if hasattr(n, "name")
        }
        once = sum(price.values())
        begin = time.process_time()
        given = {"num_fwd_outputs": num_fwd_outputs, "static_lifetime_input_indices": static_lifetime_input_indices}
        if self.budget is None:
            halves = default_partition(gm, joint_inputs, **given)
        else:
            with functorch_config.patch(
                activation_memory_budget=self.budget, activation_memory_budget_solver=self.solver
            ):
                halves = min_cut_rematerialization_partition(gm, joint_inputs, **given)
        self.seconds = time.process_time() - begin
        calls = [n for half in halves for n in half.graph.nodes if n.op == "call_function"]
        self.latency = sum(price.get(n.name, 0.0) for n in calls) / once
        saved = halves[0].graph.output_node().args[0][num_fwd_outputs:]
        storages = {}
        for n in saved:
            if isinstance(n, torch.fx.Node) and n.op != "placeholder" and is_tensor(n.meta.get("val")):
                s = n.meta["val"].untyped_storage()
                storages[s._cdata] = s.nbytes()
        self.saved = sum(storages.values())
        self.peak = replayed_peak(*halves)
        return halves

    def uuid(self):
        return None


def replayed_peak(forward, backward):
    """Bytes of both halves as they stand: each storage from the op that makes it to the last that reads it."""

    def storages(node):
        return {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors_of(node)}

    live, peak, resident = {}, 0, set()
    for half in (forward, backward):
        nodes = list(half.graph.nodes)
        last = {}
        for n in nodes:
            for read in (n, *n.all_input_nodes):
                last.update(dict.fromkeys(storages(read), n))
        output = nodes[-1]
        kept = {s for n in output.all_input_nodes for s in storages(n)} if half is forward else set()
        for n in nodes:
            live |= storages(n)
            if half is forward and n.op == "placeholder":
                resident |= set(storages(n))
            peak = max(peak, sum(live.values())) if n.op == "call_function" else peak
            for s in [s for s in live if last.get(s) is n and n is not output and s not in kept | resident]:
                del live[s]
    return peak


def step_of(model):
    """Calls the model; with code of its own, so that Dynamo keeps no list of the graphs of other methods for it."""
    scope = {"model": model}
    exec(compile("def step(*batch):\n    return model(*batch)", "step", "exec"), scope)
    return scope["step"]


def compiled_by_torch(model, partitioner, backend):
    if backend == "aten":
        return torch.compile(
            step_of(model), backend=aot_autograd(fw_compiler=boxed_nop, partition_fn=partitioner), fullgraph=True
        )
    options = planned_options(partitioner) | (lite_options() if backend == "lite" else {})
    return torch.compile(step_of(model), options=options, fullgraph=True)


class Case:
    """A model with one way to compile it: its step, and what the step leaves."""

    def __init__(self, row: Row, model, compiled, batch):
        self.row, self.model, self.compiled, self.batch = row, model, compiled, batch
        self.least = float("inf")

    def run(self):
        self.compiled(*self.batch).backward()

    def clear(self):
        for p in self.model.parameters():
            p.grad = None

    def measure(self):
        resident = [*self.model.parameters(), *self.model.buffers(), *self.batch]
        if self.batch[0].is_cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            self.run()
            torch.cuda.synchronize()
            storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in resident}
            self.row.measured_peak = sum(storages.values()) + torch.cuda.max_memory_allocated() - before
        else:
            self.row.measured_peak = peak_of(self.run, resident)

    def time(self):
        on_device = self.batch[0].is_cuda
        begin = time.perf_counter() if on_device else time.process_time()
        self.run()
        if on_device:
            torch.cuda.synchronize()
        self.least = min(self.least, (time.perf_counter() if on_device else time.process_time()) - begin)
        self.clear()


def is_near(a, b, exact):
    if a is None or b is None:
        return a is b
    return torch.equal(a, b) if exact else torch.allclose(a, b, rtol=1e-3, atol=1e-5)


def bench(name, make, options):
    torch.manual_seed(0)
    model, batch = make()
    model, batch = model.to(options.device), tuple(t.to(options.device) for t in batch)
    initial = copy.deepcopy(model.state_dict())
    right = []
    exact = options.backend != "inductor"
    cases, rows = [], []

    def add(row, compiled):
        model.load_state_dict(initial)
        case = Case(row, model, compiled, batch)
        case.clear()
        try:
            case.run()
        except RuntimeError as why:
            if row.limit:
                raise
            row.result = "fails: " + str(why).split(":")[0].replace(",", ";")
            case.clear()
            rows.append(row)
            return
        if not rows:
            right[:] = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
        if not all(is_near(a, p.grad, exact) for a, p in zip(right, model.parameters())):
            row.result = "gradients are not those without recomputation"
        case.clear()
        case.measure()
        case.clear()
        if row.limit and row.measured_peak > row.limit * (1.02 if batch[0].is_cuda else 1):
            row.result = "above the limit"
        cases.append(case)
        rows.append(row)

    settings = [(None, None)] + [(b, s) for b in options.budgets for s in options.solvers]
    for budget, solver in settings:
        by = Torch(options, budget, solver)
        row = Row("no recomputation" if budget is None else f"budget {budget} {solver}")
        add(row, compiled_by_torch(model, by, options.backend))
        row.latency, row.saved, row.planning_s = by.latency, by.saved, by.seconds
        row.planned_peak = by.peak if options.backend != "inductor" else row.measured_peak
    peaks = {r.measured_peak or r.planned_peak for r in rows[1:]} - {0}  # 0: a row that failed before it was planned
    for limit in sorted(peaks, reverse=True):
        row = Row("neap", limit)
        compiled = neap_torch.compile(
            step_of(model), limit, backend=options.backend, costs=options.costs, on_infeasible="least", fullgraph=True
        )
        add(row, compiled)
        g = compiled.neap_report.graphs[-1]
        row.planned_peak, row.saved, row.planning_s = (
            g.estimated_bytes or g.peak_bytes,
            g.saved_bytes,
            g.planning_seconds,
        )
        row.latency = g.latency_ratio
    for _ in range(options.rounds):
        for c in cases:
            c.time()  # takes pages anew that the step of another method gave back
            c.time()
    for c in cases:
        c.row.ms = 1e3 * c.least
    torch._dynamo.reset()
    return show(name, options, rows)


def bench_fake(name, make, options):
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True):
        model, batch = make()
        rows = []
        by = Torch(options)
        compiled_by_torch(model, by, "aten")(*batch)
        rows.append(Row("no recomputation", 0, by.peak, 0, by.saved, by.latency, planning_s=by.seconds))
        for budget in options.budgets:
            for solver in options.solvers:
                torch._dynamo.reset()
                by = Torch(options, budget, solver)
                compiled_by_torch(model, by, "aten")(*batch)
                rows.append(Row(f"budget {budget} {solver}", 0, by.peak, 0, by.saved, by.latency))
                rows[-1].planning_s = by.seconds
        peaks = sorted({r.planned_peak for r in rows[1:]}, reverse=True)
        for limit in (*peaks, 0.8, 0.6, 0.4, 0.35):
            torch._dynamo.reset()
            compiled = neap_torch.compile(
                model, limit, backend="aten", costs=options.costs, on_infeasible="least", fullgraph=True
            )
            compiled(*batch)
            g = compiled.neap_report.graphs[-1]
            method = f"neap {limit}" if isinstance(limit, float) else "neap"
            rows.append(Row(method, g.limit_bytes, g.peak_bytes, 0, g.saved_bytes, g.latency_ratio))
            rows[-1].planning_s = g.planning_seconds
    return show(name, options, rows)


def show(name, options, rows):
    for r in rows:
        print(
            f'{name},{options.backend},"{r.method}",{r.limit},{r.planned_peak},{r.measured_peak},{r.saved},'
            f"{r.latency:.4f},{r.ms:.1f},{r.planning_s:.2f},{r.result}",
            flush=True,
        )
    return all(r.result == "ok" or r.result.startswith("fails") for r in rows)


def main():
    given = argparse.ArgumentParser()
    given.add_argument("--models", default="")
    given.add_argument("--backend", default="aten", choices=("aten", "lite", "inductor"))
    given.add_argument("--device", default="cpu")
    given.add_argument("--rounds", type=int, default=7)
    given.add_argument("--costs", default="")
    given.add_argument("--budgets", default=",".join(map(str, BUDGETS)))
    given.add_argument("--solvers", default=",".join(SOLVERS))
    given.add_argument(
        "--fake", action="store_true", help="GPT-2 of 124M and Llama of 1B, shapes alone, costs of an H100"
    )
    options = given.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("torch finds no GPU", file=sys.stderr)
        sys.exit(2)
    options.solvers = options.solvers.split(",")
    options.budgets = [float(b) for b in options.budgets.split(",")]
    options.costs = options.costs or ("h100" if options.fake else "measure" if options.device == "cpu" else "device")
    torch.set_num_threads(1)
    warnings.simplefilter("error", neap_torch.NeapWarning)
    print("model,backend,method,limit,planned_peak,measured_peak,saved,latency,ms,planning_s,result")
    known, way = (FAKE, bench_fake) if options.fake else (MODELS, bench)
    results = []
    for name in options.models.split(",") if options.models else known:
        results.append(way(name, (known | ONES)[name], options))
        gc.collect()
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
