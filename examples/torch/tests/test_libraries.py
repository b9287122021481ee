"""Models of torchvision and transformers, by configuration: bits of eager training, and the peak of the plan."""

import pytest
import torch
from models import Classes, Words
from training import differences

import neap_torch
from neap_torch.measure import peak_of

torchvision = pytest.importorskip("torchvision")
transformers = pytest.importorskip("transformers")


def resnet():
    net = torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=8)
    return Classes(net)


def bert():
    config = transformers.BertConfig(
        vocab_size=128, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=32,
    )  # fmt: skip
    return Words(transformers.BertForMaskedLM(config))


CASES = {
    "resnet": (resnet, lambda i: (torch.randn(8, 3, 80, 80), torch.randint(0, 8, (8,))), 0.9),
    "bert": (bert, lambda i: (torch.randint(0, 128, (8, 32)),), 0.6),
}


@pytest.mark.parametrize("name", CASES)
def test_bits_and_peak(name):
    make, batch, limit = CASES[name]
    found, report = differences(make, batch, limit, backend="aten", on_infeasible="least", steps=2)
    assert found == [] and len(report.graphs) == 1 and report.graphs[0].recomputed
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, given = make(), batch(0)
    compiled = neap_torch.compile(model, limit, backend="aten", on_infeasible="least")

    def step():
        model.zero_grad()
        compiled(*given).backward()

    step()
    model.zero_grad()
    g = compiled.neap_report.graphs[0]
    measured = peak_of(step, [*model.parameters(), *model.buffers(), *given])
    assert 0.97 * g.peak_bytes <= measured <= g.peak_bytes
    if name == "bert":
        assert g.peak_bytes - 1024 <= measured
