#!/bin/sh
# Counts what is written twice: runs of 6 lines of src, without blank ones, that are elsewhere to
# the letter, wherever they begin. Lists of includes and rows of tables end a run.
#
#   repeats.sh [TREE]     prints each place, and the number last
set -eu
cd "${1:-$(dirname "$0")/..}"
find src -name '*.[ch]' | LC_ALL=C sort | xargs awk '
FNR == 1 { n = 0 }
{
    line = $0
    gsub(/^[ \t]+|[ \t]+$/, "", line)
}
line == "" { next }
line ~ /^#include/ || line ~ /^[.&"[]/ || line ~ /^\{.*\},?$/ { n = 0; next }
{
    text[n % 6] = line
    at[n % 6] = FNR
    if (++n < 6)
        next
    run = ""
    for (i = n - 6; i < n; i++)
        run = run "\n" text[i % 6]
    count[run]++
    places[run] = places[run] " " FILENAME ":" at[n % 6]
}
END {
    for (run in count)
        if (count[run] > 1) {
            print substr(places[run], 2) | "LC_ALL=C sort"
            all += count[run]
        }
    close("LC_ALL=C sort")
    print all + 0, "runs of 6 lines are elsewhere, too"
}'
