#!/bin/sh
# check_default_build.sh NINJA BUILD - what is built where nothing is named: the program and the
# library, and no test, example or fuzz target; those belong to `tests`.
set -eu
ninja=$1
build=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
others=' -o (tests|examples|fuzz)/'

"$ninja" -C "$build" -t commands all | grep ' -o ' >"$dir/all"
"$ninja" -C "$build" -t commands tests | grep ' -o ' >"$dir/tests"
status=0
grep -q ' -o cohort ' "$dir/all" || { echo "all: without the program"; status=1; }
grep -E "$others" "$dir/all" && { echo "all: tests are built, too"; status=1; }
for folder in tests examples fuzz; do
    grep -q " -o $folder/" "$dir/tests" || { echo "tests: nothing of $folder/"; status=1; }
done
printf 'all: %d, tests: %d\n' "$(grep -c '' "$dir/all")" "$(grep -c '' "$dir/tests")"
exit $status
