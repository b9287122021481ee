import sys
from pathlib import Path

import pytest
import torch

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]


@pytest.fixture(autouse=True)
def alone():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
