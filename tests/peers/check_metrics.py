"""Metrics of a trained network are those of their definitions, in double precision over the whole
test split, and of scikit-learn where that is installed; and the same on one, two and three ranks.

    check_metrics.py PROGRAM PEER_MODEL
"""
import os
import sys

from common import F, summary, torch, train, weights, workplace, write_safetensors

try:
    from sklearn import metrics as sklearn
except ImportError:
    sklearn = None

FEATURES, OUTPUTS, TRAIN, TEST = 6, 4, 300, 97


def make_data(path, binary):
    torch.manual_seed(11)
    x = torch.randn(TRAIN + TEST, FEATURES)
    y = x[:, :OUTPUTS] * x[:, 1:OUTPUTS + 1] + 0.3 * torch.randn(TRAIN + TEST, OUTPUTS)
    y[:, 2] += 1000  # far from 0
    if binary:
        y = (y - y.mean(0) > 0.3).float()
        y[:, 3] = 0  # a label that nobody has
    write_safetensors(path, {"train.input": x[:TRAIN], "train.target": y[:TRAIN],
                             "test.input": x[TRAIN:], "test.target": y[TRAIN:]})
    return x[TRAIN:], y[TRAIN:]


def predict(run_dir, x):
    w = {name: value.double() for name, value in weights(run_dir).items()}
    hidden = F.relu(F.linear(x.double(), w["fc1.weight"], w["fc1.bias"]))
    return F.linear(hidden, w["fc2.weight"], w["fc2.bias"])


def of_values(output, target):
    error = output - target
    total = ((target - target.mean(0)) ** 2).sum(0)
    ours = {"mae": error.abs().mean(), "rmse": (error ** 2).mean().sqrt(),
            "r2": (1 - (error ** 2).sum(0) / total).mean()}
    if sklearn:
        t, o = target.numpy(), output.numpy()
        ours.update(mae=sklearn.mean_absolute_error(t, o), r2=sklearn.r2_score(t, o))
    return ours


def of_labels(output, target):
    there, predicted = target > 0.5, output > 0
    tp, wrong = (there & predicted).sum(0).double(), (there != predicted).sum(0).double()
    each = torch.nan_to_num(2 * tp / (2 * tp + wrong), 0.0)
    ours = {"accuracy": (there == predicted).all(1).double().mean(),
            "label_accuracy": (there == predicted).double().mean(),
            "f1_micro": 2 * tp.sum() / (2 * tp.sum() + wrong.sum()), "f1_macro": each.mean()}
    if sklearn:
        t, p = there.numpy(), predicted.numpy()
        ours.update({f"f1_{kind}": sklearn.f1_score(t, p, average=kind, zero_division=0)
                     for kind in ("micro", "macro")})
    return ours


def check(program, place, loss, asked, formulas):
    path = os.path.join(place, "data.safetensors")
    x, y = make_data(path, loss == "bce_with_logits_loss")
    runs = []
    for ranks in (1, 2, 3):
        run_dir = train(program, place, f"{loss}-{ranks}", {
            "model": {"name": "mlp", "hidden": [16]}, "data": {"name": "arrays", "path": path},
            "loss": loss, "metrics": asked, "optimizer": {"name": "adam", "lr": 0.01},
            "batch": 32, "epochs": 10, "shards": 4}, ranks)
        runs.append(summary(run_dir))
    for name, value in formulas(predict(run_dir, x), y.double()).items():
        figures = [run[f"test_{name}"] for run in runs]
        assert len(set(figures)) == 1, (name, figures)
        # what float32 does to outputs; a logit on the brink moves one label
        assert abs(figures[0] - float(value)) < 1e-4 * max(1, abs(float(value))), (name, value)
        print(f"{loss}: {name} {figures[0]:.6f}, by its definition {float(value):.6f}")


with workplace() as folder:
    check(sys.argv[1], folder, "mse_loss", ["mae", "rmse", "r2"], of_values)
    check(sys.argv[1], folder, "bce_with_logits_loss", ["label_accuracy", "f1_micro", "f1_macro"],
          of_labels)
