"""What a step allocates, by torch's profiler."""

from __future__ import annotations

from typing import Callable

import torch


def peak_of(step: Callable[[], object], resident: list) -> int:
    """Bytes of `resident` tensors (parameters, buffers, inputs: counted once a storage), and the most that `step`
    allocates beside them at one time. On a GPU `max_memory_allocated` says the same."""
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in resident}
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        step()
    now = most = 0
    for e in sorted(profile.profiler.kineto_results.events(), key=lambda e: e.start_ns()):
        if e.name() == "[memory]":
            now += e.nbytes()
            most = max(most, now)
    return sum(storages.values()) + most
