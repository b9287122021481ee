"""Limits of memory as users write them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import torch

_units = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}


def parse_bytes(text: str | int) -> int:
    """4 GiB, "512 MB", 1048576. Raises ValueError."""
    if isinstance(text, bool) or not isinstance(text, (str, int)):
        raise ValueError(f"neap_torch: a number of bytes is an int or a text like '4GiB', not {text!r}")
    if isinstance(text, int):
        if text <= 0:
            raise ValueError(f"neap_torch: {text} bytes: a limit is more than 0")
        return text
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    unit = _units.get(match[2].lower()) if match else None
    if unit is None:
        raise ValueError(f"neap_torch: {text!r} is no number of bytes: write '4GiB', '512MB' or 1048576")
    n = int(float(match[1]) * unit)
    if n <= 0:
        raise ValueError(f"neap_torch: {text!r}: a limit is more than 0")
    return n


@dataclass(frozen=True)
class Limit:
    """Bytes, or a ratio of the peak without a plan; `reserve` bytes of it are for what the graph does not have. None: what
    a GPU holds when the graph is planned, beside what the graph has."""

    bytes: int | None = None
    ratio: float | None = None
    reserve: int | None = 0

    @staticmethod
    def parse(limit: str | int | float, reserve: int | None = 0) -> Limit:
        """A float is a ratio in (0, 1], everything else bytes. Raises ValueError."""
        if isinstance(limit, float):
            if not (math.isfinite(limit) and 0 < limit <= 1):
                raise ValueError(
                    f"neap_torch: {limit} is no ratio of the peak: give one above 0 and at most 1, or bytes as an int"
                )
            return Limit(ratio=limit, reserve=reserve)
        n = parse_bytes(limit)
        if n <= (reserve or 0):
            raise ValueError(f"neap_torch: a limit of {n} bytes, of which {reserve} are reserved, leaves nothing")
        return Limit(bytes=n, reserve=reserve)

    def within(self, device: torch.device, resident: int) -> Limit:
        """The limit with bytes in place of what is left open, for a graph on a device whose sources take `resident`."""
        if self.reserve is not None:
            return self
        held = torch.cuda.memory_allocated(device) if device.type == "cuda" else 0
        return replace(self, reserve=max(held - resident, 0))

    def text_for_planner(self) -> str:
        return repr(self.ratio) if self.bytes is None else str(self.bytes - self.reserve)

    def bytes_of(self, original_peak: int) -> int:
        return int(self.ratio * original_peak) if self.bytes is None else self.bytes - self.reserve
