"""Random weights of GPT-2 in files as Hugging Face's transformers write them: they load strictly,
logits are PyTorch's to 1e-4, and the file that `cohort import` writes has the same bytes.

    check_gpt2_files.py COHORT PEER_MODEL small|124m
"""
import os
import subprocess
import sys

from common import read_safetensors, torch, workplace, write_safetensors
from gpt2 import Gpt2

LAYERS, HEADS, WIDTH, CONTEXT, VOCAB = {"small": (4, 3, 48, 64, 100),
                                        "124m": (12, 12, 768, 1024, 50257)}[sys.argv[3]]
CONFIG = (f"{{name: gpt2, layers: {LAYERS}, heads: {HEADS}, width: {WIDTH}, context: {CONTEXT}, "
          f"vocab: {VOCAB}}}")
POSITIONS = 12
SIZES = ["--shape", str(POSITIONS), "--classes", str(VOCAB)]


def older(state):
    """The same as older files have it: a prefix, masks, the tied weight once more."""
    out = {f"transformer.{name}": value for name, value in state.items()}
    for layer in range(LAYERS):
        out[f"transformer.h.{layer}.attn.bias"] = torch.ones(1, 1, 8, 8).tril()
        out[f"transformer.h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    out["lm_head.weight"] = state["wte.weight"].clone()
    return out


def refused(program, source, folder):
    """Its one line of error."""
    done = subprocess.run([program, "import", source, os.path.join(folder, "never.safetensors"),
                           "--model", CONFIG] + SIZES,
                          capture_output=True, text=True, timeout=100)
    assert done.returncode == 3 and done.stderr.count("\n") == 1, done
    return done.stderr


def check_refusals(program, state, folder):
    path = os.path.join(folder, "bad.safetensors")
    for change, words in [
            (lambda s: s.pop("h.3.ln_2.bias"), "1 missing: h.3.ln_2.bias"),
            (lambda s: s.update({"h.99.ln_1.bias": s["ln_f.bias"]}), "1 unexpected: h.99.ln_1.bias"),
            (lambda s: s.update({"h.0.attn.c_attn.weight": s["h.0.attn.c_attn.weight"].T}),
             f"1 of another shape: h.0.attn.c_attn.weight ({3 * WIDTH}, {WIDTH}) for "
             f"({WIDTH}, {3 * WIDTH})"),
            (lambda s: s.update({"lm_head.weight": s["wte.weight"] + 1}),
             "1 unlike the tied weight: lm_head.weight")]:
        other = dict(state)
        change(other)
        write_safetensors(path, other)
        message = refused(program, path, folder)
        assert words in message, message


def main():
    torch.manual_seed(11)
    model = Gpt2(LAYERS, HEADS, WIDTH, CONTEXT, VOCAB)
    state = {name: value.detach() for name, value in model.state_dict().items()}
    token = torch.randint(0, VOCAB, (1, POSITIONS + 1))
    with torch.no_grad():
        logits = model(token[:, :-1]).flatten(0, 1)
    with workplace() as folder:
        path, again, batch, out = (os.path.join(folder, f"{name}.safetensors")
                                   for name in ("theirs", "ours", "batch", "out"))
        write_safetensors(batch, {"input": token[:, :-1].int(), "label": token[:, 1:].int()})
        write_safetensors(path, older(state))
        subprocess.run([sys.argv[2], "auto", CONFIG, "cross_entropy", path, batch, out],
                       check=True, timeout=100)
        error = (read_safetensors(out)["eval.output"] - logits).abs().max().item()
        subprocess.run([sys.argv[1], "import", path, again, "--model", CONFIG,
                        *SIZES], check=True, timeout=100, stdout=subprocess.DEVNULL)
        ours = read_safetensors(again)
        check_refusals(sys.argv[1], state, folder)
    assert set(ours) == set(state), set(ours) ^ set(state)
    changed = [name for name in state if not torch.equal(ours[name], state[name])]
    print(f"logits: {error:.2e} apart; tensors that changed: {changed}")
    return 1 if error > 1e-4 or changed else 0


sys.exit(main())
