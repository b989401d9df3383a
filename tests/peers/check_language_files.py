"""Random weights in files as Hugging Face's transformers write them: they load strictly, logits are
PyTorch's to 1e-4, and the file that `cohort import` writes has the same bytes.

    check_language_files.py COHORT PEER_MODEL gpt2|llama small|124m
"""
import json
import os
import subprocess
import sys

from common import read_safetensors, torch, workplace, write_safetensors
from language import by_torch

NAME, SIZE = sys.argv[3:5]
SIZES, CONTEXT, VOCAB = {
    ("gpt2", "small"): ({"layers": 4, "heads": 3, "width": 48}, 64, 100),
    ("gpt2", "124m"): ({"layers": 12, "heads": 12, "width": 768}, 1024, 50257),
    ("llama", "small"): ({"layers": 4, "heads": 6, "kv_heads": 3, "width": 48, "hidden": 80}, 64, 100),
}[NAME, SIZE]
CONFIG = json.dumps({"name": NAME, **SIZES, "context": CONTEXT, "vocab": VOCAB})
POSITIONS = 12
SHAPE = ["--shape", str(POSITIONS), "--classes", str(VOCAB)]


def older(state):
    """The same as older files have it: for gpt2 a prefix, masks, the tied weight once more; for llama
    the frequencies."""
    if NAME == "llama":
        return {**state, **{f"model.layers.{layer}.self_attn.rotary_emb.inv_freq": torch.ones(4)
                            for layer in range(SIZES["layers"])}}
    out = {f"transformer.{name}": value for name, value in state.items()}
    for layer in range(SIZES["layers"]):
        out[f"transformer.h.{layer}.attn.bias"] = torch.ones(1, 1, 8, 8).tril()
        out[f"transformer.h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    out["lm_head.weight"] = state["wte.weight"].clone()
    return out


def refused(program, source, folder):
    """Its one line of error."""
    done = subprocess.run([program, "import", source, os.path.join(folder, "never.safetensors"),
                           "--model", CONFIG] + SHAPE,
                          capture_output=True, text=True, timeout=100)
    assert done.returncode == 3 and done.stderr.count("\n") == 1, done
    return done.stderr


def changes():
    """What is done to a file's tensors, and what the error then says."""
    width = SIZES["width"]
    if NAME == "llama":
        norm, shared = "model.layers.3.input_layernorm.weight", width // 2
        key = "model.layers.0.self_attn.k_proj.weight"
        return [
            (lambda s: s.pop(norm), f"1 missing: {norm}"),
            (lambda s: s.update({"model.layers.0.self_attn.q_proj.bias": s[norm]}),
             "1 unexpected: model.layers.0.self_attn.q_proj.bias"),
            (lambda s: s.update({key: s[key].T}),
             f"1 of another shape: {key} ({width}, {shared}) for ({shared}, {width})")]
    return [
        (lambda s: s.pop("h.3.ln_2.bias"), "1 missing: h.3.ln_2.bias"),
        (lambda s: s.update({"h.99.ln_1.bias": s["ln_f.bias"]}), "1 unexpected: h.99.ln_1.bias"),
        (lambda s: s.update({"h.0.attn.c_attn.weight": s["h.0.attn.c_attn.weight"].T}),
         f"1 of another shape: h.0.attn.c_attn.weight ({3 * width}, {width}) for "
         f"({width}, {3 * width})"),
        (lambda s: s.update({"lm_head.weight": s["wte.weight"] + 1}),
         "1 unlike the tied weight: lm_head.weight")]


def check_refusals(program, state, folder):
    path = os.path.join(folder, "bad.safetensors")
    for change, words in changes():
        other = dict(state)
        change(other)
        write_safetensors(path, other)
        message = refused(program, path, folder)
        assert words in message, message


def main():
    torch.manual_seed(11)
    model = by_torch(NAME, SIZES, CONTEXT, VOCAB)
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
                        *SHAPE], check=True, timeout=100, stdout=subprocess.DEVNULL)
        ours = read_safetensors(again)
        check_refusals(sys.argv[1], state, folder)
    assert set(ours) == set(state), set(ours) ^ set(state)
    changed = [name for name in state if not torch.equal(ours[name], state[name])]
    print(f"logits: {error:.2e} apart; tensors that changed: {changed}")
    return 1 if error > 1e-4 or changed else 0


sys.exit(main())
