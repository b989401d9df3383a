#!/bin/sh
# deb.sh - Debian packages of this tree into build-deb/, for the release of Debian that this runs on.
# Built from a copy of the files that git knows, or without git from all but build folders.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^project(cohort VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
out=build-deb
copy=$out/cohort-$version
rm -rf "$out"
mkdir -p "$copy"
if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard | tar -c --null --files-from=- | tar -x -C "$copy"
else
    tar -c --exclude='./build*' --exclude=./runs . | tar -x -C "$copy"
fi
(cd "$copy" && dpkg-buildpackage -b -us -uc) >"$out/log" 2>&1 || {
    tail -n 30 "$out/log" >&2
    echo "deb: error: dpkg-buildpackage failed; all it said is in $out/log" >&2
    exit 1
}
rm -rf "$copy"
lintian --fail-on error,warning "$out"/*.changes
ls "$out"/*.deb
