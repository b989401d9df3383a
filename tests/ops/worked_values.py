"""worked_values.py > worked_values.h, worked_values.py sequences > worked_sequences.h - values of every
operator by an independent implementation (PyTorch, in double precision), for test_worked.c. Run by
hand when a case is added; the results are kept, so that the tests need no PyTorch."""

import os
import re
import sys
import textwrap

import torch
import torch.nn.functional as F


def numbers(t, count):
    """Element i of tensor t: exact in binary, and with equal ones among them."""
    return [((i * (2 * t + 7) + 3 * t) % 23 - 11) / 16 for i in range(count)]


def tensor(t, shape):
    count = torch.Size(shape).numel()
    return torch.tensor(numbers(t, count), dtype=torch.float64).reshape(shape).requires_grad_()


def conv(x, p, **attrs):
    return F.conv2d(x, p[0], p[1] if len(p) > 1 else None, **attrs)


def nll(x, labels):
    return F.nll_loss(x, labels, reduction="none")


def entropy(x, labels, smoothing=0.0):
    return F.cross_entropy(x, labels, ignore_index=-1, reduction="none", label_smoothing=smoothing)


def mse(x, target):
    return F.mse_loss(x, target, reduction="none").flatten(1).mean(1)


def bce(x, target):
    return F.binary_cross_entropy_with_logits(x, target, reduction="none").flatten(1).mean(1)


mse.of_values = bce.of_values = True  # and not of labels


def norm(momentum=0.1, eps=1e-5):
    return lambda x, p, b, train: F.batch_norm(x, b[0], b[1], p[0], p[1], train, momentum, eps)


def attention(x, heads, kv_heads, causal=True):
    """x (N, T, (heads + 2 kv_heads) D) -> (N, T, heads D)"""
    n, t, width = x.shape
    size = width // (heads + 2 * kv_heads)
    q, k, v = (part.reshape(n, t, -1, size).transpose(1, 2)
               for part in x.split([heads * size, kv_heads * size, kv_heads * size], 2))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=kv_heads < heads)
    return y.transpose(1, 2).reshape(n, t, heads * size)


