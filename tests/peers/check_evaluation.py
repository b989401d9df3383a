"""Weights that Cohort trained give PyTorch the same test loss and accuracy, and the digest in
summary.json is that of the file: names, layouts, running statistics, normalisation, evaluation."""
import os
import sys

from common import F, MnistNet, read_idx, sha256, skip, summary, torch, train, weights, workplace

DATA = "/usr/share/datasets/fashion-mnist"
MEAN, STD = 0.2860, 0.3530


def check(program, folder, batch_norm):
    run_dir = train(program, folder, f"bn-{batch_norm}", {
        "model": {"name": "mnist-net", "batch_norm": batch_norm},
        "data": {"name": "fashion-mnist", "path": DATA, "normalize": {"mean": MEAN, "std": STD}},
        "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9},
        "max_steps": 60,
    }, ranks=2)
    theirs = summary(run_dir)
    tensors = weights(run_dir)
    model = MnistNet(batch_norm)
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    assert not unexpected, unexpected
    assert all(name.endswith("num_batches_tracked") for name in missing), missing
    model.eval()
    image = read_idx(os.path.join(DATA, "t10k-images-idx3-ubyte.gz"))
    label = read_idx(os.path.join(DATA, "t10k-labels-idx1-ubyte.gz")).long()
    with torch.no_grad():
        output = model((image[:, None] / 255.0 - MEAN) / STD)
    loss = F.nll_loss(output, label).item()
    accuracy = (output.argmax(1) == label).float().mean().item()
    print(f"batch_norm {batch_norm}: loss {loss:.6f}, Cohort {theirs['test_loss']:.6f}; "
          f"accuracy {accuracy:.4f}, Cohort {theirs['test_accuracy']:.4f}")
    assert abs(loss - theirs["test_loss"]) < 1e-4 * loss
    assert abs(accuracy - theirs["test_accuracy"]) < 2.5e-4  # two samples on the brink
    assert accuracy > 0.5  # it has learned, so that this says something
    assert sha256(tensors) == theirs["weights_sha256"]


if not os.path.isdir(DATA):
    skip(f"no {DATA} (Debian: dataset-fashion-mnist)")
with workplace() as place:
    for with_batch_norm in (False, True):
        check(sys.argv[1], place, with_batch_norm)
