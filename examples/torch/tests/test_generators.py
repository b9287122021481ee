"""Random ops with generators of their own, which CUDA graphs need: pairs are found and given their states."""

import torch
from models import Gpt, words
from training import differences

from neap_torch import rewrite


def test_pairs_draw_the_same(monkeypatch):
    states, pairs = {}, []

    def draw(count, is_first, target, *args, **kwargs):
        if is_first:
            states[count] = torch.get_rng_state()
            return target(*args, **kwargs)
        now = torch.get_rng_state()
        torch.set_rng_state(states[count])
        result = target(*args, **kwargs)
        torch.set_rng_state(now)
        return result

    # In place of torch's own, whose generators only CUDA has.
    def given(forward, backward, first, again, device, count, *last):
        pairs.append((str(first.target), str(again.target), device.type))
        for half, node, is_first in ((forward, first, True), (backward, again, False)):
            with half.graph.inserting_before(node):
                new = half.graph.call_function(draw, (count, is_first, node.target, *node.args), node.kwargs)
            new.meta = dict(node.meta)
            node.replace_all_uses_with(new)
            half.graph.erase_node(node)
        return last

    monkeypatch.setattr(rewrite, "CAPTURED", "cpu")
    monkeypatch.setattr(rewrite, "captures_cuda_graphs", lambda: True)
    monkeypatch.setattr(rewrite, "apply_graphsafe_rng_functionalization", given)
    found, report = differences(
        lambda: Gpt(layers=2, drop=0.1), words, 0.4, backend="aten", on_infeasible="least", steps=2
    )
    again = [op for _, op in report.graphs[0].recomputed if "dropout" in op]
    assert found == [] and 0 < len(pairs) <= len(again)
    assert all(a == b and "dropout" in a and device == "cpu" for a, b, device in pairs)