def rotary(x, heads, kv_heads, theta=10000.0):
    """x (N, T, (heads + 2 kv_heads) D), queries and keys rotated as in Hugging Face's models"""
    n, t, width = x.shape
    size = width // (heads + 2 * kv_heads)
    turned, v = x.split([(heads + kv_heads) * size, kv_heads * size], 2)
    turned = turned.reshape(n, t, heads + kv_heads, size)
    slow = theta ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angle = torch.arange(t, dtype=torch.float64)[:, None] * slow
    both = torch.complex(turned[..., :size // 2], turned[..., size // 2:])
    both = both * torch.polar(torch.ones_like(angle), angle)[:, None]
    return torch.cat([torch.cat([both.real, both.imag], 3).reshape(n, t, -1), v], 2)


def concat(x, p):
    return torch.cat([F.linear(x, p[0], p[1]), x, x], 2)


def class_token(x, p):
    return torch.cat([p[0].expand(x.shape[0], 1, -1), x], 1)


def embedding(x, p, b, train):
    """x: tokens (N, T)"""
    return F.embedding(x, p[0])


def plain(f):
    return lambda x, p, b, train: f(x, p)


# name, net, batch, sample, shapes of parameters, of buffers, output, loss or None
CASES = [
    ("conv2d", "conv2d {out: 3, kernel: 3}", 2, (2, 4, 3), [(3, 2, 3, 3), (3,)], [],
     plain(conv), None),
    ("conv2d with everything",
     "conv2d {out: 4, kernel: [3, 2], stride: [2, 1], padding: [1, 2], dilation: [1, 2],"
     " groups: 2, bias: false}", 1, (2, 5, 4), [(4, 1, 3, 2)], [],
     plain(lambda x, p: conv(x, p, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2)),
     None),
    ("conv2d depthwise", "conv2d {out: 3, kernel: 3, padding: 1, groups: 3}", 1, (3, 3, 4),
     [(3, 1, 3, 3), (3,)], [], plain(lambda x, p: conv(x, p, padding=1, groups=3)), None),
    ("linear", "linear {out: 3}", 2, (5,), [(3, 5), (3,)], [],
     plain(lambda x, p: F.linear(x, p[0], p[1])), None),
    ("linear without bias", "linear {out: 2, bias: false}", 3, (3,), [(2, 3)], [],
     plain(lambda x, p: F.linear(x, p[0])), None),
    ("maxpool", "maxpool {kernel: 3, stride: 2, padding: 1}", 1, (2, 5, 6), [], [],
     plain(lambda x, p: F.max_pool2d(x, 3, 2, 1)), None),
    ("maxpool with a rest", "maxpool {kernel: 2}", 1, (1, 5, 5), [], [],
     plain(lambda x, p: F.max_pool2d(x, 2)), None),
    ("maxpool of equal values", "maxpool {kernel: [2, 23]}", 1, (1, 2, 23), [], [],
     plain(lambda x, p: F.max_pool2d(x, (2, 23))), None),
    ("avgpool", "avgpool {kernel: 3, stride: 2, padding: 1}", 1, (2, 5, 6), [], [],
     plain(lambda x, p: F.avg_pool2d(x, 3, 2, 1)), None),
    ("avgpool inside only",
     "avgpool {kernel: [3, 2], stride: 2, padding: [1, 0], count_include_pad: false}", 1,
     (2, 5, 5), [], [],
     plain(lambda x, p: F.avg_pool2d(x, (3, 2), 2, (1, 0), count_include_pad=False)), None),
    ("adaptive_avgpool", "adaptive_avgpool {size: [3, 2]}", 1, (2, 5, 3), [], [],
     plain(lambda x, p: F.adaptive_avg_pool2d(x, (3, 2))), None),
    ("relu", "relu", 2, (1, 3, 4), [], [], plain(lambda x, p: F.relu(x)), None),
    ("add", "keep; linear {out: 4}; add", 2, (4,), [(4, 4), (4,)], [],
     plain(lambda x, p: x + F.linear(x, p[0], p[1])), None),
    ("flatten", "flatten", 2, (2, 2, 3), [], [], plain(lambda x, p: x.flatten(1)), None),
    ("batchnorm of images", "batchnorm", 3, (2, 2, 3), [(2,), (2,)], [(2,), (2,)], norm(), None),
    ("batchnorm of rows", "batchnorm {momentum: 0.25, eps: 0.01}", 4, (3,), [(3,), (3,)],
     [(3,), (3,)], norm(0.25, 0.01), None),
    ("gelu", "gelu", 2, (3, 4), [], [], plain(lambda x, p: F.gelu(x)), None),
    ("gelu by tanh", "gelu {approximate: tanh}", 2, (12,), [], [],
     plain(lambda x, p: F.gelu(x, approximate="tanh")), None),
    ("scale", "scale {factor: -0.75}", 2, (1, 2, 3), [], [], plain(lambda x, p: -0.75 * x), None),
    ("log_softmax", "log_softmax", 3, (5,), [], [], plain(lambda x, p: F.log_softmax(x, 1)),
     None),
    ("nll_loss", "nll_loss", 3, (4,), [], [], plain(lambda x, p: x), nll),
    ("cross_entropy", "cross_entropy", 3, (5,), [], [], plain(lambda x, p: x), entropy),
    ("cross_entropy smoothed", "cross_entropy {label_smoothing: 0.125}", 3, (5,), [], [],
     plain(lambda x, p: x), lambda x, labels: entropy(x, labels, 0.125)),
    ("mse_loss", "mse_loss", 3, (4,), [], [], plain(lambda x, p: x), mse),
    ("mse_loss of images", "mse_loss", 2, (1, 2, 3), [], [], plain(lambda x, p: x), mse),
    ("bce_with_logits_loss", "bce_with_logits_loss", 3, (4,), [], [], plain(lambda x, p: x), bce),
    ("bce_with_logits_loss of images", "scale {factor: 60}; bce_with_logits_loss", 2, (1, 2, 3),
     [], [], plain(lambda x, p: 60 * x), bce),
]

SEQUENCES = [
    ("linear of sequences", "linear {out: 2}", 2, (3, 4), [(2, 4), (2,)], [],
     plain(lambda x, p: F.linear(x, p[0], p[1])), None),
    ("layernorm", "layernorm {eps: 0.01}", 3, (5,), [(5,), (5,)], [],
     plain(lambda x, p: F.layer_norm(x, (5,), p[0], p[1], 0.01)), None),
    ("layernorm of sequences", "layernorm {bias: false}", 2, (2, 4), [(4,)], [],
     plain(lambda x, p: F.layer_norm(x, (4,), p[0])), None),
    ("attention", "attention {heads: 2}", 2, (4, 12), [], [],
     plain(lambda x, p: attention(x, 2, 2)), None),
    ("attention with shared keys", "attention {heads: 4, kv_heads: 2, causal: false}", 1, (3, 16),
     [], [], plain(lambda x, p: attention(x, 4, 2, False)), None),
    ("rmsnorm", "rmsnorm {eps: 0.01}", 3, (5,), [(5,)], [],
     plain(lambda x, p: F.rms_norm(x, (5,), p[0], 0.01)), None),
    ("rotary", "rotary {heads: 1}", 1, (3, 12), [], [], plain(lambda x, p: rotary(x, 1, 1)), None),
    ("rotary with shared keys", "rotary {heads: 2, kv_heads: 1, theta: 20}", 1, (2, 16), [], [],
     plain(lambda x, p: rotary(x, 2, 1, 20.0)), None),
    ("mul", "keep; linear {out: 3}; mul", 2, (3,), [(3, 3), (3,)], [],
     plain(lambda x, p: x * F.linear(x, p[0], p[1])), None),
    ("concat", "keep; linear {out: 1}; concat", 2, (2, 2), [(1, 2), (1,)], [], plain(concat), None),
    ("patches", "patches", 2, (3, 2, 3), [], [], plain(lambda x, p: x.flatten(2).transpose(1, 2)),
     None),
    ("class_token", "class_token", 2, (3, 4), [(4,)], [], plain(class_token), None),
    ("first", "first", 2, (3, 4), [], [], plain(lambda x, p: x[:, 0]), None),
    ("embedding", "embedding {vocab: 5, out: 3}", 2, (4,), [(5, 3)], [],
     embedding, None),
    ("positions", "positions {length: 4}", 2, (3, 2), [(4, 2)], [],
     plain(lambda x, p: x + p[0][:3]), None),
    ("cross_entropy of positions", "cross_entropy", 2, (4, 5), [], [], plain(lambda x, p: x),
     lambda x, labels: entropy(x.flatten(0, 1), labels).reshape(2, 4).mean(1)),
]


def with_torchs_name(name):
    """An operator that torch.nn.functional has under the same name, without attributes of its own."""
    f = getattr(F, name)
    if not name.endswith("_loss"):
        return (name, name, 2, (3, 4), [], [], plain(lambda x, p: f(x)), None)

    def loss(x, target):
        return f(x, target, reduction="none").flatten(1).mean(1)
    loss.of_values = True
    return (name, name, 3, (4,), [], [], plain(lambda x, p: x), loss)


def listed():
    """The operators of src/ops/list.h that no case above has, in its order."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/ops/list.h")
    nets = " ".join(case[1] for case in CASES + SEQUENCES)
    with open(path, encoding="ascii") as f:
        names = re.findall(r"^OP\((\w+)\)", f.read(), re.MULTILINE)
    return [name for name in names if name not in nets and "dropout" not in name]


def run(batch, sample, params, buffers, output, loss):
    """Output, loss of each sample, gradients of input and parameters, buffers; output again in
    evaluation, from the first buffers."""
    tokens = output is embedding
    x = tensor(0, (batch,) + sample)
    if tokens:
        x = torch.tensor([(5 * i + i // 3) % params[0][0] for i in range(batch * sample[0])])
        x = x.reshape(batch, *sample)
    p = [tensor(i + (not tokens), shape) for i, shape in enumerate(params)]
    b = [tensor(1 + len(p) + i, shape).detach() for i, shape in enumerate(buffers)]
    if b:
        b[1] = b[1] ** 2 + 0.5  # a variance
    first = [v.clone() for v in b]
    y = output(x, p, b, True)
    if loss:
        rows = y.numel() // y.shape[-1]
        labels = torch.tensor([-1 if y.dim() == 3 and i % 5 == 4 else (7 * i + 3) % y.shape[-1]
                               for i in range(rows)])
        targets = torch.tensor([(5 * e + 3) % 9 / 8 for e in range(y.numel())],
                               dtype=torch.float64).reshape(y.shape)
        losses = loss(y, targets if hasattr(loss, "of_values") else labels)
        losses.sum().backward()
    else:
        losses = torch.zeros(0)
        (y * tensor(20, y.shape).detach()).sum().backward()
    out = [y, losses, torch.zeros(0) if tokens else x.grad] + [v.grad for v in p] + b + [output(x, p, first, False)]
    return [v for part in out for v in part.detach().flatten().tolist()]


def literal(v):
    text = "%.8g" % v
    return text + "f" if "." in text or "e" in text else text


def main():
    sequences = sys.argv[1:] == ["sequences"]
    name = "worked_sequences" if sequences else "worked_values"
    cases = SEQUENCES if sequences else CASES + [with_torchs_name(name) for name in listed()]
    print("/* %s.h - made by worked_values.py with PyTorch %s; see there. */"
          % (name, torch.__version__.split("+")[0]))
    print(f"#ifndef CO_TESTS_OPS_{name.upper()}_H\n#define CO_TESTS_OPS_{name.upper()}_H\n")
    print('#include "test_worked.h"\n\n/* clang-format off */')
    rows = []
    for i, (case, net, batch, sample, *rest) in enumerate(cases):
        values = run(batch, sample, *rest)
        print(f"static const float {name}_{i}[] = {{")
        print("\n".join(textwrap.wrap(", ".join(map(literal, values)), 99)))
        print("};")
        shape = "{%d, {%s}}" % (len(sample), ", ".join(map(str, sample)))
        net = '"\n "'.join(textwrap.wrap(net, 90, drop_whitespace=False))
        rows.append('{"%s",\n "%s",\n %d, %s, %s_%d, %d}' % (case, net, batch, shape, name, i,
                                                          len(values)))
    print("static const worked_case %s_cases[] = {\n%s,\n};\n" % (name, ",\n".join(rows)))
    print("#endif")


if __name__ == "__main__":
    sys.exit(main())
