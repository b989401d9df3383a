"""gpt2 with dropout of what is embedded, of the weights of attention and of what is added, beside the
same in PyTorch in double precision, which is given the masks: logits, losses, the whole gradient.

    check_dropout.py COHORT PEER_MODEL

The masks are computed here from the definition in src/ops/ops.h: words of Philox4x32-10 (Salmon et
al., SC 2011) of the seed, the node, the step and the sample. PyTorch in single precision, with the
same masks, says how large a rounding error may be: ours at most twice that.
"""
import json
import os
import subprocess
import sys

from common import F, read_safetensors, torch, workplace, write_safetensors
from language import SMALL, by_torch

CONTEXT, VOCAB, BATCH, DROPOUT, SEED, STEP = 37, 65, 3, 0.2, 0, 0
STREAM, NODES_BEFORE, NODES_OF_BLOCK = 3, 3, 12
WORD = 2 ** 32 - 1


def philox(block, item, step, stream, seed):
    """Four words of each of the blocks."""
    c = [block, torch.full_like(block, item), torch.full_like(block, step),
         torch.full_like(block, stream)]
    k0, k1 = seed & WORD, seed >> 32

    def product(a, factor):
        """Both halves; factors of 16 bits each, as there is no unsigned type of 64."""
        low, high = a * (factor & 0xffff), a * (factor >> 16)
        low += (high & 0xffff) << 16
        return ((high >> 16) + (low >> 32)) & WORD, low & WORD

    for _ in range(10):
        a, b = product(c[0], 0xD2511F53), product(c[2], 0xCD9E8D57)
        c = [b[0] ^ c[1] ^ k0, b[1], a[0] ^ c[3] ^ k1, a[1]]
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return torch.stack(c, 1).flatten()


def mask(node, shape):
    """Of a tensor (N, ...) that this node of the graph drops elements of."""
    count = shape[1:].numel()
    blocks = torch.arange((count + 3) // 4)
    words = torch.stack([philox(blocks, n, STEP, STREAM | node << 8, SEED)[:count]
                         for n in range(shape[0])])
    unit = (words >> 8).double() / 2 ** 24
    return torch.where(unit < DROPOUT, 0.0, 1 / (1 - DROPOUT)).reshape(shape)


def forward(model, token):
    def drop(x, node):
        return x * mask(node, x.shape).to(x.dtype)

    def attend(attn, x, node):
        q, k, v = (part.unflatten(2, (attn.heads, -1)).transpose(1, 2)
                   for part in attn.c_attn(x).chunk(3, 2))
        products = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
        later = torch.ones(products.shape[2:], dtype=torch.bool).triu(1)
        weights = products.masked_fill(later, float("-inf")).softmax(3)
        return attn.c_proj((drop(weights, node) @ v).transpose(1, 2).flatten(2))

    x = drop(model.wte(token) + model.wpe.weight[:token.shape[1]], NODES_BEFORE - 1)
    for i, block in enumerate(model.h):
        node = NODES_BEFORE + NODES_OF_BLOCK * i
        x = x + drop(attend(block.attn, block.ln_1(x), node + 2), node + 4)
        x = x + drop(block.mlp(block.ln_2(x)), node + 10)
    return model.ln_f(x) @ model.wte.weight.T


def passes(model, token, label):
    model.zero_grad()
    output = forward(model, token)
    loss = F.cross_entropy(output.flatten(0, 1), label.flatten(), reduction="none")
    loss.mean().backward()
    out = {"output": output.flatten(0, 1), "loss": loss.reshape(label.shape).mean(1)}
    out.update({f"grad.{name}": p.grad for name, p in model.named_parameters()})
    return {name: value.detach().double() for name, value in out.items()}


def errors(got, truth):
    """Of logits, of losses, and of the gradient as one vector."""
    def apart(names):
        wrong = torch.cat([(got[name].double() - truth[name]).flatten() for name in names])
        return (wrong.norm() / torch.cat([truth[name].flatten() for name in names]).norm()).item()

    return {"output": apart(["output"]), "loss": apart(["loss"]),
            "gradient": apart([name for name in truth if name.startswith("grad.")])}


def main():
    torch.manual_seed(7)
    model = by_torch("gpt2", SMALL["gpt2"], CONTEXT, VOCAB)
    token = torch.randint(0, VOCAB, (BATCH, CONTEXT + 1))
    batch = {"input": token[:, :-1].int(), "label": token[:, 1:].int()}
    config = {"name": "gpt2", **SMALL["gpt2"], "vocab": VOCAB, "dropout": DROPOUT}
    with workplace() as folder:
        paths = [os.path.join(folder, f"{each}.safetensors") for each in ("weights", "batch", "out")]
        write_safetensors(paths[0], model.state_dict())
        write_safetensors(paths[1], batch)
        subprocess.run([sys.argv[2], "dropping", json.dumps(config), "cross_entropy"] + paths,
                       check=True, timeout=100)
        ours = read_safetensors(paths[2])
    single = passes(model, token[:, :-1], token[:, 1:])
    truth = passes(model.double(), token[:, :-1], token[:, 1:])
    ours, single = errors(ours, truth), errors(single, truth)
    for name, error in ours.items():
        print(f"{name}: error {error:.2e}, PyTorch's {single[name]:.2e}")
    return any(error > max(2 * single[name], 2.0 ** -23) for name, error in ours.items())


sys.exit(main())
