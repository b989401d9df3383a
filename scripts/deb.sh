#!/bin/sh
# deb.sh [RELEASE] - Debian packages of this tree, checked by lintian: into build-deb/, for the release of Debian that this
# runs on; or into build-deb-RELEASE/, built on a bare RELEASE with nothing but what debian/control names. That needs root,
# debootstrap and the network for Debian's packages; MIRROR=URL is Debian's address.
# Built from a copy of the files that git knows, or without git from all but build folders.
set -eu
cd "$(dirname "$0")/.."
. scripts/chroot.sh
version=$(sed -n 's/^project(cohort VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
release=${1:-}
out=build-deb${release:+-$release}
copy=$out/cohort-$version
root=$out/root

fail()
{
    [ ! -s "$out/log" ] || tail -n 30 "$out/log" >&2
    echo "deb: error: $1 failed; all it said is in $out/log" >&2
    exit 1
}

here()
{
    (cd "$copy" && dpkg-buildpackage -b -us -uc) >"$out/log" 2>&1 || fail dpkg-buildpackage
    lintian --fail-on error,warning "$out"/*.changes
}

elsewhere()
{
    why=$(chroot_missing)
    [ -z "$why" ] || {
        echo "deb: error: $why" >&2
        exit 1
    }
    trap 'rm -rf "$root"' EXIT
    trap 'exit 130' INT TERM
    chroot_make "$root" "$release" "$PWD/$out/packages" >"$out/log" 2>&1 || fail debootstrap
    mv "$copy" "$root/srv/"
    chroot_run "$root" "
        apt-get update
        apt-get install -y --no-install-recommends build-essential lintian
        cd /srv/cohort-$version
        apt-get build-dep -y --no-install-recommends .
        useradd -m builder
        chown -R builder: /srv
        su builder -c 'dpkg-buildpackage -b -us -uc && lintian --fail-on error,warning ../*.changes'
    " >>"$out/log" 2>&1 || fail "dpkg-buildpackage or lintian on $release"
    cp "$root"/srv/*.deb "$root"/srv/*.changes "$out"
}

rm -rf "$copy" "$root" "$out"/*.deb "$out"/*.changes "$out"/*.buildinfo "$out/log"
mkdir -p "$copy"
if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard | tar -c --null --files-from=- | tar -x -C "$copy"
else
    tar -c --exclude='./build*' --exclude=./runs . | tar -x -C "$copy"
fi
if [ -n "$release" ]; then elsewhere; else here; fi
rm -rf "$copy"
ls "$out"/*.deb
