"""PyTorch's side of bench/step_time.cpp: the same models on the CPU, forward + backward + update + zero_grad.

    python step_time_torch.py [--model mlp,cnn,gpt] [--optimizer adamw|sgd] [--threads 2] [--steps 30]

One CSV row a model and way: model, way (torch: eager; with -channels: channels-last images and weights; with -sdpa:
scaled_dot_product_attention instead of plain attention; with -compile: torch.compile; with -fused: the optimizer has
fused=True), optimizer, threads, step_ms (median), min_ms, cpu_ms (processor time of all threads, median), peak_bytes.
--ways takes only those whose names contain one of the given texts. The peak is what the profiler saw allocated within one
step beyond its start, added to what is resident: weights, buffers, states and batch. Gradients are freed by zero_grad
before the step begins.
"""
import argparse, sys, time, warnings
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


class ConvNorm(nn.Sequential):
    def __init__(self, i, o, size, stride):
        super().__init__(nn.Conv2d(i, o, size, stride, size // 2, bias=False), nn.BatchNorm2d(o))


class ResNetBlock(nn.Module):
    def __init__(self, units, shortcut):
        super().__init__()
        self.units, self.shortcut = nn.ModuleList(units), shortcut

    def forward(self, x):
        y = x
        for i, u in enumerate(self.units):
            y = u(y) if i + 1 == len(self.units) else F.relu(u(y), inplace=True)
        return F.relu(y + (self.shortcut(x) if self.shortcut else x), inplace=True)


class ResNet(nn.Module):
    def __init__(self, blocks, bottleneck, width=64, classes=1000):
        super().__init__()
        self.stem, i, layers = ConvNorm(3, width, 7, 2), width, []
        for s, n in enumerate(blocks):
            for b in range(n):
                m = width << s
                o, stride = (4 * m if bottleneck else m), (2 if s and b == 0 else 1)
                units = [(i, m, 1, 1), (m, m, 3, stride), (m, o, 1, 1)] if bottleneck else [(i, m, 3, stride), (m, o, 3, 1)]
                short = ConvNorm(i, o, 1, stride) if stride != 1 or i != o else None
                layers.append(ResNetBlock([ConvNorm(*u) for u in units], short))
                i = o
        self.blocks, self.head = nn.Sequential(*layers), nn.Linear(i, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.stem(x), inplace=True), 3, 2, 1)
        return self.head(self.blocks(x).mean((2, 3)))


class VGG(nn.Module):
    def __init__(self, stages, hidden=4096, classes=1000):
        super().__init__()
        layers, i = [], 3
        for stage in stages:
            for o in stage:
                layers += [nn.Conv2d(i, o, 3, 1, 1), nn.ReLU(inplace=True)]
                i = o
            layers.append(nn.MaxPool2d(2, 2))
        self.features = nn.Sequential(*layers)
        self.fc = nn.Sequential(nn.Linear(i * 49, hidden), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(hidden, hidden),
                                nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(hidden, classes))

    def forward(self, x):
        return self.fc(F.adaptive_avg_pool2d(self.features(x), 7).flatten(1))


class DenseUnit(nn.Module):
    def __init__(self, i, o, size):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(i), nn.Conv2d(i, o, size, 1, size // 2, bias=False)

    def forward(self, x):
        return self.conv(F.relu(self.norm(x), inplace=True))


class DenseNet(nn.Module):
    def __init__(self, layers=(6, 12, 24, 16), growth=32, width=64, classes=1000):
        super().__init__()
        self.stem, self.stem_norm = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        self.stages, self.transitions = nn.ModuleList(), nn.ModuleList()
        for s, n in enumerate(layers):
            self.stages.append(nn.ModuleList())
            for _ in range(n):
                self.stages[-1].append(nn.Sequential(DenseUnit(width, 4 * growth, 1), DenseUnit(4 * growth, growth, 3)))
                width += growth
            if s + 1 < len(layers):
                self.transitions.append(DenseUnit(width, width // 2, 1))
                width //= 2
        self.norm, self.head = nn.BatchNorm2d(width), nn.Linear(width, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.stem_norm(self.stem(x)), inplace=True), 3, 2, 1)
        for s, stage in enumerate(self.stages):
            all = [x]
            for l in stage:
                all.append(l(torch.cat(all, 1)))
            x = torch.cat(all, 1)
            if s < len(self.transitions):
                x = F.avg_pool2d(self.transitions[s](x), 2, 2)
        return self.head(F.relu(self.norm(x), inplace=True).mean((2, 3)))


class DoubleConv(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(ConvNorm(i, o, 3, 1), nn.ReLU(inplace=True), ConvNorm(o, o, 3, 1), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, width=32, depth=4, classes=2):
        super().__init__()
        self.down = nn.ModuleList(DoubleConv(3 if i == 0 else width << (i - 1), width << i) for i in range(depth + 1))
        self.up = nn.ModuleList(DoubleConv((width << i) + (width << (i + 1)), width << i) for i in range(depth))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        level = []
        for i, d in enumerate(self.down):
            x = d(F.max_pool2d(x, 2) if i else x)
            level.append(x)
        for i in reversed(range(len(self.up))):
            x = self.up[i](torch.cat([level[i], F.interpolate(x, scale_factor=2, mode="nearest")], 1))
        return self.head(x).permute(0, 2, 3, 1)


class Block(nn.Module):
    """A transformer's block, norms before or after."""

    def __init__(self, d, h, hidden, sdpa, norm_first=True, dropout=0.0, eps=1e-6):
        super().__init__()
        self.ln1, self.qkv, self.proj = nn.LayerNorm(d, eps), nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ln2, self.up, self.down = nn.LayerNorm(d, eps), nn.Linear(d, hidden), nn.Linear(hidden, d)
        self.h, self.sdpa, self.norm_first, self.drop = h, sdpa, norm_first, nn.Dropout(dropout)

    def attend(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(q, k, v) if self.sdpa else ((q @ k.transpose(-1, -2)) * (d // self.h) ** -0.5).softmax(-1) @ v
        return self.drop(self.proj(a.transpose(1, 2).reshape(b, t, d)))

    def forward(self, x):
        if self.norm_first:
            x = x + self.attend(self.ln1(x))
            return x + self.drop(self.down(F.gelu(self.up(self.ln2(x)))))
        x = self.ln1(x + self.attend(x))
        return self.ln2(x + self.drop(self.down(F.gelu(self.up(x)))))


class ViT(nn.Module):
    def __init__(self, sdpa, d=384, n=12, h=12, hidden=3072, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, d, 16, 16)
        self.token, self.positions = nn.Parameter(torch.zeros(1, 1, d)), nn.Parameter(torch.zeros(1, 197, d))
        self.blocks = nn.Sequential(*(Block(d, h, hidden, sdpa) for _ in range(n)))
        self.norm, self.head = nn.LayerNorm(d, 1e-6), nn.Linear(d, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class BERT(nn.Module):
    def __init__(self, sdpa, d=512, n=8, h=8, hidden=3072, vocab=30522, context=512, dropout=0.1):
        super().__init__()
        self.tokens, self.positions, self.segments = nn.Embedding(vocab, d), nn.Embedding(context, d), nn.Embedding(2, d)
        for e in (self.tokens, self.positions, self.segments):
            nn.init.normal_(e.weight, 0, 0.02)
        self.norm, self.drop = nn.LayerNorm(d, 1e-12), nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(Block(d, h, hidden, sdpa, False, dropout, 1e-12) for _ in range(n)))
        self.transform, self.head_norm, self.head_bias = nn.Linear(d, d), nn.LayerNorm(d, 1e-12), nn.Parameter(torch.zeros(vocab))

    def forward(self, x):
        x = self.tokens(x) + self.positions.weight[: x.shape[1]] + self.segments.weight[0]
        x = self.head_norm(F.gelu(self.transform(self.blocks(self.drop(self.norm(x))))))
        return F.linear(x, self.tokens.weight, self.head_bias)


class LlamaBlock(nn.Module):
    def __init__(self, d, h, hidden, sdpa):
        super().__init__()
        self.n1, self.n2, self.h, self.sdpa = nn.RMSNorm(d, 1e-5), nn.RMSNorm(d, 1e-5), h, sdpa
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.gate, self.up, self.down = nn.Linear(d, hidden, bias=False), nn.Linear(d, hidden, bias=False), nn.Linear(hidden, d, bias=False)

    def forward(self, x, cos, sin):
        b, t, d = x.shape
        turn = lambda v: v * cos + torch.cat([v[..., d // self.h // 2 :], v[..., : d // self.h // 2]], -1) * sin
        n = self.n1(x)
        q, k, v = (l(n).view(b, t, self.h, d // self.h).transpose(1, 2) for l in (self.q, self.k, self.v))
        q, k = turn(q), turn(k)
        if self.sdpa:
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            a = (q @ k.transpose(-1, -2)) * (d // self.h) ** -0.5
            a = a.masked_fill(torch.ones(t, t, dtype=torch.bool).tril().logical_not(), float("-inf")).softmax(-1) @ v
        x = x + self.o(a.transpose(1, 2).reshape(b, t, d))
        m = self.n2(x)
        return x + self.down(F.silu(self.gate(m)) * self.up(m))


class Llama(nn.Module):
    def __init__(self, sdpa, d=512, n=6, h=8, hidden=1376, vocab=8192, t=128):
        super().__init__()
        self.tok, self.layers = nn.Embedding(vocab, d), nn.ModuleList(LlamaBlock(d, h, hidden, sdpa) for _ in range(n))
        self.norm, self.head = nn.RMSNorm(d, 1e-5), nn.Linear(d, vocab, bias=False)
        e = d // h
        angle = torch.arange(t)[:, None] * 10000.0 ** (-2 * (torch.arange(e) % (e // 2)) / e)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", torch.cat([-angle.sin()[:, : e // 2], angle.sin()[:, e // 2 :]], 1))

    def forward(self, x):
        x = self.tok(x)
        for l in self.layers:
            x = l(x, self.cos, self.sin)
        return self.head(self.norm(x))


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


def measure(name, way, make, x, y, optimizer, a, channels_last=False, compiled=False):
    torch.manual_seed(42)
    m = make()
    if channels_last:
        m, x = m.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    opt = optimizer(m.parameters())
    loss_of = lambda: F.cross_entropy(m(x).flatten(0, -2), y.flatten())
    if compiled:
        torch._dynamo.reset()
        loss_of = torch.compile(loss_of)

    def step():
        loss = loss_of()
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


def images(n, size, classes=1000, targets=None):
    return lambda: (torch.rand(n, 3, size, size) * 2 - 1, torch.randint(classes, targets or (n,)))


def tokens(n, length, vocab):
    return lambda: (torch.randint(vocab, (n, length)), torch.randint(vocab, (n, length)))


# name -> (model, given whether attention is fused; sample; kind: "" plain, "image" convolutions, "attention")
MODELS = {
    "mlp": (lambda _: MLP(), lambda: (torch.rand(256, 1024) * 2 - 1, torch.randint(1024, (256,))), ""),
    "cnn": (lambda _: CNN(), images(64, 32, 10), "image"),
    "gpt": (lambda sdpa: GPT(sdpa), tokens(8, 128, 8192), "attention"),
    "resnet18": (lambda _: ResNet((2, 2, 2, 2), False), images(16, 224), "image"),
    "vit": (lambda sdpa: ViT(sdpa), images(8, 224), "attention"),
    "bert": (lambda sdpa: BERT(sdpa), tokens(8, 128, 30522), "attention"),
    "resnet50": (lambda _: ResNet((3, 4, 6, 3), True), images(8, 224), "image"),
    "vgg11": (lambda _: VGG(((64,), (128,), (256, 256), (512, 512), (512, 512))), images(8, 224), "image"),
    "densenet121": (lambda _: DenseNet(), images(8, 224), "image"),
    "unet": (lambda _: UNet(), images(4, 128, 2, (4, 128, 128)), "image"),
    "llama": (lambda sdpa: Llama(sdpa), tokens(8, 128, 8192), "attention"),
}


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--model", default="mlp,cnn,gpt")
    a.add_argument("--optimizer", default="adamw", choices=["adamw", "sgd"])
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--steps", type=int, default=30)
    a.add_argument("--ways", default="", help="only ways whose name contains one of these, split by commas")
    a.add_argument("--operators", action="store_true", help="print what the operators cost instead")
    a = a.parse_args()
    torch.set_num_threads(a.threads)
    kind = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[a.optimizer]
    optimizers = {"": lambda p: kind(p)}
    try:
        kind([torch.zeros(1)], fused=True)
        optimizers["-fused"] = lambda p: kind(p, fused=True)
    except Exception:
        pass
    if a.operators:
        for name in a.model.split(","):
            make, sample, form = MODELS[name]
            m = make(True)
            (x, y), opt = sample(), optimizers[list(optimizers)[-1]](m.parameters())
            if "channels" in a.ways:
                m, x = m.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
            def step():
                F.cross_entropy(m(x).flatten(0, -2), y.flatten()).backward()
                opt.step(), opt.zero_grad()
            for _ in range(5): step()
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as p:
                for _ in range(a.steps): step()
            print(name, p.key_averages(group_by_input_shape=True).table(sort_by="self_cpu_time_total", row_limit=60,
                  max_name_column_width=40, max_shapes_column_width=60))
        return
    print("model,way,optimizer,threads,step_ms,min_ms,cpu_ms,peak_bytes")
    for name in a.model.split(","):
        make, sample, form = MODELS[name]
        x, y = sample()
        for o, optimizer in optimizers.items():
            ways = [("torch", False, {})]
            if form == "attention":
                ways.append(("torch-sdpa", True, {}))
            if form == "image":
                ways.append(("torch-channels", False, {"channels_last": True}))
            if o == list(optimizers)[-1]:  # what takes long to compile, once
                ways.append(("torch-compile", False, {"compiled": True}))
                if form == "attention":
                    ways.append(("torch-sdpa-compile", True, {"compiled": True}))
                if form == "image":
                    ways.append(("torch-channels-compile", False, {"channels_last": True, "compiled": True}))
            for way, sdpa, how in ways:
                if a.ways and not any(w in way + o for w in a.ways.split(",")):
                    continue
                try:
                    measure(name, way + o, lambda: make(sdpa), x, y, optimizer, a, **how)
                except Exception as e:
                    if not how.get("compiled"):
                        raise
                    print(f"{name}, {way}: {type(e).__name__}: {str(e)[:300]}", file=sys.stderr)


main()
