#!/bin/sh
# tidy.sh BUILD [JOBS] - clang-tidy, by .clang-tidy, over every source file that BUILD compiles.
# TIDY_FILES="src/ops/relu.c ..." looks at these alone.
set -eu
cd "$(dirname "$0")/.."
build=$1
jobs=${2:-2}

[ -f "$build/compile_commands.json" ] || {
    echo "tidy: $build has no compile_commands.json; run: make" >&2
    exit 1
}
files=${TIDY_FILES:-$(sed -n 's|^ *"file": ".*/\(src/.*\.c\)",\{0,1\}$|\1|p' \
    "$build/compile_commands.json" | sort -u)}
# One line a file, and nothing but findings: clang-tidy counts suppressed ones on stderr.
echo "$files" | tr ' ' '\n' | xargs -P "$jobs" -n 1 sh -c '
    out=$(clang-tidy --quiet -p "$0" "$1" 2>&1) || { printf "%s\n" "$out"; exit 1; }
' "$build"
