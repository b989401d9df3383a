#!/bin/sh
# Install what is missing to build and use Cohort on Debian 12, Ubuntu 22.04 or newer.
#
#   scripts/setup.sh [--ask] [LIST ...]     LIST: build optional demo test lint fuzz coverage hosts shards slurm simulate deb chroot
#                                           first arm64 browser docs (nothing named: build optional)
#
# Does nothing when everything is there. What is needed and cannot be installed ends it, with the
# line for whoever administers the machine; what may be missing is named, and left out. sudo asks
# for a password only for what is needed, or with --ask.
set -eu

# A package a line, then how else it may be there: a program, or a library that pkg-config knows.
# What it is for stands behind the '#'. A '?' before it: it may be missing.
build='
gcc cc                    # the C compiler
libc6-dev -               # headers of the C library
make make                 # the Makefile
cmake cmake               # the build
ninja-build ninja         # runs it
pkg-config pkg-config     # finds the libraries below, and libcohort once installed
libfyaml-dev pc:libfyaml  # YAML, with line and column in errors
libjansson-dev pc:jansson # JSON: safetensors headers, metrics
libhwloc-dev pc:hwloc     # which cores lie together
libdeflate-dev pc:libdeflate # gzip data sets
libjpeg-dev pc:libjpeg    # JPEG data sets
libpng-dev pc:libpng      # PNG data sets
'
optional='
?libdnnl-dev -            # the kernels of oneDNN
?libopenmpi-dev mpicc     # ranks over MPI
?openmpi-bin mpiexec      # ranks over MPI
?libonnx-dev -            # export to ONNX
?protobuf-c-compiler protoc-c # export to ONNX
?libprotobuf-c-dev pc:libprotobuf-c # export to ONNX
?libcurl4-openssl-dev -   # `cohort data get`, shards of a web server
?libarchive-dev -         # `cohort data get`
?libmicrohttpd-dev -      # the page of `cohort watch`
?gnuplot-nox gnuplot      # plots of `cohort compare`
'
demo='
dataset-fashion-mnist -   # its data
'
test='
libcmocka-dev pc:cmocka   # what they are written with
?valgrind valgrind        # the tests that count instructions and look for leaks
?libmpich-dev -           # the module for MPICH, and its tests
?mpich mpiexec.mpich      # its launcher
?dataset-fashion-mnist -  # tests that train on Fashion-MNIST
?patch patch              # the test of additions
?openssl openssl          # certificates for tests of TLS
?locales -                # a locale that writes numbers with a comma
'
deb='
debhelper dh              # builds packages
dpkg-dev dpkg-buildpackage # the same
lintian lintian           # checks them
libmpich-dev -            # the module for MPICH
libopenmpi-dev -          # that for Open MPI
'
chroot='
debootstrap debootstrap   # makes other releases of Debian
util-linux unshare        # namespaces
'
arm64='
gcc-aarch64-linux-gnu aarch64-linux-gnu-gcc # compiles for ARM64
qemu-user qemu-aarch64    # runs what it has compiled
util-linux unshare        # a namespace for that
'
lint='
clang-format clang-format # layout
clang-tidy clang-tidy     # bug patterns
'
fuzz='
clang clang               # the compiler that has libFuzzer
libclang-rt-dev -         # libFuzzer and the sanitizers
'
coverage='
gcovr gcovr               # the report
'
hosts='
openssh-client ssh        # mpiexec starts ranks on other hosts by it
openssh-server -          # which they have then
iproute2 ip               # networks between namespaces
util-linux unshare        # and namespaces
'
shards='
nginx-light nginx         # serves shards to the test
openssl openssl           # makes it a certificate
'
first='
debootstrap debootstrap   # makes a bare system
util-linux unshare        # namespaces
nginx-light nginx         # is the mirror of a data set
openssl openssl           # makes it a certificate
iproute2 ip               # a network of its own
'
slurm='
slurmctld slurmctld       # controls a cluster
slurmd slurmd             # runs on its nodes
slurm-client srun         # the commands of its users
munge munged              # how they know each other
'
simulate='
libsimgrid-dev -          # simulates clusters for `make simulate`
'

browser='
chromium chromium         # the test that opens a report
'

docs='
mkdocs mkdocs             # the pages as a site
'

fail()
{
    printf 'setup: error: %s\n' "$1" >&2
    exit 1
}

# Without being Debian's package.
found()
{
    case $1 in
    -) return 1 ;;
    pc:*) pkg-config --exists "${1#pc:}" 2>/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

