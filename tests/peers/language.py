"""The language models of the checks: each as Cohort's config and as PyTorch's module."""
from gpt2 import Gpt2
from llama import Llama

SMALL = {
    "gpt2": {"layers": 4, "heads": 4, "width": 64},
    "llama": {"layers": 4, "heads": 4, "kv_heads": 2, "width": 64, "hidden": 96, "theta": 500.0,
              "eps": 1e-5},
}


def by_torch(name, sizes, context, vocab):
    """`sizes`: keys of Cohort's model."""
    if name == "gpt2":
        return Gpt2(**sizes, context=context, vocab=vocab)
    return Llama(**sizes, vocab=vocab)
