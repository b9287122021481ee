"""The peak that torch's profiler measures is the planned one; it is monotone in the limit; plans are the same everywhere."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from models import Gpt, words

import neap_torch
from neap_torch import planner
from neap_torch.measure import peak_of


def step_of(limit, **options):
    torch.manual_seed(0)
    model, batch = Gpt(d=96), words(0)
    compiled = neap_torch.compile(model, limit, **options)
    compiled(*batch).backward()
    for p in model.parameters():
        p.grad = None
    return compiled, lambda: compiled(*batch).backward(), [*model.parameters(), *model.buffers(), *batch]


@pytest.mark.parametrize("backend", ["aten", "lite"])
def test_measured(backend):
    for limit in (0.8, 0.6):
        torch._dynamo.reset()
        compiled, step, resident = step_of(limit, backend=backend)
        g = compiled.neap_report.graphs[0]
        measured = peak_of(step, resident)
        assert measured <= g.limit_bytes
        assert abs(measured - g.peak_bytes) <= 1024


def test_parameters_that_no_graph_reads():
    torch.manual_seed(0)
    model, batch = Gpt(d=96), words(0)
    model.unused = torch.nn.Linear(300, 300)
    compiled = neap_torch.compile(model, 0.7, backend="aten")

    def step():
        for p in model.parameters():
            p.grad = None
        compiled(*batch).backward()

    step()
    for p in model.parameters():
        p.grad = None
    g = compiled.neap_report.graphs[0]
    measured = peak_of(step, [*model.parameters(), *model.buffers(), *batch])
    assert g.peak_bytes - 1024 <= measured <= g.peak_bytes <= g.limit_bytes


def test_monotone(monkeypatch):
    graphs = []
    plan = planner.plan

    def noted(graph, *args, **options):
        graphs.append(graph)
        return plan(graph, *args, **options)

    monkeypatch.setattr(planner, "plan", noted)
    step_of(0.9, backend="aten")
    peaks = []
    for limit in (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55):
        planned = plan(graphs[0], repr(limit))
        assert planned.peak_bytes <= limit * planned.original_peak_bytes
        peaks.append(planned.peak_bytes)
    assert peaks == sorted(peaks, reverse=True)


def test_two_processes_make_one_plan():
    program = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "import torch; torch.set_num_threads(1)\n"
        "from test_peak import step_of\n"
        "print(step_of(0.6, backend='aten', costs='h100')[0].neap_report.graphs[0].digest)"
    )
    here = Path(__file__).parent
    command = [sys.executable, "-c", program, str(here), str(here.parent)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [r.communicate() for r in runs]
    assert [r.returncode for r in runs] == [0, 0], said[0][1][-2000:]
    assert said[0][0] == said[1][0] and len(said[0][0].strip()) == 16
