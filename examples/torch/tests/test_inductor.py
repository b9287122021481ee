"""Fused kernels: what ops of a graph move, the order of kernels, and the limit by Inductor's estimate."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

import neap_torch
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


def test_a_limit_that_no_plan_meets():
    compiled = neap_torch.compile(Layers(), 0.2, backend="inductor")
    with pytest.raises(Exception, match="neap_torch: Inductor's kernels need [0-9]+ bytes"):
        compiled(torch.randn(1024, 64))
    assert isinstance(compiled.neap_report.error, neap_torch.Infeasible)
