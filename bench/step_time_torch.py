"""PyTorch's side of bench/step_time.cpp: the same three models, eager on the CPU, forward + backward + update + zero_grad.

    python step_time_torch.py [--model mlp,cnn,gpt] [--optimizer adamw|sgd] [--threads 2] [--steps 30]

One CSV row a model and way: model, way (torch: the optimizer as it is; torch-fused: fused=True where it exists; gpt also with
scaled_dot_product_attention instead of plain attention), optimizer, threads, step_ms (median), min_ms, cpu_ms (processor
time of all threads, median), peak_bytes. The peak is what the profiler saw allocated within one step beyond its start, added to what is
resident: weights, buffers, states and batch. Gradients are freed by zero_grad before the step begins.
"""
import argparse, time, warnings
import torch, torch.nn as nn, torch.nn.functional as F

warnings.filterwarnings("ignore")


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(4))

    def forward(self, x):
        for i, l in enumerate(self.layers):
            x = l(x) if i == 3 else F.relu(l(x))
        return x


class CNNBlock(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.c1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.b1 = nn.BatchNorm2d(o)
        self.c2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.b2 = nn.BatchNorm2d(o)
        self.sc = nn.Conv2d(i, o, 1, stride, bias=False) if stride != 1 or i != o else nn.Identity()

    def forward(self, x):
        return F.relu(self.b2(self.c2(F.relu(self.b1(self.c1(x))))) + self.sc(x))


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.layers = nn.ModuleList([CNNBlock(16, 16, 1), CNNBlock(16, 32, 2), CNNBlock(32, 64, 2)])
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for l in self.layers:
            x = l(x)
        return self.fc(x.mean((2, 3)))


class GPTBlock(nn.Module):
    def __init__(self, d, h, sdpa):
        super().__init__()
        self.ln1, self.qkv, self.proj = nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ln2, self.up, self.down = nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.h, self.sdpa = h, sdpa

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4).unbind(0)
        if self.sdpa:
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            a = (q @ k.transpose(-1, -2)) * (d // self.h) ** -0.5
            a = a.masked_fill(torch.ones(t, t, dtype=torch.bool).tril().logical_not(), float("-inf")).softmax(-1) @ v
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, sdpa, d=256, n=4, h=8, vocab=8192, t=128):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Parameter(torch.zeros(t, d))
        self.layers = nn.ModuleList(GPTBlock(d, h, sdpa) for _ in range(n))
        self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)

    def forward(self, x):
        x = self.tok(x) + self.pos
        for l in self.layers:
            x = l(x)
        return self.head(self.ln(x))


def peak_bytes(step, resident):
    """The most allocated at once within a step, by the profiler's memory events, with what is resident."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as p:
        step()
    live = peak = 0
    for e in p.profiler.kineto_results.events():
        if e.name() == "[memory]":
            live += e.nbytes()
            peak = max(peak, live)
    return resident + peak


def measure(name, way, make, x, y, optimizer, a):
    torch.manual_seed(42)
    m = make()
    opt = optimizer(m.parameters())

    def step():
        loss = F.cross_entropy(m(x).flatten(0, -2), y.flatten())
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        return loss

    for _ in range(3):
        loss = step()
    assert torch.isfinite(loss)
    del loss
    wall, cpu = [], []
    for _ in range(a.steps):
        w, c = time.perf_counter(), time.process_time()
        float(step())
        wall.append(1e3 * (time.perf_counter() - w)), cpu.append(1e3 * (time.process_time() - c))
    tensors = list(m.parameters()) + list(m.buffers()) + [x, y]
    tensors += [t for s in opt.state.values() for t in s.values() if torch.is_tensor(t)]
    peak = peak_bytes(step, sum(t.numel() * t.element_size() for t in tensors))
    median = lambda v: sorted(v)[len(v) // 2]
    print(f"{name},{way},{a.optimizer},{a.threads},{median(wall):.3f},{min(wall):.3f},{median(cpu):.3f},{peak}", flush=True)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--model", default="mlp,cnn,gpt")
    a.add_argument("--optimizer", default="adamw", choices=["adamw", "sgd"])
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--steps", type=int, default=30)
    a.add_argument("--operators", action="store_true", help="print what the operators cost instead")
    a = a.parse_args()
    torch.set_num_threads(a.threads)
    models = {
        "mlp": (MLP, lambda: (torch.rand(256, 1024) * 2 - 1, torch.randint(1024, (256,)))),
        "cnn": (CNN, lambda: (torch.rand(64, 3, 32, 32) * 2 - 1, torch.randint(10, (64,)))),
        "gpt": (lambda: GPT(False), lambda: (torch.randint(8192, (8, 128)), torch.randint(8192, (8, 128)))),
    }
    kind = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[a.optimizer]
    optimizers = {"": lambda p: kind(p)}
    try:
        kind([torch.zeros(1)], fused=True)
        optimizers["-fused"] = lambda p: kind(p, fused=True)
    except Exception:
        pass
    if a.operators:
        for name in a.model.split(","):
            make, sample = models[name]
            m = GPT(True) if name == "gpt" else make()
            (x, y), opt = sample(), optimizers[list(optimizers)[-1]](m.parameters())
            def step():
                F.cross_entropy(m(x).flatten(0, -2), y.flatten()).backward()
                opt.step(), opt.zero_grad()
            for _ in range(5): step()
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as p:
                for _ in range(a.steps): step()
            print(name, p.key_averages(group_by_input_shape=True).table(sort_by="self_cpu_time_total", row_limit=28,
                  max_name_column_width=40, max_shapes_column_width=60))
        return
    print("model,way,optimizer,threads,step_ms,min_ms,cpu_ms,peak_bytes")
    for name in a.model.split(","):
        make, sample = models[name]
        x, y = sample()
        for o, optimizer in optimizers.items():
            measure(name, "torch" + o, make, x, y, optimizer, a)
            if name == "gpt":
                measure(name, "torch-sdpa" + o, lambda: GPT(True), x, y, optimizer, a)


main()
