"""check_onnx.py COHORT PEER_MODEL [large] - exported ONNX files pass ONNX's own checker, and
onnxruntime computes from them what Cohort computes in evaluation, for any batch.

onnxruntime is not in Debian; COHORT_ONNX_PYTHON may name the interpreter of a virtual environment
that has it (pip install onnxruntime onnx numpy). `large` adds networks of 100 to 600 MB."""
import json
import os
import re
import subprocess
import sys
import tempfile

OTHER = os.environ.get("COHORT_ONNX_PYTHON")
if OTHER and sys.executable != OTHER:
    os.execv(OTHER, [OTHER] + sys.argv)
try:
    import numpy
    import onnx
    import onnxruntime
except ImportError as missing:
    print(f"skipped: {missing}; COHORT_ONNX_PYTHON can name a Python that has onnxruntime and onnx")
    sys.exit(77)

COHORT, PEER_MODEL = sys.argv[1:3]
LIMIT = 1e-4  # largest difference of an output

# Every attribute that the file has, in shapes that tell height from width.
ODD = [
    {"conv2d": {"name": "stem", "out": 8, "kernel": [3, 5], "stride": [1, 2], "padding": [1, 2],
                "bias": False}},
    {"batchnorm": {"name": "stem_bn", "eps": 1e-3}},
    "relu",
    {"residual": {
        "body": [{"conv2d": {"name": "b", "out": 8, "kernel": 3, "padding": 2, "dilation": 2,
                             "groups": 4}},
                 {"batchnorm": {"name": "b_bn"}}],
        "shortcut": [{"conv2d": {"name": "s", "out": 8, "kernel": 1}}]}},
    {"maxpool": {"kernel": 3, "stride": 2, "padding": 1}},
    {"dropout2d": 0.2},
    {"avgpool": {"kernel": 3, "stride": 1, "padding": 1, "count_include_pad": False}},
    {"avgpool": {"kernel": [2, 1], "stride": 1, "padding": [1, 0]}},
    {"adaptive_avgpool": [3, 4]},
    {"adaptive_avgpool": [3, 2]},
    "flatten",
    {"linear": {"name": "fc", "out": 16, "bias": False}},
    "relu",
    {"linear": {"name": "head", "out": 6}},
    {"scale": -2.5},
    {"dropout": 0.5},  # the output itself
]


# Of sequences of rows.
SEQUENCE = [
    {"residual": {"body": [
        {"layernorm": {"name": "norm1", "eps": 1e-3}},
        {"linear": {"name": "qkv", "out": 32}},
        {"attention": {"heads": 4, "kv_heads": 2}},
        {"linear": {"name": "out", "out": 10}}]}},
    {"layernorm": {"name": "norm2", "bias": False}},
    {"gelu": {"approximate": "tanh"}},
    {"linear": {"name": "fc", "out": 30, "bias": False}},
    "gelu",
    {"attention": {"heads": 2, "causal": False}},
    "flatten",
    {"linear": {"name": "head", "out": 6}},
]


def run(*words):
    return subprocess.run(words, check=True, timeout=100, stdout=subprocess.PIPE, text=True).stdout


def plain():
    """The layers without keys that ODD does not have, each after a linear one."""
    names = re.findall(r"^(\w+) .*$(?!\n )", run(COHORT, "list", "ops"), re.MULTILINE)
    layers = ["flatten"]
    for name in names:
        if name not in ("add", "mul", "concat", "patches", "class_token", "first", *map(str, ODD)) and not name.endswith(("_loss", "cross_entropy")):
            layers += [{"linear": {"out": 16}}, name]
    return layers + [{"linear": {"out": 6}}]


CASES = [
    # name, model or layers, shape, classes
    ("mnist-net", "mnist-net", [1, 28, 28], 10),
    ("mnist-net-bn", {"name": "mnist-net", "batch_norm": True}, [1, 28, 28], 10),
    ("lenet5", {"name": "lenet5", "padding": 2}, [1, 28, 28], 10),
    ("psgd-cnn", "psgd-cnn", [1, 32, 32], 10),
    ("mlp", {"name": "mlp", "hidden": [32, 16]}, [3, 8, 8], 7),
    ("odd", ODD, [3, 21, 26], 6),
    ("plain", plain(), [1, 5, 4], 6),
    ("sequence", SEQUENCE, [7, 10], 6),
    ("gpt2", {"name": "gpt2", "layers": 2, "heads": 4, "width": 32}, [11], 23),
    ("gpt2-own-head", {"name": "gpt2", "layers": 1, "heads": 2, "width": 16, "context": 20,
                       "dropout": 0.1, "tie": False}, [7], 12),
    ("llama", {"name": "llama", "layers": 2, "heads": 4, "kv_heads": 2, "width": 32}, [11], 23),
    ("llama-tied", {"name": "llama", "layers": 1, "heads": 2, "width": 16, "theta": 100, "tie": True,
                    "hidden": 20}, [7], 12),
    ("vit", {"name": "vit-s16", "layers": 2, "heads": 2, "width": 16, "patch": 4}, [3, 12, 8], 7),
    ("mnist-example", "mnist-example", [1, 28, 28], 10),
    ("resnet9", "resnet9", [3, 32, 32], 10),
    ("resnet9-wide", "resnet9-wide", [3, 32, 32], 10),
    ("resnet18", "resnet18", [3, 64, 48], 10),
]
LARGE = [
    ("resnet50", "resnet50", [3, 64, 64], 10),
    ("alexnet", "alexnet", [3, 224, 224], 1000),
    ("alexnet-small", "alexnet", [3, 96, 80], 10),
    ("vgg11-bn", "vgg11-bn", [3, 32, 32], 10),
    ("vgg11", "vgg11", [3, 224, 224], 10),
]


