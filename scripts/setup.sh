#!/bin/sh
# Install what is missing to build and use Cohort on Debian 12, Ubuntu 22.04 or newer.
#
#   scripts/setup.sh [build] [lint] [fuzz] [coverage] [hosts]     (nothing named: build)
#
# Does nothing, and asks for no rights, when everything is there.
set -eu

# One package a line; what it is for stands behind the '#'.
build='
gcc                    # the C compiler
libc6-dev              # headers of the C library
make                   # the Makefile
cmake                  # the build
ninja-build            # runs it
pkg-config             # finds the libraries below, and libcohort once installed
libdnnl-dev            # oneDNN: CPU kernels
libfyaml-dev           # YAML, with line and column in errors
libjansson-dev         # JSON: safetensors headers, metrics
libhwloc-dev           # which cores lie together
libdeflate-dev         # gzip data sets
libjpeg-dev            # JPEG data sets
libpng-dev             # PNG data sets
libonnx-dev            # the definition of ONNX, for `cohort export`
protobuf-c-compiler    # makes C of it
libprotobuf-c-dev      # writes its messages
libopenmpi-dev         # the mpi transport
openmpi-bin            # mpiexec
libcmocka-dev          # the tests
valgrind               # counts instructions for one of them
gnuplot-nox            # plots of `cohort compare`; without it there are tables alone
dataset-fashion-mnist  # the data of `make demo`
'
lint='
clang-format           # layout
clang-tidy             # bug patterns
'
fuzz='
clang                  # the compiler that has libFuzzer
libclang-rt-dev        # libFuzzer and the sanitizers
'
coverage='
gcovr                  # the report
'
hosts='
openssh-client         # mpiexec starts ranks on other hosts by it
openssh-server         # which they have then
iproute2               # networks between namespaces
util-linux             # and namespaces
'

fail()
{
    printf 'setup: error: %s\n' "$1" >&2
    exit 1
}

names()
{
    printf '%s\n' "$1" | sed 's/[[:space:]]*#.*//' | tr '\n' ' '
}

installed()
{
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

[ $# -gt 0 ] || set -- build
wanted=
for list in "$@"; do
    case $list in
    build) wanted="$wanted $(names "$build")" ;;
    lint) wanted="$wanted $(names "$lint")" ;;
    fuzz) wanted="$wanted $(names "$fuzz")" ;;
    coverage) wanted="$wanted $(names "$coverage")" ;;
    hosts) wanted="$wanted $(names "$hosts")" ;;
    *) fail "no list named '$list'; there are: build lint fuzz coverage hosts" ;;
    esac
done

# Elsewhere the configure step says what it does not find.
command -v apt-get >/dev/null && command -v dpkg-query >/dev/null || {
    printf 'setup: no apt here; needed, by their Debian names:%s\n' "$wanted" >&2
    exit 0
}

missing=
for package in $wanted; do
    installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

printf 'setup: installing%s\n' "$missing"
as_root=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
        fail "not root, and no sudo; as root, run: apt-get install$missing"
    as_root=sudo
fi
apt_get()
{
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@" </dev/null
}
apt_get update || fail "apt-get update failed; see above"
# shellcheck disable=SC2086 # a list of names
apt_get install -y --no-install-recommends $missing || fail "apt-get install failed; see above"
