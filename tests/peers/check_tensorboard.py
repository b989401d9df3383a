"""TensorBoard reads what a run shows it: curves, histograms of the weights of the last epoch, samples, the
network and the config.

    check_tensorboard.py PROGRAM PEER_MODEL
"""
import math
import sys

from common import skip, summary, train, weights, workplace

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata as hparams
except ImportError as missing:
    skip(f"no TensorBoard here: {missing}")

TAG = "_hparams_/session_start_info"


def read(run_dir):
    board = EventAccumulator(run_dir, size_guidance={"histograms": 0, "images": 0})
    board.Reload()
    return board


def check_histograms(board, tensors, epochs):
    for name, value in tensors.items():
        if f"weights/{name}" not in board.Tags()["histograms"]:
            assert "running" in name, f"no histogram of {name}"
            continue
        events = board.Histograms(f"weights/{name}")
        last, value = events[-1].histogram_value, value.double()
        assert len(events) == epochs, f"{name}: {len(events)} histograms"
        assert last.num == value.numel() == sum(last.bucket), f"{name}: {last.num} values"
        assert last.min == value.min() and last.max == value.max(), f"{name}: its range"
        assert math.isclose(last.sum, value.sum(), rel_tol=1e-6, abs_tol=1e-6), f"{name}: its sum"
        assert board.Histograms(f"gradients/{name}")[-1].histogram_value.num == value.numel()


def check_network(board, names):
    node = {n.name: n for n in board.Graph().node}
    for name in names:
        layer = name.rsplit(".", 1)[0].replace(".", "/")
        assert layer in node, f"{layer} is not in the graph: {sorted(node)}"
    for n in node.values():
        for name in n.input:
            assert name in node, f"{n.name} reads {name}, which is not in the graph"


def check_config(board, expected):
    content = board.SummaryMetadata(TAG).plugin_data.content
    found = hparams.parse_session_start_info_plugin_data(content).hparams
    for key, value in expected.items():
        kind = found[key].WhichOneof("kind")
        assert getattr(found[key], kind) == value, f"{key}: {found[key]}"


def main(program):
    with workplace() as folder:
        run_dir = train(program, folder, "images", {
            "model": "resnet9", "data": {"name": "synthetic", "shape": [3, 32, 32], "classes": 10,
                                         "samples": 64, "test_samples": 32},
            "batch": 32, "epochs": 2, "optimizer": {"name": "sgd", "lr": 0.01},
            "tensorboard": {"images": 3}})
        board = read(run_dir)
        tensors = weights(run_dir)
        check_histograms(board, tensors, 2)
        check_network(board, tensors)
        check_config(board, {"batch": 32.0, "model": "resnet9", "optimizer": "sgd",
                             "optimizer.lr": 0.01, "sync_batch_norm": False})
        assert len(board.Tags()["images"]) == 3, board.Tags()["images"]
        image = board.Images(board.Tags()["images"][0])[0]
        assert (image.width, image.height) == (32, 32)
        loss = board.Scalars("epoch/test_loss")[-1].value
        assert math.isclose(loss, summary(run_dir)["test_loss"], rel_tol=1e-6)
    print("TensorBoard reads curves, histograms, samples, the network and the config")


main(sys.argv[1])
