#!/bin/sh
# check_setup.sh SETUP - what scripts/setup.sh installs, asks for and leaves out, on a made-up
# machine: apt-get, dpkg-query, sudo and id are those below, and PATH has no others.
set -eu
setup=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sh=$(command -v sh)
status=0

# The machine: who asks is in uid, what is installed in has, a line each; unknown are names that
# its release does not have. What apt-get was told is in calls.
mkdir "$dir/bin"
for tool in awk cat env grep; do
    ln -s "$(command -v "$tool")" "$dir/bin/$tool"
done
fake()
{
    { printf '#!%s\n' "$sh"; cat; } >"$dir/bin/$1"
    chmod +x "$dir/bin/$1"
}
fake id <<'END'
cat "$MACHINE/uid"
END
fake dpkg-query <<'END'
for package; do :; done
grep -qx "$package" "$MACHINE/has" && printf installed
END
fake apt-get <<'END'
while [ "$1" != update ] && [ "$1" != install ]; do shift; done
echo "$*" >>"$MACHINE/calls"
[ "$1" = install ] || exit 0
shift
for package; do
    case $package in -*) continue ;; esac
    ! grep -qx "$package" "$MACHINE/unknown" || exit 100
done
for package; do echo "$package" >>"$MACHINE/has"; done
END
export MACHINE="$dir"

# machine UID [PACKAGE ...]: a new one
machine()
{
    echo "$1" >"$dir/uid"
    shift
    printf '%s\n' "$@" >"$dir/has"
    : >"$dir/unknown"
    : >"$dir/calls"
    rm -f "$dir/bin/sudo"
}

run()
{
    code=0
    PATH="$dir/bin" "$sh" "$setup" "$@" >"$dir/out" 2>"$dir/err" </dev/null || code=$?
}

# expect WHAT TEST...
expect()
{
    what=$1
    shift
    "$@" || {
        printf 'FAILED: %s\n' "$what"
        cat "$dir/out" "$dir/err" "$dir/calls"
        status=1
    }
}
says() { grep -qF -- "$1" "$dir/err"; }
lines() { [ "$(grep -c '' "$dir/err")" -eq "$1" ]; }
silent() { [ ! -s "$dir/out" ] && [ ! -s "$dir/err" ] && [ ! -s "$dir/calls" ]; }
called() { grep -qxF -- "$1" "$dir/calls"; }

install='install -y --no-install-recommends'
build='gcc libc6-dev make cmake ninja-build pkg-config libfyaml-dev libjansson-dev libhwloc-dev'
build="$build libdeflate-dev libjpeg-dev libpng-dev"
extra='libdnnl-dev libopenmpi-dev openmpi-bin libonnx-dev protobuf-c-compiler libprotobuf-c-dev'
extra="$extra libcurl4-openssl-dev libarchive-dev libmicrohttpd-dev gnuplot-nox"

# packages LIST...: as root, with nothing there
packages()
{
    want=$1
    shift
    machine 0
    run "$@"
    expect "$*: ends well" [ $code -eq 0 ]
    expect "$*: $want" called "$install $want"
    : >"$dir/calls"
    run "$@" # now they are there
    expect "$*: nothing to do" silent
}
packages "$build $extra"
packages "$build" build
packages "$build dataset-fashion-mnist $extra" build optional demo
packages "libcmocka-dev valgrind libmpich-dev mpich dataset-fashion-mnist patch openssl locales" test
packages "dataset-fashion-mnist libcmocka-dev valgrind libmpich-dev mpich patch openssl locales" demo test # the data is needed, then
packages "clang-format clang-tidy" lint
packages "clang libclang-rt-dev" fuzz
packages "gcovr" coverage
packages "openssh-client openssh-server iproute2 util-linux" hosts
packages "debhelper dpkg-dev lintian libmpich-dev libopenmpi-dev" deb
packages "chromium" browser
packages "mkdocs" docs
packages "debootstrap util-linux" chroot
packages "gcc-aarch64-linux-gnu qemu-user util-linux" arm64
run build nonsense
expect 'an unknown list' [ $code -eq 1 ]

# A user without rights: told what to ask for, and nothing is tried.
machine 1000
run build optional
expect 'no rights: fails' [ $code -eq 1 ]
expect 'no rights: the line' says "apt-get install -y --no-install-recommends $build $extra"
expect 'no rights: nothing is tried' [ ! -s "$dir/calls" ]
# shellcheck disable=SC2086 # a list of names
machine 1000 $build libdnnl-dev
run build optional demo
expect 'no data: fails' [ $code -eq 1 ]
expect 'no data: the line' says 'recommends dataset-fashion-mnist libopenmpi-dev'
run build optional test
expect 'no tests: fails' [ $code -eq 1 ]

# What may be missing is left out, in a line.
run build optional
expect 'left out: goes on' [ $code -eq 0 ]
expect 'left out: a line' lines 1
expect 'left out: grouped' says 'without ranks over MPI (libopenmpi-dev openmpi-bin), export to ONNX'
run --ask build optional
expect 'left out, asked: goes on' [ $code -eq 0 ]
expect 'left out, asked: the line' says "libonnx-dev protobuf-c-compiler libprotobuf-c-dev libcurl4-openssl-dev libarchive-dev libmicrohttpd-dev gnuplot-nox"
expect 'left out: nothing is tried' [ ! -s "$dir/calls" ]

# sudo that needs no password.
# shellcheck disable=SC2086
machine 1000 $build
fake sudo <<'END'
[ "$1" != -n ] || shift
[ "$1" != true ] || exit 0
exec "$@"
END
run
expect 'sudo: ends well' [ $code -eq 0 ]
expect 'sudo: installs' called "$install $extra"

# One that gives no rights, at a terminal or not.
machine 1000
fake sudo <<'END'
exit 1
END
run
expect 'sudo refuses: fails' [ $code -eq 1 ]
expect 'sudo refuses: the line' says "apt-get install -y --no-install-recommends $build $extra"
# shellcheck disable=SC2086
machine 1000 $build
fake sudo <<'END'
exit 1
END
run
expect 'sudo refuses what may be missing: goes on' [ $code -eq 0 ]
expect 'sudo refuses what may be missing: a line' lines 1

# A release that lacks one: the others are installed.
# shellcheck disable=SC2086
machine 0 $build
echo libdnnl-dev >"$dir/unknown"
run
expect 'unknown name: goes on' [ $code -eq 0 ]
expect 'unknown name: the others' called "$install gnuplot-nox"
expect 'unknown name: said' says 'without the kernels of oneDNN (libdnnl-dev);'
machine 0
echo libfyaml-dev >"$dir/unknown"
run
expect 'unknown name that is needed: fails' [ $code -eq 1 ]
expect 'unknown name that is needed: said' says 'not installed: libfyaml-dev'

# There without being a package; and a system without apt.
# shellcheck disable=SC2086
machine 1000 $extra gcc libc6-dev make cmake libfyaml-dev libhwloc-dev libdeflate-dev \
    libjpeg-dev libpng-dev
fake ninja </dev/null
fake pkg-config <<'END'
[ "$*" = '--exists jansson' ]
END
run
expect 'a program of its own' silent
machine 1000
rm "$dir/bin/apt-get"
run
expect 'no apt: goes on' [ $code -eq 0 ]
expect 'no apt: names' says 'by their Debian names: gcc'

[ $status -ne 0 ] || echo "all as expected"
exit $status
