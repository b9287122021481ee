"""Models that the tests train, small, and their batches."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, d, heads, drop):
        super().__init__()
        self.heads, self.drop = heads, drop
        self.norm_1, self.norm_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + F.dropout(self.out(a), self.drop, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm_2(x)))), self.drop, self.training)


class Gpt(nn.Module):
    """Tied weights, an embedding with padding, perhaps dropout."""

    def __init__(self, d=64, layers=3, words=200, length=64, drop=0.0, heads=4):
        super().__init__()
        self.drop = drop
        self.words, self.places = nn.Embedding(words, d, padding_idx=0), nn.Embedding(length, d)
        self.blocks = nn.ModuleList(Block(d, heads, drop) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids, targets):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        x = F.dropout(x, self.drop, self.training)
        for b in self.blocks:
            x = b(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class Classes(nn.Module):
    """A net of images beside the loss of its classes."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, images, labels):
        return F.cross_entropy(self.net(images), labels)


class Words(nn.Module):
    """A net of transformers beside the loss of the words that it is given."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, ids):
        return F.cross_entropy(self.net(input_ids=ids).logits.flatten(0, 1), ids.flatten())


class Cnn(nn.Module):
    """Batch norm: buffers that the forward half changes."""

    def __init__(self, c=16):
        super().__init__()
        self.conv_1, self.conv_2, self.conv_3 = (
            nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, 2 * c, 3, stride=2, padding=1),
        )  # fmt: skip
        self.norm_1, self.norm_2, self.norm_3 = nn.BatchNorm2d(c), nn.BatchNorm2d(c), nn.BatchNorm2d(2 * c)
        self.more = nn.ModuleList(nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c)) for _ in range(3))
        self.head = nn.Linear(2 * c, 10)

    def forward(self, x, labels):
        x = F.relu(self.norm_1(self.conv_1(x)))
        x = F.relu(self.norm_2(self.conv_2(x)) + x)
        for block in self.more:
            x = F.relu(block(x) + x)
        x = F.max_pool2d(F.relu(self.norm_3(self.conv_3(x))), 2)
        return F.cross_entropy(self.head(x.mean((2, 3))), labels)


class Losses(nn.Module):
    """Several losses, an input and buffers that it changes, a view among the results."""

    def __init__(self, d=64):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, 8)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("average", torch.zeros(d))

    def forward(self, x, memory):
        h = torch.tanh(self.a(x))
        self.count += 1
        self.average.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)
        memory.add_(h.detach())
        h = torch.tanh(self.b(torch.sigmoid(h) * 2))
        z = self.c(h)
        return z.square().mean(), self.a.weight.square().mean() + memory.view(-1, 4).square().mean(), z.view(-1)


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(64, 4, 0.0) for _ in range(3))

    def forward(self, x):
        for b in self.blocks:
            x = torch.utils.checkpoint.checkpoint(b, x, use_reentrant=False)
        return x.square().mean()


@torch.library.custom_op("neap_tests::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by


scaled.register_fake(lambda x, by: torch.empty_like(x))
scaled.register_autograd(
    lambda ctx, g: (scaled(g, ctx.by), None), setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1])
)


class Custom(nn.Module):
    """An op of the user's own, and a branch on a tensor."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = scaled(F.gelu(layer(x)), 0.5) + x
        x = torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,))
        return x.square().mean()


def words(i, b=4, t=64, n=200):
    return torch.randint(0, n, (b, t)), torch.randint(0, n, (b, t))


def images(i, b=4, s=16):
    return torch.randn(b, 3, s, s), torch.randint(0, 10, (b,))


def rows(i):
    return (torch.randn(128, 64, requires_grad=False),)


# name: model, batch of step i, loss of the results, the smallest ratio of the peak that it is trained at
MODELS = {
    "gpt": (Gpt, words, None, 0.5),
    "dropout": (lambda: Gpt(drop=0.1), words, None, 0.6),
    "cnn": (Cnn, images, None, 0.8),
    "losses": (
        Losses,
        lambda i: (torch.randn(256, 64), torch.randn(256, 64)),
        lambda r: r[0] + 2 * r[1] + r[2].mean(),
        0.8,
    ),
    "custom": (Custom, rows, None, 0.8),
    "checkpointed": (Checkpointed, lambda i: (torch.randn(4, 48, 64),), None, 0.8),
}
