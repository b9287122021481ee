"""What has been planned, for people: numbers, what is saved and what runs again by module, and a picture of the memory."""

from __future__ import annotations

import html
import re
from collections import Counter
from dataclasses import dataclass


@dataclass
class GraphReport:
    """What became of one joint graph. Bytes are those of forward and backward with parameters, inputs and gradients."""

    name: str
    limit_bytes: int
    peak_bytes: int
    original_peak_bytes: int
    bound_bytes: int  # no order and no recomputation of these ops needs less
    latency_ratio: float  # of the plan, by the costs that it was made with
    saved: list  # (module, op) of what the backward half reads of the forward half, inputs apart
    recomputed: list  # (module, op) of what runs again
    saved_bytes: int
    planning_seconds: float  # of the processor: export, search and rewriting
    search_seconds: float
    digest: str  # of the plan: equal on all ranks
    fits: bool
    next_mib: float  # microseconds of a step that one MiB more would save, by the costs of the plan
    picture: str  # SVG: memory over time, before and after
    resident_bytes: int  # parameters, buffers, inputs
    beside_backward_bytes: int  # tangents, and results that are not saved
    estimated_bytes: int = 0  # the peak by Inductor's own estimate, where it has fused

    def __str__(self) -> str:
        share = 100 * self.peak_bytes / max(self.original_peak_bytes, 1)
        lines = [
            f"{self.name}: peak {self.peak_bytes:,} bytes, {share:.1f} % of {self.original_peak_bytes:,}; limit "
            f"{self.limit_bytes:,}{'' if self.fits else ', which no plan meets'}; at least {self.bound_bytes:,}",
            *(
                [f"  Inductor's own estimate of the peak: {self.estimated_bytes:,} bytes"]
                if self.estimated_bytes
                else []
            ),
            f"  time {100 * self.latency_ratio:.1f} % of that without a plan, by its costs; planned in "
            f"{self.planning_seconds:.2f} s, of which the search took {self.search_seconds:.2f} s; the next MiB saves "
            f"{self.next_mib:.3g} us",
            f"  saved: {len(self.saved)} values, {self.saved_bytes:,} bytes; {_by_module(self.saved)}",
            f"  run again: {len(self.recomputed)} ops; {_by_module(self.recomputed)}",
        ]
        return "\n".join(lines)


def _by_module(what: list, most: int = 6) -> str:
    counts = Counter(module or "outside of modules" for module, _ in what)
    text = ", ".join(f"{module} ({n})" for module, n in counts.most_common(most))
    return text + (f", and {len(counts) - most} others" if len(counts) > most else "") or "none"


def module_of(node) -> str:
    """The path of the module whose code made a node: layers.3.mlp."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return ""
    path = next(reversed(stack.values()))[0]
    path = re.sub(r"^(getattr\()?L\['\w+'\],?\.? ?|^self\.", "", path)  # whatever the variable of the model is called
    return path.replace("._modules['", ".").replace("_modules['", "").replace("']", "").strip(".")


class Report:
    """A GraphReport for each graph that was planned, in `graphs`; `error`: what the last failure was."""

    def __init__(self, settings):
        self._settings = settings

    @property
    def graphs(self) -> list:
        return self._settings.graphs

    @property
    def error(self):
        return self._settings.error

    def __str__(self) -> str:
        return "\n".join(str(g) for g in self.graphs) or "no graph was planned yet"

    def save(self, path) -> None:
        """An HTML page of its own, with the pictures."""
        parts = ["<!doctype html><meta charset=utf-8><title>neap</title><style>body{font:14px sans-serif}</style>"]
        for g in self.graphs:
            parts.append(f"<h2>{html.escape(g.name)}</h2><pre>{html.escape(str(g))}</pre>{g.picture}")
            for title, rows in (("Run again", g.recomputed), ("Saved", g.saved)):
                body = "".join(f"<tr><td>{html.escape(m)}<td>{html.escape(op)}" for m, op in rows)
                parts.append(f"<details><summary>{title}: {len(rows)}</summary><table>{body}</table></details>")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(parts))
