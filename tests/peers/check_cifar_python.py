"""check_cifar_python.py - CIFAR's version for Python, written by Python's own pickler.

usage: check_cifar_python.py COHORT [FOLDER]

Pickles dictionaries by protocol 2 with strings of bytes as Python 2 has them, packs them by
`cohort data pack` and compares records and labels. Arrays name numpy's functions, as those of numpy
do; numpy itself is not needed. With FOLDER some files stay there, for the fuzzer to begin with.
"""
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import types

IMAGE = 3072
NAMES = [f"class {i}" for i in range(10)]


def module(name):
    sys.modules[name] = types.ModuleType(name)
    return sys.modules[name]


def named(where, name, what):
    what.__module__, what.__name__, what.__qualname__ = where, name, name
    setattr(sys.modules[where], name, what)
    return what


for part in ("numpy", "numpy.core", "numpy.core.multiarray"):
    module(part)
reconstruct = named("numpy.core.multiarray", "_reconstruct", lambda *a: None)
ndarray = named("numpy", "ndarray", type("ndarray", (), {}))
dtype = named("numpy", "dtype", type("dtype", (), {}))


class Bytes:
    """What numpy.dtype("u1") reduces to."""

    def __reduce_ex__(self, protocol):
        return dtype, ("u1", 0, 1), (3, "|", None, None, None, -1, -1, 0)


class Array:
    """What an array of uint8 reduces to."""

    def __init__(self, rows):
        self.rows = rows

    def __reduce_ex__(self, protocol):
        state = (1, (len(self.rows), IMAGE), Bytes(), False, b"".join(self.rows))
        return reconstruct, (ndarray, (0,), "b"), state


class Pickler(pickle._Pickler):
    """Strings are those of Python 2: bytes."""
    dispatch = dict(pickle._Pickler.dispatch)

    def save_bytes(self, text):
        if isinstance(text, str):
            text = text.encode()
        short = len(text) < 256
        self.write((b"U" + bytes([len(text)]) if short else b"T" + struct.pack("<i", len(text)))
                   + text)
        self.memoize(text)

    dispatch[bytes] = dispatch[str] = save_bytes


def write(path, content):
    with open(path, "wb") as file:
        Pickler(file, 2).dump(content)


def image(i):
    return bytes((i * 31 + k * k % 253) % 256 for k in range(IMAGE))


def batch(first, n):
    return {"batch_label": "training batch 1 of 5",
            "labels": [i % 10 for i in range(first, first + n)],
            "data": Array([image(i) for i in range(first, first + n)]),
            "filenames": [f"picture_s_{i:06}.png" for i in range(first, first + n)]}


def hundred(first, n):
    return {"filenames": [f"picture_s_{i:06}.png" for i in range(first, first + n)],
            "batch_label": "training batch 1 of 1",
            "fine_labels": [i % 100 for i in range(first, first + n)],
            "coarse_labels": [i % 20 for i in range(first, first + n)],
            "data": Array([image(i) for i in range(first, first + n)])}


def check(cohort, folder, name, split, first, n, classes, keys=""):
    target = os.path.join(folder, "x.pack")
    subprocess.run([cohort, "data", "pack", f"{{name: {name}, path: {folder}{keys}}}", target,
                    "--quiet", "--only", split], check=True)
    with open(target, "rb") as file:
        pack = file.read()
    count = sum(struct.unpack_from("<QQ", pack, 32))
    index, = struct.unpack_from("<Q", pack, 48)
    assert count == n, f"{name} {split}: {count} samples, not {n}"
    for i in range(n):
        offset, size, label, _ = struct.unpack_from("<QIII", pack, index + 24 * i)
        assert label == (first + i) % classes, f"{name} {split}: label {label} of {first + i}"
        assert pack[offset:offset + size] == image(first + i), f"{name} {split}: sample {i}"
    print(f"{name} {split}: {n} samples of {classes} classes")


def main():
    with tempfile.TemporaryDirectory() as folder:
        write(os.path.join(folder, "data_batch_1"), batch(3, 1200))
        write(os.path.join(folder, "data_batch_5"), batch(1203, 4))
        write(os.path.join(folder, "test_batch"), batch(7, 1))
        write(os.path.join(folder, "batches.meta"),
              {"num_cases_per_batch": 10000, "label_names": NAMES, "num_vis": IMAGE})
        write(os.path.join(folder, "train"), hundred(90, 30))
        check(sys.argv[1], folder, "cifar10", "train", 3, 1204, 10)
        check(sys.argv[1], folder, "cifar10", "test", 7, 1, 10)
        check(sys.argv[1], folder, "cifar100", "train", 90, 30, 100)
        check(sys.argv[1], folder, "cifar100", "train", 90, 30, 20, ", labels: coarse")
        said = subprocess.run([sys.argv[1], "data", "info",
                               f"{{name: cifar10, path: {folder}}}"],
                              check=True, capture_output=True, text=True).stdout
        assert NAMES[9] in said, said
    if len(sys.argv) > 2 and os.path.isdir(sys.argv[2]):
        write(os.path.join(sys.argv[2], "batch"), batch(3, 1))
        write(os.path.join(sys.argv[2], "hundred"), hundred(90, 1))
        write(os.path.join(sys.argv[2], "meta"), {"label_names": NAMES, "num_vis": IMAGE})


main()
