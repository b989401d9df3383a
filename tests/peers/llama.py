"""LLaMA in PyTorch with the tensors of Hugging Face's LlamaForCausalLM, for the checks."""
from common import F, nn, torch


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


def rotate(x, theta):
    """x (N, heads, T, D): pair (i, i + D / 2) of position t by t theta^(-2 i / D)."""
    half = x.shape[-1] // 2
    slow = theta ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(x.shape[2], dtype=torch.float64)[:, None] * slow
    c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * c - b * s, b * c + a * s], -1)


class Attention(nn.Module):
    def __init__(self, heads, kv_heads, width, theta):
        super().__init__()
        self.heads, self.kv_heads, self.theta = heads, kv_heads, theta
        shared = width // heads * kv_heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, shared, bias=False)
        self.v_proj = nn.Linear(width, shared, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = (part(x).unflatten(2, (n, -1)).transpose(1, 2)
                   for part, n in ((self.q_proj, self.heads), (self.k_proj, self.kv_heads),
                                   (self.v_proj, self.kv_heads)))
        y = F.scaled_dot_product_attention(rotate(q, self.theta), rotate(k, self.theta), v,
                                           is_causal=True, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, heads, kv_heads, width, hidden, theta, eps):
        super().__init__()
        self.self_attn = Attention(heads, kv_heads, width, theta)
        self.mlp = Mlp(width, hidden)
        self.input_layernorm = RMSNorm(width, eps)
        self.post_attention_layernorm = RMSNorm(width, eps)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, layers, vocab, width, *rest):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList([Block(*rest) for _ in range(layers)])
        self.norm = RMSNorm(width, rest[-1])

    def forward(self, token):
        x = self.embed_tokens(token)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Llama(nn.Module):
    def __init__(self, layers, heads, kv_heads, width, hidden, vocab, theta=10000.0, eps=1e-6):
        super().__init__()
        self.model = Body(layers, vocab, width, heads, kv_heads, width, hidden, theta, eps)
        self.lm_head = nn.Linear(width, vocab, bias=False)
        for name, weight in self.named_parameters():
            if "norm" not in name:
                nn.init.normal_(weight, std=0.02)

    def forward(self, token):
        return self.lm_head(self.model(token))
