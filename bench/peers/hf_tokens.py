"""hf_tokens.py COHORT [MB]: `cohort data tokenize --tokenizer bpe` beside Hugging Face's `tokenizers`, on 100 MB.

Makes the text itself, from a seed: words of twelve scripts by Zipf's law, code, numbers, emoji, random characters, and
random bytes, of which those that are no UTF-8 are U+FFFD, as theirs takes characters alone. Merges are ours, found in the
first tenth. Checks that all tokens are equal, and compares processor time: theirs of the calls that encode, in one
thread, ours of the whole program, which reads the file twice and writes the tokens. Exit code 1: tokens differ.
"""
import array
import itertools
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
try:
    from tokenizers import Tokenizer, models, pre_tokenizers
except ImportError:
    print("skipped: no tokenizers")
    sys.exit(77)

PIECE = 1 << 20  # characters that are encoded at once
LETTERS = ["etaoinshrdlucmfwypvbgkqjxz", "enirstaduhglcmbofkwzpväöüß", "esaitnrulodcmpévqfbghjàxèyê", "оеаинтсрвлкмдпуяызьбгчй",
           "αοιεστνηυρπκμλςδγωχθφβξζψ", "ايلمنرتبدسعكوهفقحشجصطخ", "ויהלאתרבמשנכעדחקפט", "कतनरमलसपयवहदगबजच",
           "กนรอมงวดลสทปยคต", "のにはをたがでとしれさかなるい", "的一是不了人我在有他这中大来上国", "이다는을가에의고하지로서기"]
EMOJI = ["😀", "🎉", "👍🏽", "❤️", "🚀", "👩‍💻", "🇫🇷", "☃", "🤖", "✅"]
CODE = ["for (int i = 0; i < n; i++) {", "    return x[i] * 2.5e-3f;", "def f(self, *args, **kw):", "\tif err != nil {", "}", "#include <stdio.h>",
        "    'key': \"value\",", "SELECT * FROM t WHERE id >= 42;", "x = {'a': [1, 2, 3]}  # don't", "<div class=\"row\">&nbsp;</div>", "0xdeadbeef", "//===---===//"]


def make_words(draw, letters, n):
    words = ["".join(draw.choice(letters[:4 + draw.randrange(len(letters) - 3)]) for _ in range(draw.randint(1, 9))) for _ in range(n)]
    return words, list(itertools.accumulate(1 / (i + 3) for i in range(n)))


def make_piece(draw, vocabularies, codes, size):
    """Begins with a letter and ends with a line: so its tokens are the same by itself and within a text."""
    out, n = ["A"], 1
    while n < size:
        kind = draw.random()
        if kind < 0.80:
            words, weights = draw.choice(vocabularies)
            line = " ".join(draw.choices(words, cum_weights=weights, k=draw.randint(20, 200))) + draw.choice([".", "?", "!\n", " — 'tis", ", it's", "..."])
        elif kind < 0.90:
            line = "\n".join(draw.choices(CODE, k=draw.randint(3, 20)))
        elif kind < 0.93:
            line = " ".join(str(draw.randrange(10 ** draw.randint(1, 9))) + draw.choice(["", "%", ".5", " km"]) for _ in range(20))
        elif kind < 0.95:
            line = "".join(draw.choices(EMOJI, k=10)) + draw.choice(["  ", "\r\n", "\u3000", "\u00a0x"])
        elif kind < 0.97:
            line = "".join(draw.choices(codes, k=200))
        else:
            line = draw.randbytes(400).decode(errors="replace")
        out.append(line + "\n")
        n += len(line) + 1
    return "".join(out) + ".\n"


def processor_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def tokens_of(folder):
    with open(os.path.join(folder, "tokens.bin"), "rb") as file:
        head = array.array("I", file.read(1024))
        tokens = array.array("H" if head[0] == 20240520 else "I", file.read())
    return tokens


def main():
    cohort, megabytes = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100
    draw = random.Random(1)
    vocabularies = [make_words(draw, letters, 20000) for letters in LETTERS]
    codes = [chr(c) for c in range(0x30000) if unicodedata.ucd_3_2_0.category(chr(c)) not in ("Cn", "Cs")]
    with tempfile.TemporaryDirectory() as folder:
        pieces, size = [], 0
        while size < megabytes * 1000000:
            pieces.append(make_piece(draw, vocabularies, codes, min(PIECE, megabytes * 10000)))
            size += len(pieces[-1].encode())
        paths = [os.path.join(folder, name) for name in ("first", "text")]
        for path, part in zip(paths, (pieces[:len(pieces) // 10], pieces)):
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write("".join(part))
        learned, out = os.path.join(folder, "learned"), os.path.join(folder, "out")
        bpe = ["data", "tokenize", "--tokenizer", "bpe", "-q"]
        found = processor_seconds([cohort, *bpe, paths[0], learned, "--vocab", "32768"])
        print(f"{size / 1e6:.1f} MB of text; 32,512 merges found in a tenth of it in {found:.1f} s", flush=True)
        merges, vocab = (os.path.join(learned, name) for name in ("merges.txt", "vocab.json"))
        seconds = processor_seconds([cohort, *bpe, paths[1], out, "--merges", merges])
        got = tokens_of(out)
        print(f"ours: {len(got)} tokens in {seconds:.2f} s, {size / 1e6 / seconds:.2f} MB/s", flush=True)
        theirs = Tokenizer(models.BPE.from_file(vocab, merges))
        theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        at, spent = 0, 0
        for piece in pieces:
            before = time.process_time()
            encoded = theirs.encode_batch_fast([piece], add_special_tokens=False)[0]
            spent += time.process_time() - before
            ids = array.array(got.typecode, encoded.ids)
            if got[at:at + len(ids)] != ids:
                wrong = next(i for i, (a, b) in enumerate(zip(got[at:], ids)) if a != b)
                sys.exit(f"token {at + wrong} is {got[at + wrong]}, not {ids[wrong]}")
            at += len(ids)
        if at != len(got):
            sys.exit(f"{len(got)} tokens, not {at}")
        print(f"theirs: the same tokens in {spent:.2f} s, {size / 1e6 / spent:.2f} MB/s; ours is {spent / seconds:.2f} times as fast")


main()
