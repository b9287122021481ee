"""Fused kernels: what ops of a graph move, the order of kernels, and the limit by Inductor's estimate."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

import neap_torch
import neap_torch.export
import neap_torch.fusion
from neap_torch.fusion import Fusion
from neap_torch.inductor import in_order
from neap_torch.measure import peak_of


def test_a_group_moves_its_ends():
    def f(x, w):
        h = x @ w
        y = torch.sigmoid(h) * h  # read twice, by one kernel
        return y @ w, (y + 1).sum(0)

    graph = make_fx(f, tracing_mode="fake")(torch.rand(64, 32), torch.rand(32, 32)).graph
    fusion = Fusion(graph)
    by_name = {n.name: n for n in graph.nodes}
    matrix = 64 * 32 * 4
    loops = {n.name: moved for n, moved in fusion.moved.items()}
    assert set(loops) == {"sigmoid", "mul", "add", "sum_1"}
    assert loops["sigmoid"] == matrix / 2  # its part of reading h
    assert loops["mul"] == matrix / 2 + matrix  # y is written, as a product reads it
    assert loops["add"] == 0
    assert loops["sum_1"] == 32 * 4
    assert fusion.ends == {by_name["mul"], by_name["sum_1"]}


def test_loops_with_a_product_between_them_are_apart():
    def f(x, w):
        a = x.sin()
        return (a @ w) + a

    graph = make_fx(f, tracing_mode="fake")(torch.rand(16, 16), torch.rand(16, 16)).graph
    moved = {n.name: m for n, m in Fusion(graph).moved.items()}
    matrix = 16 * 16 * 4
    assert moved == {"sin": 2 * matrix, "add": 3 * matrix}


@pytest.mark.parametrize("is_read_late", [True, False])
def test_readers_compute_what_they_can(is_read_late):
    def f(x, w, tangents_1):
        h = x @ w
        y = h.sin()
        late = tangents_1 * y
        return (y * 2) @ w, late * h if is_read_late else late

    graph = make_fx(f, tracing_mode="fake")(*(torch.rand(32, 32) for _ in range(3))).graph
    fusion = Fusion(graph)
    by_name = {n.name: n for n in graph.nodes}
    matrix = 32 * 32 * 4
    if not is_read_late:  # the backward half would have to keep h for the sine's sake alone
        assert not fusion.inlined
        return
    assert fusion.inlined == {by_name["sin"]: [by_name["mm"]]}  # the product is read by another library
    assert fusion.inputs(by_name["mul_1"]) == [by_name["mm"]]
    assert set(fusion.computed_by(by_name["mul"])) == {by_name["mul"], by_name["sin"]}
    assert fusion.moved[by_name["sin"]] == 0
    assert fusion.moved[by_name["mul_1"]] == 2 * matrix


def test_long_chains_are_written():
    def f(x, w, tangents_1):
        h = y = x @ w
        for _ in range(64):
            y = y.sin() * y
        return y @ w, tangents_1 * h

    graph = make_fx(f, tracing_mode="fake")(*(torch.rand(8, 8) for _ in range(3))).graph
    fusion = Fusion(graph)
    assert all(len(fusion.computed_by(n)) <= 2 * neap_torch.fusion.LONGEST for n in graph.nodes)
    assert 0 < len(fusion.inlined) < 40


def test_order_of_kernels():
    before = {"a": [], "b": ["a"], "c": [], "d": ["b", "c"]}
    place = {"a": 3, "b": 1, "c": 2, "d": 0}
    assert in_order(list("abcd"), before, place.get) == ["c", "a", "b", "d"]


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(6))

    def forward(self, x):
        for layer in self.layers:
            x = torch.nn.functional.gelu(layer(x))
        return x.square().mean()


def test_limit_and_gradients():
    torch.manual_seed(0)
    model, batch = Layers(), torch.randn(1024, 64)
    model(batch).backward()
    right = [p.grad.clone() for p in model.parameters()]
    compiled = neap_torch.compile(model, 0.6, backend="inductor")

    def step():
        for p in model.parameters():
            p.grad = None
        compiled(batch).backward()

    step()
    for a, p in zip(right, model.parameters()):
        assert torch.allclose(a, p.grad, rtol=1e-3, atol=1e-6)
        p.grad = None
    (g,) = compiled.neap_report.graphs
    assert g.recomputed and g.fits
    assert g.resident_bytes < g.estimated_bytes <= g.limit_bytes
    assert peak_of(step, [*model.parameters(), batch]) <= g.estimated_bytes


class Images(torch.nn.Module):
    """Weights that Inductor copies into another layout, and masks of activations."""

    def __init__(self):
        super().__init__()

        def block(i, o, kernel=3):
            convolution = torch.nn.Conv2d(i, o, kernel, padding=kernel // 2, bias=False)
            return torch.nn.Sequential(convolution, torch.nn.BatchNorm2d(o), torch.nn.ReLU(), torch.nn.MaxPool2d(2))

        self.layers = torch.nn.Sequential(block(3, 16), block(16, 64), block(64, 128, 1), block(128, 256))

    def forward(self, x):
        return self.layers(x).square().mean()


class Mixed(torch.nn.Module):
    """Convolutions that Inductor calls in several layouts, a view that it writes out, loops that are one function."""

    def __init__(self):
        super().__init__()
        self.first, self.grouped = (
            torch.nn.Conv2d(3, 32, 3, padding=1),
            torch.nn.Conv2d(32, 32, 3, padding=1, groups=32),
        )
        self.down, self.up = torch.nn.Conv2d(32, 128, 3, 2, 1), torch.nn.ConvTranspose2d(128, 64, 2, 2)
        self.norm, self.last = torch.nn.GroupNorm(8, 64), torch.nn.Conv1d(64, 64, 3, padding=1)

    def forward(self, x):
        x = self.down(self.grouped(self.first(x).relu()).relu()).relu()
        return self.last(self.norm(self.up(x)).relu().flatten(2)).square().mean()


def volumes():
    convolutions = torch.nn.Conv3d(2, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv3d(16, 32, 3, padding=1)
    return torch.nn.Sequential(*convolutions, Loss())


class Loss(torch.nn.Module):
    def forward(self, x):
        return x.relu().square().mean()


class Branches(torch.nn.Module):
    """Parts of a result that Inductor writes apart; results that no op of the backward half reads."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Conv2d(i, 16, 1) for i in (3, 19, 35))
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(16) for _ in range(3))

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = torch.cat([x, norm(layer(x)).relu().tanh()], 1)
        return x.square().mean()


