#!/bin/sh
# tidy.sh BUILD [JOBS] - clang-tidy, by .clang-tidy, over every source file that BUILD compiles.
# TIDY_FILES="src/ops/relu.c ..." looks at these alone.
#
# Does not look again at what was clean: BUILD/tidy has, for each such file, sums of its commands and
# of the checks, of the file, and of all that it includes. `rm -r BUILD/tidy` forgets them.
set -eu
cd "$(dirname "$0")/.."
build=$1
jobs=${2:-2}
kept=$build/tidy

[ -f "$build/compile_commands.json" ] || {
    echo "tidy: $build has no compile_commands.json; run: make" >&2
    exit 1
}
mkdir -p "$kept"
# A file that many programs are made of is in there once for each of them: once for each set of flags
# is enough.
awk '/"command":/ { command = $0; flags = $0; sub(/ -o [^ "]*/, "", flags) }
    /"directory":/ { folder = $0 }
    /"file":/ && !seen[$0 flags]++ { print between "{\n" folder "\n" command "\n" $0 "\n}"; between = "," }
    BEGIN { print "[" } END { print "]" }' "$build/compile_commands.json" >"$kept/compile_commands.json"
{
    clang-tidy --version
    find . -path './build*' -prune -o -name .clang-tidy -print | sort | xargs cat
} >"$kept/checks"
files=${TIDY_FILES:-$(sed -n 's|^ *"file": "'"$PWD"'/\(.*\.c\)",\{0,1\}$|\1|p' \
    "$kept/compile_commands.json" | grep -E '^(src|tests|fuzz|examples|bench)/' | sort -u)}

# One line a file, and nothing but findings: clang-tidy counts suppressed ones on stderr, and -H has
# it list there what is included. What has changed meanwhile is not called clean.
echo "$files" | tr ' ' '\n' | xargs -P "$jobs" -n 1 sh -c '
    clean=$0/$(echo "$1" | tr / +)
    of=$({ cat "$0/checks"; grep -F -B 1 "/$1\"" "$0/compile_commands.json"; } | sha256sum)
    [ "$(head -n 1 "$clean" 2>/dev/null)" = "$of" ] &&
        tail -n +2 "$clean" | sha256sum --status -c 2>/dev/null && exit 0
    echo "$of" >"$clean.new"
    out=$(clang-tidy --quiet -p "$0" --extra-arg=-H "$1" 2>&1) || {
        printf "%s\n" "$out" | grep -v "^\.\.* "
        exit 1
    }
    read=$({ echo "$1"; printf "%s\n" "$out" | sed -n "s/^\.\.* //p"; } | sort -u)
    [ -z "$(find $read -newer "$clean.new")" ] || exit 0
    sha256sum $read >>"$clean.new"
    mv "$clean.new" "$clean"
' "$kept"
