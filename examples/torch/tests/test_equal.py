"""Losses, gradients, buffers, inputs and weights of three steps of AdamW are those of eager training, bit for bit."""

import warnings

import pytest
import torch
from models import MODELS, Cnn, Gpt, images, words
from training import differences

import neap_torch


@pytest.mark.parametrize("backend", ["aten", "lite"])
@pytest.mark.parametrize("name", MODELS)
def test_models(name, backend):
    make, batch, loss, least = MODELS[name]
    for limit in {0.8, least} if backend == "aten" else {least}:
        torch._dynamo.reset()
        with warnings.catch_warnings():
            warnings.simplefilter("error", neap_torch.NeapWarning)
            found, report = differences(make, batch, limit, loss=loss, backend=backend)
        if found and found == differences(make, batch, None, loss=loss)[0]:
            pytest.skip("without a limit, torch.compile(backend='eager') differs from eager training in the same way")
        assert found == []
        assert len(report.graphs) == 1
        g = report.graphs[0]
        assert g.fits and g.peak_bytes <= g.limit_bytes < g.original_peak_bytes
        assert g.recomputed or g.peak_bytes < g.original_peak_bytes


@pytest.mark.parametrize("backend", ["aten", "lite"])
def test_draws_run_again(backend):
    found, report = differences(
        lambda: Gpt(layers=2, drop=0.1), words, 0.4, backend=backend, on_infeasible="least", steps=2
    )
    assert found == []
    assert any("dropout" in op for _, op in report.graphs[0].recomputed)


def test_costs_leave_random_numbers_alone():
    found, _ = differences(lambda: Gpt(layers=1, drop=0.1), words, 0.9, backend="aten", costs="measure", steps=1)
    assert found == []


def test_low_precision():
    found, report = differences(Gpt, words, 0.6, backend="aten", autocast=True)
    assert found == [] and report.graphs[0].recomputed


def test_batch_norm_in_low_precision():
    found, report = differences(Cnn, images, 0.9, backend="lite", autocast=True, on_infeasible="least")
    assert found == [] and len(report.graphs) == 1


def test_an_input_among_the_results():
    """A conversion that does nothing leaves a graph as it came."""

    class Broken(torch.nn.Linear):
        def forward(self, x):
            h, x = torch.tanh(super().forward(x)), x.to(torch.float32)
            torch._dynamo.graph_break()
            return (h * x).square().mean()

    found, report = differences(
        lambda: Broken(8, 8), lambda i: (torch.randn(16, 8),), 0.9, backend="aten", on_infeasible="least"
    )
    assert found == [] and len(report.graphs) == 2


def test_element_types():
    def body(x):
        low = x.detach().to(torch.float8_e4m3fn).float()
        return torch.fft.fft((x + low).double()).abs().square().mean()

    class Types(torch.nn.Linear):
        def forward(self, x):
            return body(torch.tanh(super().forward(x)))

    with warnings.catch_warnings():
        warnings.simplefilter("error", neap_torch.NeapWarning)
        found, _ = differences(
            lambda: Types(8, 8), lambda i: (torch.randn(16, 8),), 0.9, backend="aten", steps=1, on_infeasible="least"
        )
    assert found == []


def test_dynamic_sizes():
    found, report = differences(
        Gpt, lambda i: words(i, b=2 + i, t=40 + 8 * i), 0.8, backend="aten", dynamic=True, steps=4
    )
    assert found == [] and len(report.graphs) <= 2


def test_accumulated_gradients():
    torch.manual_seed(0)
    eager = Gpt()
    planned = Gpt()
    planned.load_state_dict(eager.state_dict())
    compiled = neap_torch.compile(planned, 0.6, backend="aten")
    for i in range(3):
        batch = words(i)
        eager(*batch).backward()
        compiled(*batch).backward()
    for a, b in zip(eager.parameters(), planned.parameters()):
        assert torch.equal(a.grad, b.grad)


def test_evaluation_is_not_planned():
    model = Gpt()
    compiled = neap_torch.compile(model, 0.6, backend="aten")
    batch = words(0)
    with torch.no_grad():
        assert torch.equal(compiled(*batch), model(*batch))
    assert compiled.neap_report.graphs == []
