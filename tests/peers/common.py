"""What the checks share: running Cohort, the files it reads and writes, networks in PyTorch."""
import gzip
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile

SKIP = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIP)


try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError as missing:
    skip(f"no PyTorch here: {missing} (Debian: python3-torch)")

torch.set_num_threads(1)

SAFETENSORS = {"F32": torch.float32, "F64": torch.float64, "F16": torch.float16,
               "BF16": torch.bfloat16, "I32": torch.int32, "I64": torch.int64}


def workplace():
    """A folder that is gone after the check."""
    return tempfile.TemporaryDirectory(prefix="cohort-peer-")


def train(program, folder, name, config, ranks=1):
    """Train a config, given as a dict; the run directory."""
    path = os.path.join(folder, f"{name}.yaml")
    run_dir = os.path.join(folder, name)
    with open(path, "w") as file:
        json.dump(config, file, indent=1)  # JSON is YAML
    subprocess.run([program, "train", path, "-n", str(ranks), "--run-dir", run_dir, "--quiet"],
                   check=True, timeout=100)
    return run_dir


def summary(run_dir):
    with open(os.path.join(run_dir, "summary.json")) as file:
        return json.load(file)


def read_safetensors(path):
    """Names and tensors, read by the format's description alone."""
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(bytearray(data[begin:end]), dtype=SAFETENSORS[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def write_safetensors(path, tensors):
    kinds = {kind: name for name, kind in SAFETENSORS.items()}
    header, body = {}, []
    offset = 0
    for name, tensor in tensors.items():
        flat = tensor.contiguous().flatten()
        if tensor.dtype == torch.bfloat16:  # numpy has none
            flat = flat.view(torch.int16)
        body.append(flat.numpy().tobytes())
        header[name] = {"dtype": kinds[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(body[-1])]}
        offset += len(body[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(body))


def weights(run_dir):
    return read_safetensors(os.path.join(run_dir, "final.safetensors"))


def sha256(tensors):
    """Of the tensors' bytes, in the order of their names as bytes."""
    whole = hashlib.sha256()
    for name in sorted(tensors, key=str.encode):
        whole.update(tensors[name].numpy().tobytes())
    return whole.hexdigest()


def write_idx(path, values):
    """An unsigned-byte tensor as an IDX file."""
    with open(path, "wb") as file:
        file.write(bytes([0, 0, 8, values.dim()]))
        file.write(struct.pack(f">{values.dim()}I", *values.shape))
        file.write(values.numpy().tobytes())


def read_idx(path):
    with gzip.open(path) as file:
        _, _, kind, dims = file.read(4)
        assert kind == 8, path
        shape = struct.unpack(f">{dims}I", file.read(4 * dims))
        return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).reshape(shape)


class MnistNet(nn.Module):
    def __init__(self, batch_norm=False):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, 5, bias=not batch_norm)
        self.conv2 = nn.Conv2d(10, 20, 5, bias=not batch_norm)
        self.bn1 = nn.BatchNorm2d(10) if batch_norm else nn.Identity()
        self.bn2 = nn.BatchNorm2d(20) if batch_norm else nn.Identity()
        self.conv2_drop = nn.Dropout2d(0.5)
        self.fc1 = nn.Linear(320, 50)
        self.fc1_drop = nn.Dropout(0.5)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.bn1(self.conv1(x)), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.bn2(self.conv2(x))), 2))
        x = F.relu(self.fc1(x.flatten(1)))
        return F.log_softmax(self.fc2(self.fc1_drop(x)), dim=1)


class PsgdCnn(nn.Module):
    """On 28 x 28 images, which it resizes to 32 x 32 as the data set's key does."""

    def __init__(self, dropout=0.4):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 5)
        self.conv2 = nn.Conv2d(16, 32, 5)
        self.drop = nn.Dropout(dropout)
        self.fc1 = nn.Linear(128, 512)
        self.fc2 = nn.Linear(512, 256)
        self.fc3 = nn.Linear(256, 10)

    def forward(self, x):
        x = F.interpolate(x, size=32, mode="bilinear", align_corners=False)
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = self.drop(F.relu(F.max_pool2d(self.conv2(x), 2)))
        x = F.relu(self.fc1(F.max_pool2d(x, 2).flatten(1)))
        return F.log_softmax(self.fc3(self.fc2(x)), dim=1)


class LeNet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(256, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        x = F.relu(self.fc1(x.flatten(1)))
        x = F.relu(self.fc2(x))
        return F.log_softmax(self.fc3(x), dim=1)


# The network below in the words of a config.
SMOOTH = {"layers": [{"conv2d": {"out": 6, "kernel": 5, "stride": 2, "name": "conv1"}},
                     {"avgpool": 3}, "flatten", {"linear": {"out": 20, "name": "fc1"}},
                     {"linear": {"out": 10, "name": "fc2"}}, "log_softmax"]}


class Smooth(nn.Module):
    """Linear but for the loss: small differences stay small."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, stride=2)
        self.fc1 = nn.Linear(96, 20)
        self.fc2 = nn.Linear(20, 10)

    def forward(self, x):
        x = F.avg_pool2d(self.conv1(x), 3)
        return F.log_softmax(self.fc2(self.fc1(x.flatten(1))), dim=1)
