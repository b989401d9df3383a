#!/bin/sh
# The limits that no other tool keeps: 500 lines a file, 60 lines a function, 4 levels, 100
# columns; no absolute path of somebody's machine. Prints each place that breaks one.
set -eu
cd "$(dirname "$0")/.."
status=0

# A function's body reaches from a "{" to a "}" in the first column, as clang-format leaves it.
# A level is an indent of 4; only lines that open a block count, as others may be deep because
# they go on from the line before.
find src include tests fuzz examples bench -name '*.[ch]' -o -name '*.cu' | sort | xargs awk '
function fault(line, text)
{
    printf "%s:%d: %s\n", FILENAME, line, text
    bad = 1
}
function end_file()
{
    if (last > 500) {
        printf "%s: %d lines, the limit is 500\n", name, last
        bad = 1
    }
}
FNR == 1 { end_file(); name = FILENAME; start = 0 }
{ last = FNR }
length($0) > 100 { fault(FNR, "wider than 100 columns") }
/^\{/ { start = FNR }
/^\}/ {
    if (start && FNR - start - 1 > 60)
        fault(start, "function body of " (FNR - start - 1) " lines, the limit is 60")
    start = 0
}
start && /\{$/ && match($0, /^ +/) && RLENGTH >= 16 { fault(FNR, "deeper than 4 levels") }
END { end_file(); exit bad }
' || status=1

if find . -name .git -prune -o -path './build*' -prune -o -path ./runs -prune -o \
    -path ./fuzz/corpora -prune -o -type f -print |
    xargs grep -nIE '(^|[^A-Za-z0-9_.~])/(home|root|work|Users|farm)/[A-Za-z0-9_]' /dev/null; then
    echo "absolute paths of one machine: say it relative to the source tree"
    status=1
fi
exit $status
