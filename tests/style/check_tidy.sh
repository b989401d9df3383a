#!/bin/sh
# check_tidy.sh - scripts/tidy.sh looks at each way in which a file is compiled, and again only when
# something that the file depends on has changed. A clang-tidy made here writes down what it is given.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir scripts src build tools
cp "$root/scripts/tidy.sh" scripts
printf 'a\n' >src/a.c
printf 'h\n' >src/h.h
printf 'Checks: x\n' >.clang-tidy
cat >tools/clang-tidy <<'EOF'
#!/bin/sh
[ "$1" = --version ] && exec echo 14
for file; do :; done
echo "$file" >>looked
grep -c '"file"' "$3/compile_commands.json" >count
echo ". $PWD/src/h.h" >&2
! grep -h bad "$file" src/h.h
EOF
chmod +x tools/clang-tidy
PATH=$work/tools:$PATH

# commands FLAG: src/a.c of two programs with the same flags, and of a third with FLAG, too
commands()
{
    for way in "-o one" "-o two" "$1 -o three"; do
        printf '{\n  "directory": "%s/build",\n  "command": "cc -O3 %s -c a.c",\n  "file": "%s/src/a.c"\n}\n' \
            "$PWD" "$way" "$PWD"
    done | sed '1s/^/[\n/; $s/$/\n]/; s/^}$/},/' >build/compile_commands.json
}

# expect STATUS LOOKED WHAT
expect()
{
    : >looked
    status=0
    scripts/tidy.sh build 1 >said 2>&1 || status=1
    if [ $status != "$1" ] || [ "$(wc -l <looked)" != "$2" ]; then
        echo "$3: ended with $status, not $1; looked at $(wc -l <looked) files, not $2:" >&2
        cat said >&2
        exit 1
    fi
}

commands -DA
expect 0 1 "a file that is new"
[ "$(cat count)" = 2 ] || { echo "one file, compiled in two ways, is there $(cat count) times" >&2; exit 1; }
expect 0 0 "a file that was clean"
printf 'a, again\n' >src/a.c
expect 0 1 "a file that has changed"
printf 'h, again\n' >src/h.h
expect 0 1 "a header that has changed"
commands -DB
expect 0 1 "other flags"
printf 'Checks: y\n' >.clang-tidy
expect 0 1 "other checks"
printf 'bad\n' >src/a.c
expect 1 1 "a finding"
grep -qx bad said || { echo "a finding is not printed" >&2; exit 1; }
expect 1 1 "the same finding again"
grep -q h.h said && { echo "what is included is printed" >&2; exit 1; }
exit 0
