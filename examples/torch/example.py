"""GPT-2 on made-up text under a cap of memory: without a plan it is exceeded, with neap the model trains within it.

python examples/torch/example.py                   the cap is half of what eager training takes
python examples/torch/example.py --cap 30MiB --layers 8 --report report.html
"""

import argparse

import torch
import torch.nn.functional as F
import transformers

import neap_torch
from neap_torch.measure import peak_of


class Step(torch.nn.Module):
    def __init__(self, layers: int, width: int):
        super().__init__()
        config = transformers.GPT2Config(
            vocab_size=512, n_embd=width, n_layer=layers, n_head=4, n_positions=256, resid_pdrop=0.0, embd_pdrop=0.0,
            attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
        )  # fmt: skip
        self.net = transformers.GPT2LMHeadModel(config)

    def forward(self, ids):
        logits = self.net(input_ids=ids, use_cache=False).logits
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def checked(name: str, step, resident: list, cap: int) -> None:
    """A step as torch's profiler sees it. Raises MemoryError beyond the cap, as a GPU of that size would."""
    peak = peak_of(step, resident)
    if peak > cap:
        raise MemoryError(f"{name}: {peak:,} bytes, of a cap of {cap:,}")
    print(f"{name}: {peak:,} bytes, within the cap of {cap:,}")


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--cap", help="bytes of a step, as 30MiB; by default half of what eager training takes")
    options.add_argument("--steps", type=int, default=5)
    options.add_argument("--layers", type=int, default=4)
    options.add_argument("--width", type=int, default=128)
    options.add_argument("--report", help="an HTML page")
    given = options.parse_args()

    torch.manual_seed(0)
    model = Step(given.layers, given.width)
    text = torch.randint(0, 512, (8, 129)).cumsum(1) % 512  # made up
    resident = [*model.parameters(), *model.buffers(), text]

    def step_of(forward):
        def step():
            model.zero_grad()
            forward(text).backward()
            return model.zero_grad()

        step()  # what is made once is made
        return step

    eager = step_of(model)
    cap = neap_torch.limits.parse_bytes(given.cap) if given.cap else peak_of(eager, resident) // 2
    try:
        checked("without a plan", eager, resident, cap)
    except MemoryError as too_much:
        print(too_much)

    limited = neap_torch.compile(model, cap)
    checked("with a plan", step_of(limited), resident, cap)
    print(limited.neap_report)
    if given.report:
        limited.neap_report.save(given.report)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for i in range(given.steps):
        loss = limited(text)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {i}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
