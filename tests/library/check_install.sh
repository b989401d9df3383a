#!/bin/sh
# check_install.sh BUILD SOURCE CC [FLAG...] - install, build every example against it with
# pkg-config and with find_package, run them from where they are, move the folder and train again,
# uninstall: nothing is left, and what was there before still is. With DESTDIR, too. Which folders
# the linker knows, and who asks, is made up here, so that the machine's own list stays as it is.
set -eu
build=$1
source=$2
cc=$3
shift 3
case $* in
*--sysroot=*)
    echo "skipped: a cross build: pkg-config and find_package find this machine's libraries"
    exit 77
    ;;
esac
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset DESTDIR LD_LIBRARY_PATH PKG_CONFIG_PATH

mkdir "$dir/tools"
cat >"$dir/tools/ldconfig" <<END
#!/bin/sh
[ \$# -eq 0 ] && echo called >>"$dir/called" || printf '%s\n' "$dir/known/lib:" "$dir/known/lib64: (from x)"
END
printf '#!/bin/sh\ncat "%s/uid"\n' "$dir" >"$dir/tools/id"
chmod +x "$dir/tools/ldconfig" "$dir/tools/id"
PATH=$dir/tools:$PATH
echo 1000 >"$dir/uid"

status=0
bad()
{
    printf 'FAILED: %s\n' "$1"
    status=1
}
install()
{
    cmake --install "$build" --prefix "$1" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
}
uninstall()
{
    cmake -DPREFIX="$1" -P "$source/cmake/Uninstall.cmake" >"$dir/log" 2>&1 || bad "uninstall $1"
}
# run NAME PROGRAM
run()
{
    case $1 in
    train) set -- "$2" 2 1 '{name: synthetic, shape: [1, 28, 28], classes: 10, samples: 256}' ;;
    make_arrays) set -- "$2" "$dir" ;;
    *) set -- "$2" ;;
    esac
    "$@" >"$dir/said" 2>&1 && [ -s "$dir/said" ] || { bad "$* does not run"; cat "$dir/said"; }
}
# compile SOURCE PROGRAM FLAG...: by pkg-config
compile()
{
    from=$1
    to=$2
    math=
    shift 2
    case $from in */make_arrays.c) math=-lm ;; esac
    # shellcheck disable=SC2046 # lists of flags
    "$cc" "$@" -std=c11 -Wall -Wextra -Werror $(pkg-config --cflags cohort) "$from" -o "$to" \
        $(pkg-config --libs cohort) $math || bad "$from does not compile"
}

# Into a folder that the linker of programs does not know.
install "$dir/first"
prefix=$dir/first
doc=$prefix/share/doc/cohort
pc=$(find "$prefix" -name cohort.pc)
lib=${pc%/pkgconfig/cohort.pc}
export PKG_CONFIG_PATH="${pc%/*}"
count=0
for example in "$doc"/examples/*.c; do
    name=$(basename "$example" .c)
    compile "$example" "$dir/$name" "$@"
    run "$name" "$dir/$name"
    count=$((count + 1))
done
[ "$count" -eq "$(find "$source/examples" -maxdepth 1 -name '*.c' | grep -c '')" ] || bad 'not all examples'

mkdir "$dir/project"
cat >"$dir/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.21)
project(asks LANGUAGES C)
find_package(cohort 0.1 REQUIRED)
add_executable(asks $doc/examples/arrays.c)
target_link_libraries(asks PRIVATE cohort::cohort)
END
if cmake -S "$dir/project" -B "$dir/project/build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$*" \
    -DCMAKE_PREFIX_PATH="$prefix" >"$dir/log" 2>&1 &&
    cmake --build "$dir/project/build" >>"$dir/log" 2>&1; then
    run arrays "$dir/project/build/asks"
else
    cat "$dir/log"
    bad 'find_package(cohort)'
fi

for file in bin/cohort share/man/man1/cohort.1 share/man/man1/cohort-data-get.1 share/bash-completion/completions/cohort \
    share/doc/cohort/README.md share/doc/cohort/docs/commands.md \
    share/cohort/configs/fashion-mnist.yaml; do
    [ -f "$prefix/$file" ] || bad "not installed: $file"
done

# It can be moved, and linked whole.
mv "$prefix" "$dir/moved"
prefix=$dir/moved
lib=$prefix/${lib#"$dir/first/"}
export PKG_CONFIG_PATH="$lib/pkgconfig"
compile "$source/examples/train.c" "$dir/train" "$@"
run train "$dir/train"
# shellcheck disable=SC2046
"$cc" "$@" -std=c11 $(pkg-config --cflags cohort) "$source/examples/train.c" -o "$dir/static" \
    "$lib/libcohort.a" $(pkg-config --static --libs cohort | sed 's/-lcohort//') || bad static
run train "$dir/static"
"$prefix/bin/cohort" --version || bad 'the program does not run'
grep -rlI "$dir/first" "$prefix" && bad 'installed files name the place of install'
uninstall "$prefix"
[ ! -e "$prefix" ] || { bad 'left over:'; find "$prefix"; }

# Into one that it knows: no path in programs, and its list is made anew, by root.
mkdir -p "$dir/known/lib" "$dir/known/share/man/man1"
echo mine >"$dir/known/lib/mine"
find "$dir/known" | sort >"$dir/before"
install "$dir/known"
grep -q rpath "$dir/known/lib/pkgconfig/cohort.pc" && bad 'a path where none is needed'
grep -q 'as root: ldconfig' "$dir/log" || bad 'not said that ldconfig is to be run'
[ ! -e "$dir/called" ] || bad 'ldconfig was called by a user'
echo 0 >"$dir/uid"
install "$dir/known"
[ "$(cat "$dir/called")" = called ] || bad 'ldconfig was not called once'
uninstall "$dir/known"
find "$dir/known" | sort | diff "$dir/before" - || bad 'not as it was before'

# For a package: nothing but files, below DESTDIR.
rm -f "$dir/called"
export DESTDIR="$dir/stage"
install "$dir/known"
[ -x "$dir/stage$dir/known/bin/cohort" ] || bad 'DESTDIR is not heeded'
grep -q rpath "$dir/stage$dir/known/lib/pkgconfig/cohort.pc" && bad 'a path in a package'
find "$dir/known" | sort | diff "$dir/before" - || bad 'not in DESTDIR alone'
uninstall "$dir/known"
[ ! -e "$dir/stage" ] || { bad 'left over:'; find "$dir/stage"; }
[ ! -e "$dir/called" ] || bad 'ldconfig was called for DESTDIR'

echo "$count examples"
exit $status
