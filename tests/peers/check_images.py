"""check_images.py - images as Pillow decodes and resizes them.

usage: check_images.py COHORT

Packs a folder of JPEG and PNG files with --decode and compares the records with Pillow's
Image.resize(..., BILINEAR, box=...): the test split, which is decoded at full size, and the
training split with `scaled_decode: false`. Bit for bit up to Pillow 12. Exits with 77 where Pillow is not installed.
"""
import os
import struct
import subprocess
import sys
import tempfile
import zlib

try:
    from PIL import Image, __version__ as VERSION
except ImportError:
    print("skipped: no Pillow here (Debian: python3-pil)")
    sys.exit(77)

SIDE = 48
# Pillow 13 rounds otherwise when it resizes, to another level here and there.
ALLOWED = 0 if int(VERSION.split(".")[0]) < 13 else 1


def pattern(mode, width, height, seed):
    bands = len(Image.new(mode, (1, 1)).getbands())
    pixels = bytearray()
    for y in range(height):
        for x in range(width):
            for c in range(bands):
                pixels.append((x * (3 + c) + y * (5 - c) + (x * y * seed >> 4)) % 256)
    return Image.frombytes(mode, (width, height), bytes(pixels))


def make(folder):
    """Files of every kind; the last JPEGs are so large that training would take them reduced."""
    kinds = [("RGB", 90, 70, {"quality": 90}), ("RGB", 61, 95, {"quality": 75, "subsampling": 0}),
             ("RGB", 93, 77, {"quality": 85, "subsampling": 1}), ("L", 80, 60, {"quality": 90}),
             ("RGB", 90, 70, {"quality": 90, "progressive": True}), ("CMYK", 70, 90, {}),
             ("RGB", 30, 20, {"quality": 95}), ("RGB", 500, 375, {"quality": 90}),
             ("RGB", 333, 401, {"quality": 80, "progressive": True}), ("L", 260, 200, {}),
             ("CMYK", 210, 300, {})]
    for i, (mode, width, height, options) in enumerate(kinds):
        pattern(mode, width, height, i + 1).save(os.path.join(folder, f"{i}.jpg"), **options)
    for i, mode in enumerate(["RGB", "L", "RGBA", "LA"]):
        pattern(mode, 85, 65, i + 3).save(os.path.join(folder, f"p{i}.png"))
    pattern("RGB", 85, 65, 9).quantize(64).save(os.path.join(folder, "p9.png"))


def expected(path):
    image = Image.open(path)
    width, height = image.size
    wide = SIDE * width // height if height <= width else SIDE
    high = SIDE if height <= width else SIDE * height // width
    right, down = width / wide, height / high
    x, y = round((wide - SIDE) / 2) * right, round((high - SIDE) / 2) * down
    box = (x, y, min(x + SIDE * right, width), min(y + SIDE * down, height))
    image = image.convert("RGB").resize((SIDE, SIDE), Image.BILINEAR, box=box)
    data = image.tobytes()
    return b"".join(data[c::3] for c in range(3))


def compare(folder, split, more):
    """The largest difference of a byte of the split's records from what Pillow makes."""
    target = os.path.join(folder, "x.pack")
    subprocess.run([sys.argv[1], "data", "pack",
                    f"{{name: imagefolder, path: {folder}, resize: {SIDE}{more}}}", target,
                    "--quiet", "--only", split, "--decode", str(SIDE)], check=True)
    with open(target, "rb") as file:
        pack = file.read()
    images = os.path.join(folder, "train" if split == "train" else "val", "a")
    count = sum(struct.unpack_from("<QQ", pack, 32))
    index, = struct.unpack_from("<Q", pack, 48)
    names = sorted(os.listdir(images))
    assert count == len(names), f"{count} records of {len(names)} files"
    worst = 0
    for i, name in enumerate(names):
        offset, size, _, check = struct.unpack_from("<QIII", pack, index + 24 * i)
        record = pack[offset:offset + size]
        assert zlib.crc32(record) == check, f"{name}: its checksum is not CRC-32"
        wanted = expected(os.path.join(images, name))
        assert len(record) == len(wanted)
        off = max(abs(a - b) for a, b in zip(record, wanted))
        print(f"{split}{more}: {name}: largest difference {off}")
        worst = max(worst, off)
    return worst


def main():
    with tempfile.TemporaryDirectory() as folder:
        for split in ("train", "val"):
            os.makedirs(os.path.join(folder, split, "a"))
            make(os.path.join(folder, split, "a"))
        for split, more in (("test", ""), ("train", ", scaled_decode: false")):
            worst = compare(folder, split, more)
            assert worst <= ALLOWED, f"{split}: pixels differ from Pillow's by up to {worst}"
        print(f"reduced, largest difference of all: {compare(folder, 'train', '')}")


main()