installed()
{
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# missing needed, missing extra - what is not there of those that are needed, or of those that may
# be missing, one a line: PACKAGE PURPOSE.
missing()
{
    printf '%s\n' "$lines" | while read -r package otherwise _ purpose; do
        case $package in
        '') continue ;;
        \?*) kind=extra ;;
        *) kind=needed ;;
        esac
        package=${package#\?}
        [ "$kind" != "$1" ] || found "$otherwise" || installed "$package" ||
            printf '%s %s\n' "$package" "$purpose"
    done
}

# The names of such lines, each once.
names()
{
    awk 'NF && !seen[$1]++ { printf " %s", $1 }'
}

# What is lost with them, each once, and the packages that would bring it.
losses()
{
    awk '{
        package = $1
        sub(/^[^ ]* /, "")
        if (!($0 in by))
            order[++n] = $0
        by[$0] = by[$0] (by[$0] == "" ? "" : " ") package
    }
    END {
        for (i = 1; i <= n; i++)
            printf "%s%s (%s)", (i > 1 ? ", " : ""), order[i], by[order[i]]
    }'
}

ask=
if [ "${1:-}" = --ask ]; then
    ask=yes
    shift
fi
[ $# -gt 0 ] || set -- build optional
lines=
for list in "$@"; do
    case $list in
    build) lines="$lines$build" ;;
    optional) lines="$lines$optional" ;;
    demo) lines="$lines$demo" ;;
    test) lines="$lines$test" ;;
    lint) lines="$lines$lint" ;;
    fuzz) lines="$lines$fuzz" ;;
    coverage) lines="$lines$coverage" ;;
    hosts) lines="$lines$hosts" ;;
    shards) lines="$lines$shards" ;;
    slurm) lines="$lines$hosts$slurm" ;;
    simulate) lines="$lines$simulate" ;;
    deb) lines="$lines$deb" ;;
    chroot) lines="$lines$chroot" ;;
    first) lines="$lines$first" ;;
    browser) lines="$lines$browser" ;;
    docs) lines="$lines$docs" ;;
    arm64) lines="$lines$arm64" ;;
    *) fail "no list named '$list'; there are: build optional demo test lint fuzz coverage hosts shards slurm simulate deb chroot first arm64 browser docs" ;;
    esac
done

needed=$(missing needed)
extra=$(missing extra)
[ -n "$needed$extra" ] || exit 0
packages=$(printf '%s\n%s\n' "$needed" "$extra" | names)
line="apt-get update && apt-get install -y --no-install-recommends$packages"

# Elsewhere the configure step has the last word on libraries.
command -v apt-get >/dev/null && command -v dpkg-query >/dev/null || {
    printf 'setup: no apt here; not found, by their Debian names:%s\n' "$packages" >&2
    exit 0
}

# go_on HOW - without what may be missing; HOW it could be had.
go_on()
{
    printf 'setup: going on without %s; %s\n' "$(printf '%s\n' "$extra" | losses)" "$1" >&2
    exit 0
}

# without_rights WHY - what is needed ends it; what is not is left out.
without_rights()
{
    [ -z "$needed" ] || fail "$1 to install what is missing; ask who administers this machine to run:
    $line"
    [ -z "$ask" ] || go_on "to have it, ask who administers this machine to run:
    $line"
    go_on "\`make setup\` says how to have it"
}

as_root=
if [ "$(id -u)" -ne 0 ]; then
    as_root=sudo
    command -v sudo >/dev/null || without_rights 'no rights'
    if ! sudo -n true 2>/dev/null; then
        # Only at a terminal can it ask for a password.
        [ -n "$needed$ask" ] && (: </dev/tty) 2>/dev/null || without_rights 'sudo gives no rights'
        printf 'setup: missing:%s\n' "$packages"
        sudo -v || without_rights 'sudo gives no rights'
    fi
fi

apt_get()
{
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# install PACKAGE ...
install()
{
    apt_get install -y --no-install-recommends "$@"
}

printf 'setup: installing%s\n' "$packages"
# shellcheck disable=SC2086 # a list of names
if apt_get update && install $packages; then
    exit 0
fi
# One name that this release does not have stops them all: again, one by one.
for package in $packages; do
    install "$package" || true
done
needed=$(missing needed)
extra=$(missing extra)
[ -z "$needed" ] ||
    fail "apt-get failed, see above; needed, and not installed:$(printf '%s\n' "$needed" | names)"
[ -z "$extra" ] || go_on 'apt-get failed, see above'
