"""A model trained twice, eagerly and under a limit: what is left behind by each step."""

import copy

import torch

import neap_torch


def left_by(step, model, optimizer, batch, loss, seed, autocast):
    torch.manual_seed(seed)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        total = step(*batch)
        total = total if loss is None else loss(total)
    optimizer.zero_grad()
    total.backward()
    gradients = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    optimizer.step()
    return [
        [total.detach()],
        gradients,
        [b.clone() for b in model.buffers()],
        [t.clone() for t in batch],
        [p.detach().clone() for p in model.parameters()],
    ]


def differences(make, batch, limit, *, loss=None, steps=3, autocast=False, compiled=None, **options):
    """What differs from eager training, bit for bit: (step, which). And the report. Without a limit, of Dynamo alone."""
    torch.manual_seed(0)
    eager = make()
    planned = copy.deepcopy(eager)
    if limit is None:
        compiled = torch.compile(planned, backend="eager")
        compiled.neap_report = None
    else:
        compiled = neap_torch.compile(planned, limit, **options)
    optimizers = [torch.optim.AdamW(m.parameters(), 1e-3) for m in (eager, planned)]
    kinds = ("loss", "gradients", "buffers", "inputs", "parameters")
    found = []
    for i in range(steps):
        left = []
        for step, model, optimizer in ((eager, eager, optimizers[0]), (compiled, planned, optimizers[1])):
            torch.manual_seed(1000 + i)
            left.append(left_by(step, model, optimizer, batch(i), loss, 100 + i, autocast))
        for kind, a, b in zip(kinds, *left):
            same = all((x is None and y is None) or torch.equal(x, y) for x, y in zip(a, b))
            if not same:
                found.append((i, kind))
    return found, compiled.neap_report
