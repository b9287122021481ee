"""DDP on two processes with gloo: ranks decide alike, and the gradients are those of eager DDP."""

import os
import socket
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
sys.path[:0] = sys.argv[3:]
import torch, torch.distributed as dist
import neap_torch
from models import Gpt, words
torch.set_num_threads(1)
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{sys.argv[2]}", rank=rank, world_size=2)
gradients = []
for planned in (False, True):
    torch.manual_seed(0)
    model = Gpt(layers=2)
    step = neap_torch.compile(model, 0.6, backend="aten", costs="h100") if planned else model
    ddp = torch.nn.parallel.DistributedDataParallel(step)
    torch.manual_seed(10 + rank)
    for _ in range(2):
        ddp(*words(0)).backward()
    gradients.append([p.grad.clone() for p in model.parameters()])
assert all(torch.equal(a, b) for a, b in zip(*gradients)), "gradients differ from those of eager DDP"
print("digest", [g.digest for g in step.neap_report.graphs])
dist.destroy_process_group()
"""


def test_two_ranks():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    here = Path(__file__).parent
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), port, str(here), str(here.parent)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    said = [r.communicate(timeout=240) for r in ranks]
    assert [r.returncode for r in ranks] == [0, 0], said[0][1][-2000:] + said[1][1][-2000:]
    digests = [line for out, _ in said for line in out.splitlines() if line.startswith("digest")]
    assert len(digests) == 2 and digests[0] == digests[1] and "[]" not in digests[0]
