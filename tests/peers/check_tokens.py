"""check_tokens.py COHORT: `cohort data tokenize --tokenizer bpe` equals Hugging Face's `tokenizers`, token for token.

Merges of theirs and of ours, over text of every script, of random characters and with bytes that are no UTF-8.
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

try:
    from tokenizers import ByteLevelBPETokenizer
except ImportError:
    print("skipped: no tokenizers")
    sys.exit(77)

SIZE = int(os.environ.get("TOKENS_SIZE", 1 << 18))


def assigned(code):
    """Characters that the two sides' versions of Unicode agree on: those of Unicode 3.2."""
    return unicodedata.ucd_3_2_0.category(chr(code)) not in ("Cn", "Cs")


def make_text(draw, size):
    """Words, spaces, contractions, digits, and characters of any script."""
    codes = [c for c in range(0x30000) if assigned(c)]
    pieces = ["the ", "don't ", "we'll", " it's", "'S ", "  ", "\n\n", "\t", " \u00a0", "12", " 345", "--", "...", "\r\n ",
              "\u3000", "e\u0301", "hello", " world", "x=1;", "'", "''re", "\u0085"]
    out, n = [], 0
    while n < size:
        piece = draw.choice(pieces) if draw.random() < 0.7 else "".join(
            chr(draw.choice(codes)) for _ in range(draw.randint(1, 8)))
        out.append(piece)
        n += len(piece.encode())
    return "".join(out)


def ours(cohort, folder, path, merges):
    name = os.path.join(folder, "out")
    subprocess.run(["rm", "-rf", name], check=True)
    subprocess.run([cohort, "data", "tokenize", path, name, "--tokenizer", "bpe", "-q", *merges], check=True)
    with open(os.path.join(name, "tokens.bin"), "rb") as file:
        data = file.read()
    magic, _, count = struct.unpack_from("<3I", data)
    return struct.unpack_from(f"<{count}{'H' if magic == 20240520 else 'I'}", data, 1024), name


def order(merges):
    """The numbers of our tokens: bytes in the order of their characters, then what each merge makes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    number = {chr(c): i for i, c in enumerate(shown + [256 + i for i in range(256 - len(shown))])}
    with open(merges, encoding="utf-8") as file:
        for line in file.read().split("\n"):
            if line and not line.startswith("#version"):
                number.setdefault(line.replace(" ", ""), len(number))
    return number


def compare(cohort, folder, text, merges, what):
    number = order(merges)
    number["<|endoftext|>"] = len(number)
    theirs = ByteLevelBPETokenizer.from_file(vocab_file(folder, number), merges)
    path = os.path.join(folder, "text")
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    got, name = ours(cohort, folder, path, ["--merges", merges])
    with open(os.path.join(name, "vocab.json"), encoding="utf-8") as file:
        assert list(json.load(file).items()) == list(number.items()), what
    want = theirs.encode(text).ids
    if list(got) != want:
        at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
        sys.exit(f"{what}: token {at} of {len(want)}: {got[at:at + 8]}, not {want[at:at + 8]}")
    print(f"{what}: {len(want)} tokens are equal")


def vocab_file(folder, number):
    path = os.path.join(folder, "vocab.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(number, file)
    return path


def check_bytes(cohort, folder, draw, merges):
    """Bytes that are no UTF-8 come back from their tokens."""
    data = bytes(draw.randrange(256) for _ in range(SIZE // 8))
    path = os.path.join(folder, "bytes")
    with open(path, "wb") as file:
        file.write(data)
    got, _ = ours(cohort, folder, path, ["--merges", merges])
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in shown]
    byte = {chr(c): c for c in shown} | {chr(256 + i): b for i, b in enumerate(hidden)}
    piece = {i: bytes(byte[c] for c in t) for t, i in order(merges).items()}
    if b"".join(piece[t] for t in got) != data:
        sys.exit("random bytes do not come back from their tokens")
    print(f"{len(data)} random bytes come back from {len(got)} tokens")


def main():
    cohort, draw = sys.argv[1], random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        text = make_text(draw, SIZE)
        words = os.path.join(folder, "words")
        with open(words, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        trainer = ByteLevelBPETokenizer()
        trainer.train([words], vocab_size=4000, show_progress=False)
        trainer.save_model(folder, "theirs")
        theirs = os.path.join(folder, "theirs-merges.txt")
        _, name = ours(cohort, folder, words, ["--vocab", "4000"])
        mine = os.path.join(folder, "mine.txt")
        os.rename(os.path.join(name, "merges.txt"), mine)
        other = make_text(draw, SIZE) + "  "
        noise = "".join(chr(c) for c in draw.choices([c for c in range(0x30000) if assigned(c)], k=SIZE // 8))
        damaged = bytes(draw.randrange(256) for _ in range(SIZE // 8)).decode(errors="replace")
        for merges, whose in (theirs, "their merges"), (mine, "our merges"):
            compare(cohort, folder, text, merges, f"{whose}, text that they are from")
            compare(cohort, folder, other, merges, f"{whose}, other text")
            compare(cohort, folder, noise, merges, f"{whose}, random characters")
            compare(cohort, folder, damaged, merges, f"{whose}, replaced bytes")
        compare(cohort, folder, "a" * 100000 + " " * 5000, mine, "our merges, long words")
        check_bytes(cohort, folder, draw, mine)


main()
