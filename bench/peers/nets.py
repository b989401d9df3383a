"""The networks that bench/works names, in PyTorch, as Cohort's models of the same names."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class MnistNet(nn.Module):
    """Two convolutions and two linear layers: 21,840 parameters."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.drop2 = nn.Dropout2d(0.5)
        self.fc1 = nn.Linear(320, 50)
        self.drop1 = nn.Dropout(0.5)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.drop2(self.conv2(x)), 2))
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(self.drop1(x))


def lenet5():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
        nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def psgd_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(16, 32, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Dropout(0.4), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 256), nn.Linear(256, 10))


def conv_bn_relu(cin, cout, kernel=3, stride=1, bias=False):
    return nn.Sequential(nn.Conv2d(cin, cout, kernel, stride, (kernel - 1) // 2, bias=bias),
                         nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class Residual(nn.Module):
    def __init__(self, *body):
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x):
        return self.body(x) + x


def resnet9():
    def c(*args):
        return conv_bn_relu(*args, bias=True)

    return nn.Sequential(
        c(3, 16, 7, 4), c(16, 32, 3, 2), Residual(c(32, 32), c(32, 32)),
        c(32, 64, 3, 2), c(64, 128, 3, 2), Residual(c(128, 128), c(128, 128)),
        nn.Flatten(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


class Scale(nn.Module):
    def forward(self, x):
        return x * 0.125


def resnet9_wide(w=64):
    c = conv_bn_relu
    return nn.Sequential(
        c(3, w), c(w, 2 * w), nn.MaxPool2d(2), Residual(c(2 * w, 2 * w), c(2 * w, 2 * w)),
        c(2 * w, 4 * w), nn.MaxPool2d(2), c(4 * w, 8 * w), nn.MaxPool2d(2),
        Residual(c(8 * w, 8 * w), c(8 * w, 8 * w)), nn.MaxPool2d(4), nn.Flatten(),
        nn.Linear(8 * w, 10, bias=False), Scale())


class Block(nn.Module):
    """A residual block of He et al.; its stride is in the 3x3 convolution, as torchvision's."""

    def __init__(self, cin, width, stride, bottleneck):
        super().__init__()
        cout = 4 * width if bottleneck else width
        if bottleneck:
            self.body = nn.Sequential(conv_bn_relu(cin, width, 1),
                                      conv_bn_relu(width, width, 3, stride),
                                      nn.Conv2d(width, cout, 1, bias=False), nn.BatchNorm2d(cout))
        else:
            self.body = nn.Sequential(conv_bn_relu(cin, width, 3, stride),
                                      nn.Conv2d(width, cout, 3, 1, 1, bias=False),
                                      nn.BatchNorm2d(cout))
        self.skip = nn.Identity() if stride == 1 and cin == cout else nn.Sequential(
            nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.body(x) + self.skip(x))


def resnet(depths, bottleneck, classes, cifar_stem=False):
    stem = [conv_bn_relu(3, 64)] if cifar_stem else [conv_bn_relu(3, 64, 7, 2),
                                                     nn.MaxPool2d(3, 2, 1)]
    blocks, cin = [], 64
    for stage, depth in enumerate(depths):
        for i in range(depth):
            blocks.append(Block(cin, 64 << stage, 2 if stage and not i else 1, bottleneck))
            cin = (64 << stage) * (4 if bottleneck else 1)
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(cin, classes))


class MnistExample(nn.Module):
    """The network of PyTorch's MNIST example: 1,199,882 parameters."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.drop1 = nn.Dropout(0.25)
        self.fc1 = nn.Linear(9216, 128)
        self.drop2 = nn.Dropout(0.5)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        x = self.drop1(F.max_pool2d(x, 2)).flatten(1)
        return self.fc2(self.drop2(F.relu(self.fc1(x))))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def alexnet(classes=10):
    """As torchvision's."""
    return nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        nn.AdaptiveAvgPool2d(6), nn.Flatten(),
        nn.Dropout(), nn.Linear(9216, 4096), nn.ReLU(inplace=True),
        nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, classes))


