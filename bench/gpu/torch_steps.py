"""Training steps by PyTorch on a GPU, for bench/gpu/check.sh: rows as those of `gpu_check steps`, of the same models, batches,
optimizers and precision. Eager and compiled, without a limit and with half of it: eager by checkpointing each block, compiled
by an activation budget of 0.5. Each row runs in a process of its own with a time limit; what has no time left, or lacks
PyTorch, is a row that states so.

  torch_steps.py [toys|small|full] [--device cuda|cpu] [--seconds N] [--row-seconds N] [--steps N] [--only MODEL,WAY,LIMIT]

Exit status 0: no row that ran has failed; 2: there is no PyTorch, or no GPU for it.
"""

import argparse
import os
import signal
import subprocess
import sys
import time

COLUMNS = "device,model,way,limit,steps,step_ms,peak_bytes,loss,result"
# In order of worth: what is last has no time left first.
WAYS = [("torch eager", "none"), ("torch compile", "none"), ("torch eager", "0.5"), ("torch compile", "0.5")]
# name: kind, batch, then of GPTs length, vocabulary, width, heads, layers; of ResNets size, classes, width, blocks, small images
MODELS = {
    "toys": {
        "gpt toy": ("gpt", 2, 8, 16, 16, 2, 2),
        "resnet toy": ("resnet", 2, 8, 4, 4, ((1, 1), False), True),
    },
    "small": {"tiny gpt": ("gpt", 8, 64, 512, 128, 4, 4)},
    "full": {
        "gpt2 small b8": ("gpt", 8, 1024, 50257, 768, 12, 12),
        "resnet50 b64": ("resnet", 64, 224, 1000, 64, ((3, 4, 6, 3), True), False),
        "gpt2 medium b4": ("gpt", 4, 1024, 50257, 1024, 16, 24),
    },
}


