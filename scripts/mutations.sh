#!/bin/sh
# mutations.sh BUILD FILES SEED - each reader of untrusted bytes over so many damaged files, made of
# fuzz/corpora/<name> by the seed.
#
# A file that is a finding stays in BUILD/mutations; BUILD/fuzz/fuzz_<name> FILE repeats it, and a
# copy in fuzz/corpora/<name> keeps it as a test for good. Exit code 1: there are findings.
set -eu
build=$1
files=$2
seed=$3
found=$build/mutations
table=
status=0
# What is freed stays for 16 MiB, not 256, or the most memory would only say that. One request for
# more than 2 GiB is a crash.
export ASAN_OPTIONS="quarantine_size_mb=16:max_allocation_size_mb=2048:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"

rm -rf "$found"
mkdir -p "$found"
for program in "$build"/fuzz/fuzz_*; do
    [ -f "$program" ] && [ -x "$program" ] || continue
    name=$(basename "$program" | sed 's/^fuzz_//')
    printf 'mutations: %s\n' "$name"
    line=$("$program" --mutations "$name" "$files" "$seed" 5 "$found" "fuzz/corpora/$name") || status=1
    table="$table$line
"
done
[ -n "$table" ] || {
    echo "mutations: no targets in $build/fuzz" >&2
    exit 1
}
printf '%-14s %7s %8s %6s %6s %10s %12s %12s\n' \
    reader files crashes hangs leaks 'over 2 GiB' 'slowest (s)' 'most (MiB)'
printf '%s' "$table"
[ $status -eq 0 ] || echo "mutations: findings are in $found" >&2
exit $status
