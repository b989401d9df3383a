"""peer_safetensors.py plain|safetensors PROGRAM - judge our safetensors files from Python, and our
reader by files from Python. `plain` needs the standard library alone and knows the format from its
description; `safetensors` is the format's own package (with numpy), skipped where missing."""

import hashlib
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

# name: dtype in files, struct code, shape
TENSORS = {
    "conv1.weight": ("F32", "f", [2, 1, 3, 2]),
    'b\u00e9ta "5"': ("F64", "d", [5]),
    "scalar": ("I32", "i", []),
    "num_batches": ("I64", "q", [2, 2]),
    "bytes": ("U8", "B", [1, 3]),
    "empty": ("F32", "f", [0, 7]),
}


def values(name):
    dtype, _, shape = TENSORS[name]
    return [(i * 3 - 4) % 256 if dtype == "U8" else i * 3 - 4 for i in range(math.prod(shape))]


def packed(name):
    numbers = values(name)
    return struct.pack("<%d%s" % (len(numbers), TENSORS[name][1]), *numbers)


def plain_check(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    assert length % 8 == 0 and data[8:9] == b"{"
    header = json.loads(data[8 : 8 + length].decode("utf-8"))
    body = data[8 + length :]
    assert header.pop("__metadata__") == {"format": "pt"}
    assert sorted(header) == sorted(TENSORS)
    covered = []
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == TENSORS[name][0] and entry["shape"] == TENSORS[name][2], name
        assert body[begin:end] == packed(name), name
        covered += range(begin, end)
    assert sorted(covered) == list(range(len(body)))


def plain_write(path):
    header, body = {"__metadata__": {"format": "py"}}, b""
    for name, (dtype, _, shape) in TENSORS.items():
        offsets = [len(body), len(body) + len(packed(name))]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        body += packed(name)
    text = json.dumps(header).encode()  # no padding: the tensors lie anyhow
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)


def package_check(path):
    from safetensors import safe_open
    from safetensors.numpy import load_file

    loaded = load_file(path)
    assert sorted(loaded) == sorted(TENSORS)
    for name, array in loaded.items():
        assert list(array.shape) == TENSORS[name][2], name
        assert array.dtype == TENSORS[name][1], (name, array.dtype)
        assert array.flatten().tolist() == values(name), name
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"format": "pt"}


def package_write(path):
    import numpy
    from safetensors.numpy import save_file

    arrays = {
        name: numpy.array(values(name), dtype=code).reshape(shape)
        for name, (_, code, shape) in TENSORS.items()
    }
    save_file(arrays, path, metadata={"format": "py"})


def expected_lines():
    for name in sorted(TENSORS):
        dtype, _, shape = TENSORS[name]
        sizes = "(%s)" % ", ".join(map(str, shape))
        yield "|".join([name, dtype.lower(), sizes, hashlib.sha256(packed(name)).hexdigest()])
    yield "format|py"


def main():
    judge, program = sys.argv[1:]
    check, write = plain_check, plain_write
    if judge == "safetensors":
        try:
            import numpy  # noqa: F401
            import safetensors  # noqa: F401
        except ImportError as missing:
            print("skipped: %s" % missing)
            return 77
        check, write = package_check, package_write
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = os.path.join(folder, "ours.st"), os.path.join(folder, "theirs.st")
        subprocess.run([program, "write", ours], check=True, timeout=30)
        check(ours)
        write(theirs)
        read = subprocess.run([program, "read", theirs], check=True, timeout=30,
                              stdout=subprocess.PIPE)
        assert read.stdout.decode("utf-8").splitlines() == list(expected_lines()), read.stdout
    return 0


sys.exit(main())
