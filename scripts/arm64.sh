#!/bin/sh
# What a build for ARM64 needs on another machine, without rights.
#
#   scripts/arm64.sh sysroot            libraries for ARM64, unpacked into build-arm64/sysroot, if they are not there
#   scripts/arm64.sh run COMMAND ...    COMMAND, in a namespace in which the kernel starts programs for ARM64, too
#   scripts/arm64.sh start TEST ...     a test, by qemu; for ctest
#
#   MIRROR=URL   of Debian; default http://deb.debian.org/debian
set -eu
build=$(cd "$(dirname "$0")/.." && pwd)/build-arm64
sysroot=$build/sysroot
cpu=cortex-a72 # it has the instructions of ARMv8.0 and no others

# As in `scripts/setup.sh`, for the other architecture.
packages='libc6-dev libgomp1 libfyaml-dev libjansson-dev libhwloc-dev libdeflate-dev libjpeg-dev libpng-dev
libcmocka-dev libonnx-dev libprotobuf-c-dev'

fail()
{
    printf 'arm64: error: %s\n' "$1" >&2
    exit 1
}

# apt-get for ARM64, with lists, packages and settings in a folder of its own.
apt_get()
{
    apt-get -q -o Dir="$apt" -o Dir::State="$apt" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt" \
        -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=- -o Dir::Etc::main=- \
        -o Dir::Etc::parts=- -o Dir::Etc::preferencesparts=- -o Dir::Etc::trustedparts=/etc/apt/trusted.gpg.d \
        -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User= \
        -o Acquire::Languages=none "$@"
}

make_sysroot()
{
    # What is asked for is named in a file, which is written last.
    [ "$(cat "$sysroot/packages" 2>/dev/null)" != "$packages" ] || return 0
    apt=$build/apt
    release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    rm -rf "$sysroot" "$apt"
    mkdir -p "$sysroot" "$apt/lists/partial" "$apt/archives/partial"
    : >"$apt/status"
    printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' \
        "${MIRROR:-http://deb.debian.org/debian}" "${release:-sid}" >"$apt/sources.list"
    apt_get update
    # shellcheck disable=SC2086 # a list of names
    apt_get install -y --no-install-recommends --download-only $packages
    for package in "$apt"/archives/*.deb; do
        dpkg-deb --extract "$package" "$sysroot"
    done
    find "$sysroot" -type l -lname '/*' | while read -r link; do
        ln -sfn "$sysroot$(readlink "$link")" "$link"
    done
    rm -rf "$apt"
    printf '%s\n' "$packages" >"$sysroot/packages"
}

# The kernel starts a program of another architecture by an interpreter that is registered for its first
# bytes, since Linux 6.7 in one user namespace alone. The inner namespace has the user's own number again.
run()
{
    qemu=$(command -v qemu-aarch64) || fail "no qemu-aarch64 here (Debian: qemu-user)"
    magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    export QEMU_LD_PREFIX="$sysroot" QEMU_CPU=$cpu
    # qemu keeps a note of each page that a program has mapped, and ranks map a multiple of the machine's
    # memory to share (src/comm/shm/window.c), less where addresses are limited. A browser has to raise it.
    # shellcheck disable=SC3045 # dash and bash have it
    ulimit -S -v $((12 << 20))
    # shellcheck disable=SC2016 # for the inner shells
    exec unshare --user --map-root-user --mount sh -euc '
        binfmt=/proc/sys/fs/binfmt_misc
        mount -t binfmt_misc binfmt_misc $binfmt || {
            echo "arm64: error: Linux 6.7 or newer is needed" >&2
            exit 1
        }
        printf ":cohort-arm64:M::%s:%s:%s:" "$1" "$2" "$3" >$binfmt/register
        user=$4 group=$5
        shift 5
        exec unshare --user --map-user="$user" --map-group="$group" "$@"
    ' sh "$magic" "$mask" "$qemu" "$(id -u)" "$(id -g)" "$@"
}

# A test that adopts orphans (tests/emulated.h): qemu does not pass on that call, 157, option 36.
start()
{
    # shellcheck disable=SC2016 # for perl; the number is that of x86-64
    exec perl -e '
        syscall(157, 36, 1, 0, 0, 0) == 0 or die "prctl: $!";
        $ENV{TESTS_EMULATED} = "qemu";
        exec @ARGV
    ' qemu-aarch64 -cpu $cpu -L "$sysroot" "$@"
}

case ${1:-} in
sysroot) make_sysroot ;;
run)
    shift
    run "$@"
    ;;
start)
    shift
    start "$@"
    ;;
*) fail "say sysroot, run COMMAND ..., or start TEST ..." ;;
esac