def build(shape, checkpointed):
    """The model, a function from the number of a step to its batch on the host, and whether images are channels-last."""
    import math

    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    from torch.utils.checkpoint import checkpoint

    run = (lambda block, x: checkpoint(block, x, use_reentrant=False)) if checkpointed else (lambda block, x: block(x))

    class Block(nn.Module):
        def __init__(self, width, heads, layers):
            super().__init__()
            self.heads = heads
            self.ln1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.ln2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            narrow = 0.02 / math.sqrt(2 * layers)
            for layer, deviation in ((self.qkv, 0.02), (self.out, narrow), (self.up, 0.02), (self.down, narrow)):
                nn.init.normal_(layer.weight, 0, deviation)
                nn.init.zeros_(layer.bias)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.ln1(x)).split(d, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
            return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self, length, vocabulary, width, heads, layers):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            for e in (self.tokens, self.positions):
                nn.init.normal_(e.weight, 0, 0.02)
            self.blocks = nn.ModuleList(Block(width, heads, layers) for _ in range(layers))
            self.norm = nn.LayerNorm(width)

        def forward(self, ids):
            x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
            for block in self.blocks:
                x = run(block, x)
            return F.linear(self.norm(x), self.tokens.weight).flatten(0, 1)

    class Unit(nn.Sequential):
        def __init__(self, i, o, size, stride):
            super().__init__(nn.Conv2d(i, o, size, stride, size // 2, bias=False), nn.BatchNorm2d(o))
            nn.init.kaiming_normal_(self[0].weight, mode="fan_out")

    class Residual(nn.Module):
        def __init__(self, units, shortcut):
            super().__init__()
            self.units, self.shortcut = nn.ModuleList(units), shortcut

        def forward(self, x):
            y = x
            for i, unit in enumerate(self.units):
                y = unit(y)
                if i + 1 < len(self.units):
                    y = F.relu(y)
            return F.relu(y + (self.shortcut(x) if self.shortcut else x))

    class ResNet(nn.Module):
        def __init__(self, classes, width, blocks, small_images):
            super().__init__()
            counts, bottleneck = blocks
            self.small_images = small_images
            self.stem = Unit(3, width, 3, 1) if small_images else Unit(3, width, 7, 2)
            i, layers = width, []
            for stage, count in enumerate(counts):
                for n in range(count):
                    m = width << stage
                    o, stride = (4 * m if bottleneck else m), (2 if stage and n == 0 else 1)
                    wide = [(i, m, 1, 1), (m, m, 3, stride), (m, o, 1, 1)] if bottleneck else [(i, m, 3, stride), (m, o, 3, 1)]
                    short = Unit(i, o, 1, stride) if stride != 1 or i != o else None
                    layers.append(Residual([Unit(*u) for u in wide], short))
                    i = o
            self.blocks, self.head = nn.ModuleList(layers), nn.Linear(i, classes)

        def forward(self, x):
            x = F.relu(self.stem(x))
            if not self.small_images:
                x = F.max_pool2d(x, 3, 2, 1)
            for block in self.blocks:
                x = run(block, x)
            return self.head(x.mean((2, 3)))

    kind, batch = shape[:2]
    if kind == "gpt":
        length, vocabulary = shape[2:4]

        def tokens(step):
            g = torch.Generator().manual_seed(step)
            draw = lambda: torch.randint(vocabulary, (batch, length), generator=g)
            return draw(), draw()

        return GPT(*shape[2:]), tokens, False
    size, classes = shape[2:4]

    def images(step):
        labels = (torch.arange(batch) * 7 + step) % classes
        return torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(step)), labels

    return ResNet(*shape[3:]), images, True


def measure(shape, way, limit, steps, device):
    """Prints the fields from steps_ms on, in this process."""
    import torch
    import torch.nn.functional as F

    torch.manual_seed(1)
    compiled = way == "torch compile"
    model, batches, is_images = build(shape, limit == "0.5" and not compiled)
    model = model.to(device)
    if is_images and device == "cuda":
        model = model.to(memory_format=torch.channels_last)
    if compiled and limit == "0.5":
        import torch._functorch.config

        torch._functorch.config.activation_memory_budget = 0.5
    # The optimizer of all of neap's rows: its AdamW has these defaults.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, fused=True)

    def loss_of(x, y):
        with torch.autocast(device, dtype=torch.bfloat16):
            return F.cross_entropy(model(x), y.flatten())

    if compiled:
        loss_of = torch.compile(loss_of)
    on_gpu = device == "cuda"

    def step(x, y):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        if is_images and on_gpu:
            x = x.to(memory_format=torch.channels_last)
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()  # waits for the step

    data = [tuple(t.pin_memory() if on_gpu else t for t in batches(i)) for i in range(4)]
    warm_up, seconds = 3, []
    for i in range(warm_up + steps):
        if i == warm_up and on_gpu:
            torch.cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        loss = step(*data[i % 4])
        if i >= warm_up:
            seconds.append(time.perf_counter() - begin)
    peak = torch.cuda.max_memory_allocated() if on_gpu else ""
    print(f"{1e3 * sorted(seconds)[len(seconds) // 2]:.3f},{peak},{loss:.6g}")


def run_row(command, seconds):
    """Exit status, stdout and stderr, or None after so many seconds. Ends what the row has started (compilers) with it."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def end(*_):
        os.killpg(child.pid, signal.SIGKILL)
        sys.exit(1)

    before = signal.signal(signal.SIGTERM, end)
    try:
        out, err = child.communicate(timeout=seconds)
        return child.returncode, out, err
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return None
    finally:
        signal.signal(signal.SIGTERM, before)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("size", nargs="?", default="full", choices=list(MODELS))
    a.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    limit = float(os.environ.get("NEAP_PART_LIMIT", 150))  # of check.sh
    a.add_argument("--seconds", type=float, default=max(limit - 2, 1), help="of all rows together")
    a.add_argument("--row-seconds", type=float, default=60, help="of one row at most")
    a.add_argument("--steps", type=int, default=20, help="that count, after 3 that do not")
    a.add_argument("--only", help="one row, in this process: MODEL,WAY,LIMIT")
    a = a.parse_args()
    if a.steps < 1:
        sys.exit("torch_steps.py: --steps: at least 1")
    if a.only:
        fields = a.only.split(",")
        if len(fields) != 3 or fields[0] not in MODELS[a.size] or tuple(fields[1:]) not in WAYS:
            sys.exit(f'torch_steps.py: --only: "{a.only}" is no row of the size {a.size}')
        measure(MODELS[a.size][fields[0]], fields[1], fields[2], a.steps, a.device)
        return

    begin = time.monotonic()
    why = device = ""
    try:
        import torch

        if a.device == "cuda" and not torch.cuda.is_available():
            why = "torch finds no GPU"
        else:
            device = torch.cuda.get_device_name() if a.device == "cuda" else "cpu"
    except (ImportError, OSError) as e:  # the second: of a library that it needs
        why = "no torch" if isinstance(e, ModuleNotFoundError) else f"torch: {e}".splitlines()[0].replace(",", ";")
    print(COLUMNS, flush=True)
    failed, right = False, 0
    for way, limit in WAYS:
        for name in MODELS[a.size]:
            left = min(a.row_seconds, a.seconds - (time.monotonic() - begin))
            fields, result = f"{a.steps},,,", "ok"
            if why or left < 1:
                result = f"not run: {why or 'no time is left'}"
            else:
                own = [sys.executable, __file__, a.size, "--device", a.device, "--steps", str(a.steps)]
                done = run_row(own + ["--only", f"{name},{way},{limit}"], left)
                if done is None:
                    result = f"not run: takes longer than {left:.0f} s"
                elif done[0] == 0:
                    right += 1
                    fields = f"{a.steps},{done[1].strip().splitlines()[-1]}"
                else:
                    last = (done[2].strip().splitlines() or ["no message"])[-1]
                    result, failed = "failed: " + last.replace('"', "'").replace(",", ";")[:200], True
            quote = "" if result == "ok" else '"'
            print(f"{device},{name},{way},{limit},{fields},{quote}{result}{quote}", flush=True)
    rows = len(WAYS) * len(MODELS[a.size])
    print(why or f"{right} of {rows} rows ran", file=sys.stderr)
    sys.exit(2 if why else 1 if failed else 0)


if __name__ == "__main__":
    main()