def vgg(depths, batch_norm, classes=10):
    """As torchvision's."""
    layers, cin = [], 3
    for stage, depth in enumerate(depths):
        cout = min(64 << stage, 512)
        for _ in range(depth):
            layers.append(nn.Conv2d(cin, cout, 3, padding=1))
            if batch_norm:
                layers.append(nn.BatchNorm2d(cout))
            layers.append(nn.ReLU(inplace=True))
            cin = cout
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(),
        nn.Linear(25088, 4096), nn.ReLU(inplace=True), nn.Dropout(),
        nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, classes))


class Gpt2Block(nn.Module):
    def __init__(self, width, heads, layers):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.attn_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        for linear in (self.c_attn, self.attn_proj, self.c_fc, self.mlp_proj):
            added = linear in (self.attn_proj, self.mlp_proj)
            nn.init.normal_(linear.weight, std=0.02 / (math.sqrt(2 * layers) if added else 1))
            nn.init.zeros_(linear.bias)

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_proj(y.transpose(1, 2).reshape(n, t, width))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """GPT-2 with tied weights, without dropout; logits (samples, vocab, context)."""

    def __init__(self, layers, heads, width, context, vocab):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.h = nn.Sequential(*[Gpt2Block(width, heads, layers) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)
        for table in (self.wte, self.wpe):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, token):
        x = self.ln_f(self.h(self.wte(token) + self.wpe.weight))
        return F.linear(x, self.wte.weight).transpose(1, 2)


