"""llama beside transformers' own LlamaForCausalLM: a file that it saves loads strictly, logits are
its to 1e-4, also at late positions, and it loads what `cohort import` writes, byte-equal.

    check_llama_transformers.py COHORT PEER_MODEL

COHORT_ONNX_PYTHON may name the interpreter of a virtual environment that has transformers.
"""
import json
import os
import subprocess
import sys

OTHER = os.environ.get("COHORT_ONNX_PYTHON")
if OTHER and sys.executable != OTHER:
    os.execv(OTHER, [OTHER] + sys.argv)

from common import read_safetensors, skip, torch, workplace, write_safetensors  # noqa: E402

try:
    from transformers import LlamaConfig, LlamaForCausalLM
except ImportError as missing:
    skip(f"{missing}; COHORT_ONNX_PYTHON can name a Python that has transformers")

LENGTH, VOCAB = 300, 96
SIZES = {"layers": 3, "heads": 6, "kv_heads": 2, "width": 48, "hidden": 112, "theta": 5000.0,
         "eps": 1e-5}


def check(program, peer, folder, tie):
    torch.manual_seed(3)
    theirs = LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCAB, hidden_size=SIZES["width"], intermediate_size=SIZES["hidden"],
        num_hidden_layers=SIZES["layers"], num_attention_heads=SIZES["heads"],
        num_key_value_heads=SIZES["kv_heads"], rms_norm_eps=SIZES["eps"],
        max_position_embeddings=LENGTH, rope_theta=SIZES["theta"], initializer_range=0.2,
        rope_parameters={"rope_type": "default", "rope_theta": SIZES["theta"]},
        tie_word_embeddings=tie)).float().eval()
    theirs.save_pretrained(folder)
    source, again, batch, out = (os.path.join(folder, f"{name}.safetensors")
                                 for name in ("model", "ours", "batch", "out"))
    config = json.dumps({"name": "llama", **SIZES, "vocab": VOCAB, "tie": tie})
    token = torch.randint(0, VOCAB, (2, LENGTH + 1))
    write_safetensors(batch, {"input": token[:, :-1].int(), "label": token[:, 1:].int()})
    with torch.no_grad():
        logits = theirs(token[:, :-1]).logits.flatten(0, 1)
    subprocess.run([peer, "auto", config, "cross_entropy", source, batch, out],
                   check=True, timeout=100)
    error = (read_safetensors(out)["eval.output"] - logits).abs().max().item()
    subprocess.run([program, "import", source, again, "--model", config, "--shape", str(LENGTH),
                    "--classes", str(VOCAB)], check=True, timeout=100, stdout=subprocess.DEVNULL)
    theirs_again, ours = read_safetensors(source), read_safetensors(again)
    same = set(theirs_again) == set(ours) and all(
        torch.equal(ours[name], theirs_again[name]) for name in ours)
    left = theirs.load_state_dict(ours, strict=False)
    missing = [name for name in left.missing_keys if not (tie and name == "lm_head.weight")]
    print(f"tie {tie}: logits of size {logits.abs().max():.2f} are {error:.2e} apart; "
          f"tensors the same: {same}; missing {missing}, unexpected {left.unexpected_keys}")
    return error <= 1e-4 and same and not missing and not left.unexpected_keys


def main():
    good = True
    for tie in (False, True):
        with workplace() as folder:
            good = check(*sys.argv[1:3], folder, tie) and good
    return 0 if good else 1


sys.exit(main())
