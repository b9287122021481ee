"""What users write wrongly, limits that nothing meets, graphs that cannot be planned."""

import contextlib

import pytest
import torch
from models import Gpt, words

import neap_torch
from neap_torch import partitioning
from neap_torch.errors import NotPlannable
from neap_torch.limits import Limit, parse_bytes


def test_bytes():
    assert parse_bytes("4GiB") == 4 << 30
    assert parse_bytes(" 1.5 MB ") == 1_500_000
    assert parse_bytes("77") == parse_bytes(77) == 77
    for wrong in ("4 Gig", "", "-3", "0", 0, -3, True, None, "GiB", "1e9"):
        with pytest.raises(ValueError, match="neap_torch"):
            parse_bytes(wrong)


def test_limits():
    assert Limit.parse(0.5).text_for_planner() == "0.5"
    assert Limit.parse("1MiB", 1 << 19).text_for_planner() == str(1 << 19)
    for wrong in (1.5, -0.5, 0.0, float("nan"), "12 bananas", -3):
        with pytest.raises(ValueError, match="neap_torch"):
            Limit.parse(wrong)
    with pytest.raises(ValueError, match="reserved"):
        Limit.parse(100, 100)


def test_arguments():
    model = torch.nn.Linear(4, 4)
    for wrong in (
        {"backend": "eager"},
        {"on_infeasible": "ignore"},
        {"costs": "no/such/file.json"},
        {"reserve": "adamm"},
    ):
        with pytest.raises(ValueError, match="neap_torch"):
            neap_torch.compile(model, 0.5, **wrong)


def test_reserve_by_an_optimizer():
    model = torch.nn.Linear(1000, 1000)
    states = 2 * 4 * (1000 * 1000 + 1000)
    compiled = neap_torch.compile(model, states + 30_000_000, reserve="adamw", backend="aten")
    compiled(torch.randn(8, 1000)).sum().backward()
    assert compiled.neap_report.graphs[0].limit_bytes == 30_000_000


def infeasible(**options):
    torch.manual_seed(0)
    model = Gpt()
    return model, neap_torch.compile(model, 0.05, backend="aten", **options)


def test_infeasible_says_what_would_do():
    _, compiled = infeasible()
    with pytest.raises(
        Exception, match="no plan fits: the limit is [0-9]+ bytes, the best plan found needs [0-9]+"
    ) as e:
        compiled(*words(0))
    assert "forced by" in str(e.value)
    assert isinstance(compiled.neap_report.error, neap_torch.Infeasible)


def test_infeasible_takes_the_least():
    model, compiled = infeasible(on_infeasible="least")
    batch = words(0)
    compiled(*batch).backward()
    g = compiled.neap_report.graphs[0]
    assert not g.fits and g.limit_bytes < g.peak_bytes < g.original_peak_bytes
    gradient = model.head.weight.grad.clone()
    model.zero_grad()
    model(*batch).backward()
    assert torch.equal(gradient, model.head.weight.grad)


def test_infeasible_takes_the_default():
    _, compiled = infeasible(on_infeasible="default")
    with pytest.warns(neap_torch.NeapWarning, match="no plan fits"):
        compiled(*words(0)).backward()
    assert compiled.neap_report.graphs == []


def test_a_graph_that_cannot_be_planned(monkeypatch):
    def refuse(self, name):
        raise NotPlannable("sin_3 is not of this world")

    monkeypatch.setattr(partitioning.Exporter, "export", refuse)
    model = Gpt()
    compiled = neap_torch.compile(model, 0.5, backend="aten")
    batch = words(0)
    with pytest.warns(neap_torch.NeapWarning, match="sin_3 is not of this world"):
        loss = compiled(*batch)
    assert torch.equal(loss, model(*batch))


@pytest.mark.parametrize("backend", ["aten", "lite"])
def test_report(tmp_path, backend):
    compiled = neap_torch.compile(Gpt(), 0.6, backend=backend)
    compiled(*words(0)).backward()
    text = str(compiled.neap_report)
    assert "run again" in text and "blocks.0" in text and "the next MiB" in text
    page = tmp_path / "report.html"
    compiled.neap_report.save(page)
    assert "<svg" in page.read_text() and "blocks.2" in page.read_text()


def test_costs(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for costs in ("measure", "h100", "device"):
        torch._dynamo.reset()
        torch.manual_seed(0)
        compiled = neap_torch.compile(Gpt(layers=1), 0.8, backend="aten", costs=costs)
        compiled(*words(0)).backward()
        assert 1 <= compiled.neap_report.graphs[0].latency_ratio < 2
    assert (tmp_path / "neap" / "torch-cpu.json").exists() and (tmp_path / "neap" / "torch-ops.json").exists()


def test_a_context_for_inductor():
    torch.manual_seed(0)
    model = Gpt(layers=1)
    with neap_torch.memory_limit(0.7) as report:
        compiled = torch.compile(model, mode="lite")
        loss = compiled(*words(0))
    loss.backward()
    assert len(report.graphs) == 1 and report.graphs[0].fits


def test_the_processor_is_measured_beside_fake_tensors(tmp_path, monkeypatch):
    from torch._subclasses import FakeTensorMode

    from neap_torch.costs import this_cpu

    found = []
    for i, mode in enumerate((FakeTensorMode(), contextlib.nullcontext())):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(i)))
        with mode:
            found.append(this_cpu())
    assert 1 / 8 < found[0].bandwidth / found[1].bandwidth < 8
    assert found[0].launch < 8 * found[1].launch
