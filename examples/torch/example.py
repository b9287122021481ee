"""GPT-2 on made-up text under a limit of memory.

python examples/torch/example.py            trains, and prints the peak that torch's profiler measures
python examples/torch/example.py --limit 0.5
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


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--limit", type=float, default=0.5, help="a ratio of the peak without a plan")
    options.add_argument("--steps", type=int, default=5)
    options.add_argument("--layers", type=int, default=4)
    options.add_argument("--width", type=int, default=128)
    given = options.parse_args()

    torch.manual_seed(0)
    model = Step(given.layers, given.width)
    text = torch.randint(0, 512, (8, 129)).cumsum(1) % 512  # made up
    resident = [*model.parameters(), *model.buffers(), text]
    model(text).backward()
    model.zero_grad()
    eager = peak_of(lambda: model(text).backward(), resident)
    model.zero_grad()

    limited = neap_torch.compile(model, given.limit, reserve=0)
    limited(text).backward()
    model.zero_grad()
    measured = peak_of(lambda: limited(text).backward(), resident)
    print(limited.neap_report)
    print(f"measured: {eager:,} bytes without a plan, {measured:,} with it")
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for i in range(given.steps):
        loss = limited(text)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {i}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
