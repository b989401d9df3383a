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


def make_data(folder, samples=64):
    """Noise as a folder of MNIST; images from 0 to 1 and labels."""
    torch.manual_seed(5)
    image = torch.randint(0, 256, (samples, 28, 28), dtype=torch.uint8)
    label = torch.randint(0, 10, (samples,), dtype=torch.uint8)
    for split in ("train", "t10k"):
        write_idx(os.path.join(folder, f"{split}-images-idx3-ubyte"), image)
        write_idx(os.path.join(folder, f"{split}-labels-idx1-ubyte"), label)
    return image[:, None] / 255.0, label.long()


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
        self.FC1 = nn.Linear(128, 512)
        self.FC2 = nn.Linear(512, 256)
        self.Output = nn.Linear(256, 10)

    def forward(self, x):
        x = F.interpolate(x, size=32, mode="bilinear", align_corners=False)
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = self.drop(F.relu(F.max_pool2d(self.conv2(x), 2)))
        x = F.relu(self.FC1(F.max_pool2d(x, 2).flatten(1)))
        return F.log_softmax(self.Output(self.FC2(x)), dim=1)


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


class ConvBn(nn.Module):
    def __init__(self, inputs, outputs, kernel=3, stride=1, bias=True):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, (kernel - 1) // 2, bias=bias)
        self.bn = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(self.bn(self.conv(x)))


class ResNet9(nn.Module):
    def __init__(self):
        super().__init__()
        for i, shape in enumerate([(3, 16, 7, 4), (16, 32, 3, 2), (32, 32), (32, 32),
                                   (32, 64, 3, 2), (64, 128, 3, 2), (128, 128), (128, 128)]):
            setattr(self, f"cb{i + 1}", ConvBn(*shape))
        self.linear1 = nn.Linear(128, 128)
        self.linear2 = nn.Linear(128, 10)
        self.relu = nn.ReLU()

    def forward(self, x):
        x = self.cb2(self.cb1(x))
        x = x + self.cb4(self.cb3(x))
        x = self.cb6(self.cb5(x))
        x = x + self.cb8(self.cb7(x))
        return self.linear2(self.relu(self.linear1(x.flatten(1))))


def settle(model):
    """Norms as after some training, so that nothing is hidden by a 0 or 1. The last one of a residual
    block of torchvision's counts little: else a hundred layers multiply any rounding error by a
    thousand, PyTorch's in single precision too."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.5, 0.5)
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    for module in model.modules():
        if hasattr(module, "downsample"):
            last = module.bn3 if hasattr(module, "bn3") else module.bn2
            nn.init.uniform_(last.weight, 0.1, 0.3)
    return model


def kept(state):
    """Without the counters of batches, which Cohort does not keep."""
    return {k: v for k, v in state.items() if not k.endswith("num_batches_tracked")}
