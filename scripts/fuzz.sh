#!/bin/sh
# fuzz.sh BUILD SECONDS - run every fuzz target of a fuzz build for so long each.
#
# Starts from fuzz/corpora/<name>; new inputs go to BUILD/corpora/<name>, an input that crashes
# to BUILD/crashes/<name>-*. Keep a crash for good by copying it to fuzz/corpora/<name>.
set -eu
build=$1
seconds=$2
found=0
status=0

for program in "$build"/fuzz/fuzz_*; do
    [ -f "$program" ] && [ -x "$program" ] || continue
    found=1
    name=$(basename "$program" | sed 's/^fuzz_//')
    mkdir -p "$build/corpora/$name" "$build/crashes"
    printf 'fuzz: %s for %s s\n' "$name" "$seconds"
    "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$build/crashes/$name-" "$build/corpora/$name" "fuzz/corpora/$name" \
        >"$build/$name.log" 2>&1 || {
        status=1
        echo "fuzz: $name FAILED; the end of $build/$name.log:"
        tail -n 40 "$build/$name.log"
    }
    grep -E '^stat::(number_of_executed_units|new_units_added)' "$build/$name.log" || true
done
[ $found -eq 1 ] || {
    echo "fuzz: no targets in $build/fuzz" >&2
    exit 1
}
exit $status
