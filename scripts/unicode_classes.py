#!/usr/bin/env python3
"""Write src/text/unicode_table.h: the ranges of code points that are letters, numbers and white space."""
import sys
import unicodedata

SPACES = {0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, *range(9, 14), 0x20, *range(0x2000, 0x200B)}


def kind(code):
    if code in SPACES:
        return 3
    return {"L": 1, "N": 2}.get(unicodedata.category(chr(code))[0], 0)


def main():
    ranges, last = [], 0
    for code in range(0x110000):
        if kind(code) != last:
            last = kind(code)
            ranges.append(code << 2 | last)
    print("/* unicode_table.h - where classes of code points begin: code << 2 | class. Written by")
    print(f"   scripts/unicode_classes.py from Unicode {unicodedata.unidata_version}. */")
    print("/* clang-format off */")
    print("static const uint32_t unicode_table[] = {")
    for i in range(0, len(ranges), 8):
        print("    " + " ".join(f"0x{r:x}," for r in ranges[i:i + 8]))
    print("};\n/* clang-format on */")


sys.exit(main())