class LlamaBlock(nn.Module):
    def __init__(self, width, hidden, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        shared = width // heads * kv_heads
        self.norm_1, self.norm_2 = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)
        self.q, self.o = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(width, shared, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, turn):
        h = self.norm_1(x)
        q, k, v = (part(h).unflatten(2, (n, -1)).transpose(1, 2)
                   for part, n in ((self.q, self.heads), (self.k, self.kv_heads),
                                   (self.v, self.kv_heads)))
        # Repeated, as scaled_dot_product_attention with enable_gqa makes a matrix of all pairs.
        k, v = (part.repeat_interleave(self.heads // self.kv_heads, 1) for part in (turn(k), v))
        y = F.scaled_dot_product_attention(turn(q), k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        h = self.norm_2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    """LLaMA with its own last layer; logits (samples, vocab, context)."""

    def __init__(self, layers, heads, kv_heads, width, hidden, context, vocab, theta=10000.0):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.h = nn.ModuleList([LlamaBlock(width, hidden, heads, kv_heads) for _ in range(layers)])
        self.norm, self.head = nn.RMSNorm(width, eps=1e-6), nn.Linear(width, vocab, bias=False)
        half = width // heads // 2
        angle = torch.arange(context)[:, None] * theta ** (-torch.arange(half) / half)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())
        for weight in self.parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=0.02)

    def turn(self, x):
        a, b = x.chunk(2, -1)
        return torch.cat([a * self.cos - b * self.sin, b * self.cos + a * self.sin], -1)

    def forward(self, token):
        x = self.embed(token)
        for block in self.h:
            x = block(x, self.turn)
        return self.head(self.norm(x)).transpose(1, 2)


class VitBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = self.qkv(self.ln_1(x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(y.transpose(1, 2).reshape(n, t, width))
        return x + self.mlp(self.ln_2(x))


class Vit(nn.Module):
    """As torchvision's VisionTransformer, for images of 224x224."""

    def __init__(self, layers, heads, width, patch, classes):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, width, patch, patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos = nn.Parameter(0.02 * torch.randn(1, (224 // patch) ** 2 + 1, width))
        self.h = nn.Sequential(*[VitBlock(width, heads) for _ in range(layers)])
        self.ln, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, classes)

    def forward(self, x):
        x = self.conv_proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], 1) + self.pos
        return self.head(self.ln(self.h(x))[:, 0])


# name: (network, shape of a sample, classes, parameters)
NETS = {
    "mnist-net": (MnistNet, (1, 28, 28), 10, 21840),
    "lenet5": (lenet5, (1, 28, 28), 10, 44426),
    "psgd-cnn": (psgd_cnn, (1, 32, 32), 10, 213194),
    "mnist-example": (MnistExample, (1, 28, 28), 10, 1199882),
    "mlp": (mlp, (1, 28, 28), 10, 101770),
    "alexnet": (alexnet, (3, 224, 224), 10, 57044810),
    "vgg11": (lambda: vgg((1, 1, 2, 2, 2), False), (3, 32, 32), 10, 128807306),
    "vgg16-bn": (lambda: vgg((2, 2, 3, 3, 3), True), (3, 32, 32), 10, 134309962),
    "resnet9": (resnet9, (3, 32, 32), 10, 431946),
    "resnet9-wide": (resnet9_wide, (3, 32, 32), 10, 6573120),
    "resnet18-cifar": (lambda: resnet((2, 2, 2, 2), False, 10, True), (3, 32, 32), 10, 11173962),
    "resnet18": (lambda: resnet((2, 2, 2, 2), False, 1000), (3, 224, 224), 1000, 11689512),
    "resnet50": (lambda: resnet((3, 4, 6, 3), True, 1000), (3, 224, 224), 1000, 25557032),
    "vit-s16": (lambda: Vit(12, 6, 384, 16, 1000), (3, 224, 224), 1000, 22050664),
    # Sequences of tokens: the shape is their context.
    "gpt2-char": (lambda: Gpt2(4, 4, 128, 64, 128), (64,), 128, 817920),
    "gpt2-small": (lambda: Gpt2(6, 6, 384, 256, 128), (256,), 128, 10795008),
    "gpt2-124m": (lambda: Gpt2(12, 12, 768, 512, 50257), (512,), 50257, 124046592),
    "llama-small": (lambda: Llama(6, 6, 2, 384, 1024, 256, 128), (256,), 128, 9540480),
}


def make(name):
    """The network, the shape of a sample and the number of classes."""
    build, shape, classes, parameters = NETS[name]
    net = build()
    assert sum(p.numel() for p in net.parameters()) == parameters, name
    return net, shape, classes


def max_norm(name):
    """What the norm of the gradient is clipped at; None: not."""
    return 1.0 if name.startswith(("gpt2", "llama", "vit")) else None


def optimizer(name, parameters):
    """The optimizer of the work's config; in one fused kernel where this PyTorch has one."""
    kind, options = {
        "mnist-net": (torch.optim.SGD, dict(lr=0.01, momentum=0.5)),
        "lenet5": (torch.optim.SGD, dict(lr=0.02, momentum=0.85)),
        "psgd-cnn": (torch.optim.SGD, dict(lr=0.1)),
        "mnist-example": (torch.optim.SGD, dict(lr=0.01, momentum=0.9, weight_decay=1e-4)),
        "alexnet": (torch.optim.SGD, dict(lr=0.01, momentum=0.9, weight_decay=1e-4)),
        "vgg11": (torch.optim.SGD, dict(lr=0.01, momentum=0.9, weight_decay=1e-4)),
        "gpt2-char": (torch.optim.AdamW, dict(lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)),
        "gpt2-small": (torch.optim.AdamW, dict(lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)),
        "gpt2-124m": (torch.optim.AdamW, dict(lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1)),
        "llama-small": (torch.optim.AdamW, dict(lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)),
        "vit-s16": (torch.optim.AdamW, dict(lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)),
        "resnet9": (torch.optim.Adam, dict(lr=0.001, weight_decay=0.001)),
    }.get(name, (torch.optim.SGD, dict(lr=0.1, momentum=0.9, weight_decay=1e-4)))
    parameters = list(parameters)
    try:
        return kind(parameters, fused=True, **options)
    except (TypeError, RuntimeError, ValueError):
        return kind(parameters, **options)
