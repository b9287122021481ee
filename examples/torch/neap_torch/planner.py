"""Runs the command line of neap on a graph file; reads the plan."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .errors import PlanningError

ITERATIONS = 20_000


def executable() -> str:
    """The one of the wheel; NEAP_EXECUTABLE names another."""
    named = os.environ.get("NEAP_EXECUTABLE")
    if named:
        return named
    own = Path(__file__).parent / "bin" / "neap"
    found = str(own) if own.exists() else shutil.which("neap")
    if not found:
        raise PlanningError("neap_torch: its executable is missing: install the package anew, or set NEAP_EXECUTABLE")
    return found


@dataclass
class Plan:
    """Ops in the order of the plan: row of the graph file, tensors read, tensors made (ids of the plan)."""

    steps: list
    outputs: list  # of the file, in its order: tensors of the plan
    fits: bool
    why_not: str  # the least peak found, the bound, and what forces it
    peak_bytes: int
    bound_bytes: int
    latency_us: float
    original_peak_bytes: int
    original_latency_us: float
    recomputed: int
    seconds: float
    picture: str
    front: list  # (peak in bytes, latency in us) of what the search has found, both better than of all before and after

    def price(self) -> float:
        """Microseconds that one MiB more would save: the steepest slope of the front from the plan on."""
        slopes = [
            (self.latency_us - latency) / (peak - self.peak_bytes)
            for peak, latency in self.front
            if peak > self.peak_bytes
        ]
        return max(slopes, default=0.0) * 2**20


def plan(graph: dict, limit: int | str, iterations: int = ITERATIONS, alignment: int = 1) -> Plan:
    """A plan of a graph within a limit of bytes, or of a ratio of the original's peak as a text ("0.5"); where none is
    found, the one with the least peak. Raises PlanningError where the planner refuses the graph."""
    with tempfile.TemporaryDirectory(prefix="neap_torch_") as folder:
        names = ("graph.json", "graph.plan", "graph.svg", "front.csv")
        file, out, picture, front = (Path(folder) / name for name in names)
        file.write_text(json.dumps(graph))
        command = [
            executable(), "plan", str(file), "--memory-limit", str(limit), "--takeover", "off", "--alignment",
            str(alignment), "--losses", "whole", "--moves", "remat,reorder,undo", "--iterations", str(iterations),
            "--json", "--out", str(out), "--svg", str(picture), "--pareto", str(front),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 1) or not out.exists():
            said = (done.stderr or done.stdout).strip().replace(str(file), graph["name"])
            raise PlanningError(said or "neap ended without a word")
        told = json.loads(done.stdout)
        written = json.loads(out.read_text())
        svg = picture.read_text() if picture.exists() else ""
        rows = [line.split(",") for line in front.read_text().splitlines()[1:]] if front.exists() else []
    nodes = written["nodes"]
    order = [nodes[s["node"]] for s in written["steps"]]
    return Plan(
        steps=[(n["origin"], n["in"], n["out"]) for n in order],
        outputs=[o["tensor"] for o in written["outputs"]],
        fits=told["fits"],
        why_not=told.get("why_not", ""),
        peak_bytes=told["peak_bytes"],
        bound_bytes=told["lower_bound_bytes"],
        latency_us=told["latency_us"],
        original_peak_bytes=told["original_peak_bytes"],
        original_latency_us=told["original_latency_us"],
        recomputed=told["recomputed_ops"],
        seconds=told["seconds"],
        picture=svg,
        front=[(int(row[0]), float(row[1])) for row in rows],
    )