def known(model):
    name = model["name"] if isinstance(model, dict) else model
    return isinstance(model, list) or name in run(COHORT, "list", "models").split()


def check_file(path, shape, classes):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 13)], model.opset_import
    (given,), (got,) = model.graph.input, model.graph.output
    tokens = len(shape) == 1
    kind = onnx.TensorProto.INT32 if tokens else onnx.TensorProto.FLOAT
    assert given.type.tensor_type.elem_type == kind, given
    sizes = [d.dim_param or d.dim_value for d in given.type.tensor_type.shape.dim]
    assert (given.name, sizes) == ("input", ["batch"] + shape), (given.name, sizes)
    sizes = [d.dim_param or d.dim_value for d in got.type.tensor_type.shape.dim]
    assert (got.name, sizes) == ("output", ["batch"] + shape * tokens + [classes]), (got.name, sizes)
    assert "Dropout" not in {node.op_type for node in model.graph.node}
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert not tokens or metadata["cohort.input"].endswith(" of int32"), metadata
    assert metadata["cohort.sample"] == ",".join(map(str, shape)), metadata
    assert len(metadata["cohort.weights_sha256"]) == 64, metadata
    return {tensor.name for tensor in model.graph.initializer}


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data[slice(*entry["data_offsets"])], "<f4").reshape(
        entry["shape"]) for name, entry in header.items()}


def write_safetensors(path, arrays):
    header, offset = {}, 0
    for name, (dtype, array) in arrays.items():
        header[name] = {"dtype": dtype, "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, array in arrays.values():
            file.write(array.tobytes())


def compute(base, model, classes, weights, given):
    """Cohort's scores in evaluation."""
    tokens = given.dtype == numpy.int32
    if not isinstance(model, list):
        model = {**(model if isinstance(model, dict) else {"name": model}), "classes": classes}
    label = numpy.zeros(given.shape if tokens else len(given), "<i4")
    write_safetensors(base + ".in", {"input": ("I32" if tokens else "F32", given),
                                     "label": ("I32", label)})
    run(PEER_MODEL, "auto", json.dumps(model), "cross_entropy", weights, base + ".in",
        base + ".out")
    return read_safetensors(base + ".out")["eval.output"]


def describe_data(base, shape, classes):
    """Images and tokens are synthetic; rows and sequences of rows come from a file."""
    if len(shape) == 1:
        return {"name": "synthetic-tokens", "context": shape[0], "vocabulary": classes,
                "samples": 16}
    if len(shape) == 3:
        return {"name": "synthetic", "shape": shape, "classes": classes, "samples": 16,
                "normalize": {"mean": 0.5, "std": 0.25}}
    random = numpy.random.default_rng(1)
    write_safetensors(base + ".data", {
        f"{split}.{field}": array for split in ("train", "test") for field, array in (
            ("input", ("F32", random.normal(size=[16] + shape).astype("<f4"))),
            ("label", ("I32", random.integers(0, classes, 16).astype("<i4"))))})
    return {"name": "arrays", "path": base + ".data", "classes": classes}


def check(folder, name, model, shape, classes):
    base = os.path.join(folder, name)
    config = {"layers" if isinstance(model, list) else "model": model,
              "data": describe_data(base, shape, classes),
              "batch": 4, "max_steps": 4, "evaluate": False,
              "optimizer": {"name": "sgd", "lr": 0.002}}
    with open(base + ".yaml", "w") as file:
        json.dump(config, file)  # JSON is YAML
    weights = os.path.join(base, "final.safetensors")
    run(COHORT, "train", base + ".yaml", "--run-dir", base, "--quiet")
    run(COHORT, "export", base, base + ".onnx")
    initializers = check_file(base + ".onnx", shape, classes)
    assert set(read_safetensors(weights)) <= initializers
    session = onnxruntime.InferenceSession(base + ".onnx", providers=["CPUExecutionProvider"])
    worst = 0
    for batch in (1, 5):
        random = numpy.random.default_rng(batch)
        given = (random.integers(0, classes, [batch] + shape).astype("<i4") if len(shape) == 1
                 else random.normal(size=[batch] + shape).astype("<f4"))
        ours = compute(base, model, classes, weights, given)
        theirs, = session.run(["output"], {"input": given})
        assert ours.std() > 1e-4, ours  # so that equality says something
        worst = max(worst, float(abs(ours - theirs.reshape(ours.shape)).max()))
    print(f"{name}: {len(initializers)} initializers, largest difference {worst:.1e}", flush=True)
    assert worst <= LIMIT, (ours, theirs)
    for leftover in (weights, base + ".onnx"):
        os.remove(leftover)


with tempfile.TemporaryDirectory(prefix="cohort-peer-") as place:
    for case in CASES + (LARGE if "large" in sys.argv[3:] else []):
        if known(case[1]):
            check(place, *case)
