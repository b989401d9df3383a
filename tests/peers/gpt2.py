"""GPT-2 in PyTorch with the tensors of Hugging Face's GPT2Model, for the checks."""
import math

from common import F, nn, torch


class Conv1D(nn.Module):
    """A linear layer whose weight is (in, out)."""

    def __init__(self, inputs, outputs, std=0.02):
        super().__init__()
        self.weight = nn.Parameter(std * torch.randn(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self, heads, width, added):
        super().__init__()
        self.heads = heads
        self.c_attn = Conv1D(width, 3 * width)
        self.c_proj = Conv1D(width, width, added)

    def forward(self, x):
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2)
                   for part in self.c_attn(x).chunk(3, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, width, added):
        super().__init__()
        self.c_fc = Conv1D(width, 4 * width)
        self.c_proj = Conv1D(4 * width, width, added)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, heads, width, added):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(heads, width, added)
        self.ln_2, self.mlp = nn.LayerNorm(width), Mlp(width, added)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    def __init__(self, layers=12, heads=12, width=768, context=1024, vocab=50257):
        super().__init__()
        added = 0.02 / math.sqrt(2 * layers)
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.h = nn.ModuleList([Block(heads, width, added) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)
        for weight in self.wte.weight, self.wpe.weight:
            nn.init.normal_(weight, std=0.02)

    def forward(self, token):
        x = self.wte(token) + self.wpe.weight[:token.shape[1]]
        for block in self.h:
            x = block(x)
        return self.ln_f(x) @ self.wte.weight.T
