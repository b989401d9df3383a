#!/bin/sh
# dist.sh - build-dist/cohort-VERSION-linux-ARCH.tar.gz: the program with the libraries that it needs
# besides those of the C library, to unpack and run anywhere on a Linux whose glibc is no older than
# this machine's needs it to be (said at the end). MPI is the machine's own.
#
# RPATH in the program is what its libraries look along, too, relative to where it is.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^project(cohort VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=cohort-$version-linux-$(uname -m)
out=build-dist
stage=$PWD/$out/$name

cmake -S . -B "$out/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCOHORT_TESTS=OFF -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags ${CMAKE_ARGS:-} >"$out.log" 2>&1 || { tail -n 20 "$out.log" >&2; exit 1; }
mv "$out.log" "$out/log"
cmake --build "$out/build" ${JOBS:+-j "$JOBS"} >>"$out/log" 2>&1 || { tail -n 20 "$out/log" >&2; exit 1; }
rm -rf "$stage"
cmake --install "$out/build" --prefix "$stage" >>"$out/log" 2>&1
# For programs in C there are packages and `make install`.
rm -rf "$stage/include" "$stage/lib/libcohort"* "$stage/lib/pkgconfig" "$stage/lib/cmake"

# Every system has these, and may have libraries that need newer ones than this machine's.
own='ld-linux|libc\.so|libm\.so|libgcc_s|libstdc++'
licenses=$stage/share/doc/cohort/licenses
mkdir -p "$licenses"
ldd "$stage/bin/cohort" | awk '$2 == "=>" { print $3 }' | grep -Ev "/($own)" | sort -u | while read -r library; do
    cp -L "$library" "$stage/lib/cohort/"
    package=$(dpkg-query -S "$(realpath "$library")" 2>/dev/null | head -n 1 | cut -d: -f1) || package=
    [ -z "$package" ] || cp -L "/usr/share/doc/$package/copyright" "$licenses/$package"
done
strip "$stage/bin/cohort" "$stage/lib/cohort/"*

needs=$(find "$stage/bin" "$stage/lib" -type f -exec objdump -T {} + 2>/dev/null |
    sed -n 's/.*(\?GLIBC_\([0-9.]*\))\?.*/\1/p' | sort -V | tail -n 1)
tar -C "$out" -czf "$out/$name.tar.gz" "$name"
printf '%s: %s, for glibc %s or newer\n' "$out/$name.tar.gz" "$(du -h "$out/$name.tar.gz" | cut -f1)" "$needs"