class Repeated(torch.nn.Module):
    """Heads that are read several times: Inductor writes such a view out where it is saved."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 128, bias=False) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            q, k, v = layer(x).view(-1, 32, 8, 16).transpose(1, 2).split((4, 2, 2), 1)
            k, v = (h[:, :, None].expand(-1, 2, 2, 32, 16).reshape(-1, 4, 32, 16) for h in (k * k.cos(), v))
            read = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + read.transpose(1, 2).reshape(-1, 64)
        return x.square().mean()


IMAGES = (16, 3, 32, 32)


@pytest.mark.parametrize("make, limit", [(Images, 0.8), (Branches, 0.5), (Mixed, 0.8)])
def test_gradients_where_readers_compute_normalisations(make, limit):
    torch.manual_seed(0)
    model, batch = make().double(), torch.randn(IMAGES).double()
    kept = {k: v.clone() for k, v in model.state_dict().items()}
    model(batch).backward()
    right = [p.grad.clone() for p in model.parameters()]
    changed = {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(kept)
    for p in model.parameters():
        p.grad = None
    compiled = neap_torch.compile(model, limit, backend="inductor", on_infeasible="least")
    compiled(batch).backward()
    assert compiled.neap_report.graphs[0].recomputed
    for a, p in zip(right, model.parameters()):
        assert torch.allclose(a, p.grad, rtol=1e-9, atol=1e-12)
    for k, v in model.state_dict().items():
        assert torch.allclose(v, changed[k]), k


@pytest.mark.parametrize(
    "make, batch, limit",
    [
        (Images, IMAGES, 0.9),
        (Images, IMAGES, 0.75),
        (Mixed, IMAGES, 0.8),
        (volumes, (4, 2, 8, 16, 16), 0.8),
        (Branches, IMAGES, 0.7),
        (Repeated, (1024, 64), 0.7),
    ],
)
def test_the_estimate_is_the_measured_peak(make, batch, limit):
    torch.manual_seed(0)
    model, batch = make(), torch.randn(batch)
    compiled = neap_torch.compile(model, limit, backend="inductor", on_infeasible="least")
    compiled(batch).backward()
    (g,) = compiled.neap_report.graphs
    for p in model.parameters():
        p.grad = None
    measured = peak_of(lambda: compiled(batch).backward(), [*model.parameters(), *model.buffers(), batch])
    assert measured <= g.estimated_bytes
    if make is Images:  # the plan's graph has the image's copy, and no result that Inductor does not write
        assert g.estimated_bytes <= 1.001 * g.peak_bytes
    assert g.estimated_bytes <= 1.01 * measured + 4096


def test_no_mask_is_kept_where_it_costs_more_than_its_bytes():
    graphs = []

    class Exporter(neap_torch.export.Exporter):
        def export(self, name):
            graphs.append(super().export(name))
            return graphs[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neap_torch.partitioning.Exporter", Exporter)
        for costs in ("cpu", "h100"):
            compiled = neap_torch.compile(Images(), 0.75, backend="inductor", costs=costs, on_infeasible="least")
            compiled(torch.randn(4, 3, 32, 32))
            torch._dynamo.reset()
    for exported, is_bound in (graphs[0], True), (graphs[-1], False):
        rows, tensors = exported.graph["nodes"], exported.graph["tensors"]
        boundary = next(i for i, row in enumerate(rows) if row["op"] == neap_torch.export.BOUNDARY)
        masks = [r for r in rows[boundary:] if r["out"] and tensors[r["out"][0]]["dtype"] == "bool"]
        assert masks
        assert all(bool(set(r["in"]) & set(rows[boundary]["out"])) == is_bound for r in masks)


def test_a_limit_that_no_plan_meets():
    compiled = neap_torch.compile(Layers(), 0.2, backend="inductor")
    with pytest.raises(Exception, match="neap_torch: Inductor's kernels need [0-9]+ bytes"):
        compiled(torch.randn(1024, 64))
    assert isinstance(compiled.neap_report.error, neap_torch.Infeasible)
