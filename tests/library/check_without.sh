#!/bin/sh
# check_without.sh BUILD SOURCE NM CC [FLAG...] - what takes the place of an optional part that a build lacks
# has each function once, and all of those that others call. The build of this machine may have the
# part, and so would not show it.
set -eu
build=$1
src=$2/src
nm=$3
shift 3
work=$(mktemp -d "${TMPDIR:-/tmp}/cohort-without-XXXXXX")
trap 'rm -rf "$work"' EXIT
# The backend of GPUs is left out together with their device.
all=$(find "$build/src" -name 'libco_*.a' ! -name libco_cuda_backend.a)
compile="$*"
status=0

# symbols KIND ARCHIVE...: one a line, with where it is in front
symbols()
{
    kind=$1
    shift
    "$nm" -A -g "--$kind-only" "$@" 2>/dev/null
}

names()
{
    awk '{ print $NF }' | sort -u
}

# without FOLDER OBJECTS FILE...: in the archive of that folder these take the place of OBJECTS, a pattern
without()
{
    folder=$src/$1
    archive=$(find "$build/src/$1" -maxdepth 1 -name 'libco_*.a')
    gone="$archive:($2)\.c\.o:"
    shift 2
    for file; do
        $compile -I"$src" -I"$src/../include" -c "$folder/$file" -o "$work/${file%.c}.o"
    done
    # shellcheck disable=SC2046,SC2086 # lists of names
    $compile -r -nostdlib -o "$work/whole" $(printf "$work/%s " $(printf '%s\n' "$@" | sed 's/c$/o/')) || {
        status=1
        return 0
    }
    symbols defined "$work/whole" | names >"$work/has"
    symbols defined "$archive" | grep -E "$gone" | names >"$work/gone"
    # shellcheck disable=SC2086 # a list of names
    symbols undefined $all | grep -vE "$gone" | names | comm -12 - "$work/gone" | comm -23 - "$work/has" >"$work/missing"
    [ ! -s "$work/missing" ] || {
        echo "$folder: $* lack what others call: $(paste -s -d ' ' "$work/missing")"
        status=1
    }
}

without device/cuda '.*' none.c nccl_none.c
without device/cuda nccl nccl_none.c
without export 'onnx|onnx.pb-c' onnx_none.c
without fetch 'library|range|transfer|unpack' without.c
without live 'http|server|serve|login_page' without.c
exit $status
