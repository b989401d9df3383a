#!/bin/sh
# check_planted.sh PROGRAM - a reader with planted faults: each kind is found, counted, kept as a file
# that repeats it, and the search goes on behind it; the same seed finds the same, none finds none.
set -eu
program=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/cohort-mutations-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
ulimit -c 0

fail()
{
    echo "$*" >&2
    cat "$work/out" "$work/err" >&2
    exit 1
}

# search FOLDER SEED FILES: exit code in $code
search()
{
    mkdir -p "$work/$1"
    code=0
    "$program" --mutations planted "$3" "$2" 1 "$work/$1" "$work/corpus" >"$work/out" 2>"$work/err" ||
        code=$?
}

mkdir "$work/corpus"
printf 'count: 12\nsize: 345\n' >"$work/corpus/a"
printf 'offset: 7\n' >"$work/corpus/b"

search one 1 60
[ $code -eq 1 ] || fail "exit code $code with faults in the reader"
read -r name files crashes hangs leaks memory slowest most <"$work/out"
[ "$name $files $memory" = "planted 60 0" ] || fail "not a line of the table"
for kind in crash hang leak; do
    kept=$(find "$work/one" -name "planted-$kind-1-*" | wc -l)
    case $kind in
    crash) counted=$crashes ;;
    hang) counted=$hangs ;;
    leak) counted=$leaks ;;
    esac
    [ "$kept" -gt 0 ] && [ "$kept" -eq "$counted" ] || fail "$kind: $counted counted, $kept kept"
done
for file in "$work"/one/planted-crash-*; do
    ! "$program" "$file" >/dev/null 2>&1 || fail "$file does not repeat the crash"
done
for file in "$work"/one/planted-leak-*; do
    ! "$program" "$file" >/dev/null 2>&1 || fail "$file does not repeat the leak"
done
for file in "$work"/one/planted-hang-*; do
    grep -q -- - "$file" || fail "$file is not what hangs"
done

search again 1 60
diff -r "$work/one" "$work/again" || fail "the same seed finds something else"

# A file of nothing stays a file of nothing, or becomes no number.
rm "$work/corpus/a" "$work/corpus/b"
: >"$work/corpus/empty"
search none 1 100
[ $code -eq 0 ] || fail "exit code $code without a fault"
rm "$work/corpus/empty"
search empty 1 100
[ $code -eq 2 ] || fail "exit code $code without a corpus"
