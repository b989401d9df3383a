#!/bin/sh
# check_install.sh BUILD EXAMPLES CC [FLAG...] - install into an empty folder, move that folder,
# and build every example against it with pkg-config: shared, and one static too. The one that
# trains must do so from both.
set -eu
build=$1
examples=$2
cc=$3
shift 3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cmake --install "$build" --prefix "$dir/first" >"$dir/log" || { cat "$dir/log"; exit 1; }
mv "$dir/first" "$dir/moved"
pc=$(find "$dir/moved" -name cohort.pc)
export PKG_CONFIG_PATH="${pc%/*}"
lib=$(pkg-config --variable=libdir cohort)
export LD_LIBRARY_PATH="$lib"

status=0
count=0
for source in "$examples"/*.c; do
    program=$dir/example-$(basename "$source" .c)
    # shellcheck disable=SC2046 # lists of flags
    "$cc" "$@" -std=c11 -Wall -Wextra -Werror $(pkg-config --cflags cohort) "$source" -o "$program" \
        $(pkg-config --libs cohort) || status=1
    count=$((count + 1))
done
[ $count -gt 0 ] || { echo "no example in $examples"; status=1; }

# shellcheck disable=SC2046
"$cc" "$@" -std=c11 $(pkg-config --cflags cohort) "$examples/train.c" -o "$dir/static" \
    "$lib/libcohort.a" $(pkg-config --static --libs cohort | sed 's/-lcohort//') || status=1
for program in example-train static; do
    "$dir/$program" 2 1 '{name: synthetic, shape: [1, 28, 28], classes: 10, samples: 256}' ||
        { echo "$program does not train"; status=1; }
done

for file in bin/cohort share/man/man1/cohort.1 share/bash-completion/completions/cohort; do
    [ -f "$dir/moved/$file" ] || { echo "not installed: $file"; status=1; }
done
"$dir/moved/bin/cohort" --version || status=1
grep -rlI "$dir/first" "$dir/moved" && { echo "installed files name the place of install"; status=1; }
echo "$count examples"
exit $status
