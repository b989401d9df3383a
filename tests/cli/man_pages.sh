#!/bin/sh
# man_pages.sh COHORT FOLDER - the folder has a page for every command and no other, each with all arguments,
# options, and examples of the command's help; cohort.1 names them all; mandoc or man, where it is installed, has
# nothing to say against any.
set -eu
cohort=$1
pages=$2
dir=$(mktemp -d "${TMPDIR:-/tmp}/cohort-man-XXXXXX")
trap 'rm -rf "$dir"' EXIT
status=0
bad()
{
    echo "FAILED: $1"
    status=1
}
"$cohort" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\{1,\}\( [a-z]\{1,\}\)\{0,1\}\)  .*/\1/p' >"$dir/commands"
[ "$(grep -c '' "$dir/commands")" -gt 25 ] || bad 'few commands in cohort --help'
while read -r command; do
    page=$pages/cohort-$(echo "$command" | tr ' ' -).1
    echo "$page"
    # shellcheck disable=SC2086 # a command may be two words
    "$cohort" $command --help </dev/null >"$dir/help"
    # Usage, both columns of arguments and options, and examples are in the page as a reader sees it.
    awk -v page="$page" -v overview="$pages/cohort.1" '
    function read(file,   line, text) {
        while ((getline line < file) > 0)
            text = text line "\n"
        close(file)
        gsub(/\\f[A-Z]|\\&/, "", text)
        gsub(/\\-/, "-", text)
        gsub(/\\e/, "\\", text)
        return text
    }
    function check(text, in_page, name) {
        gsub(/`/, "", text)
        if (!index(in_page, text))
            printf "FAILED: %s lacks: %s", name, text
    }
    BEGIN {
        shown = read(page)
        name = page
        sub(/.*\//, "", name)
        sub(/\.1$/, "", name)
        check(".BR " name " (1)\n", read(overview), "cohort.1")
    }
    /^[A-Z].*:$/ { part = $1 }
    sub(/^Usage: /, "") || (part == "Example:" && sub(/^  /, "")) { check($0 "\n", shown, page) }
    part ~ /^(Arguments|Options):$/ && match($0, /[^ ]   *[^ ,-]/) {
        check(substr($0, RSTART + RLENGTH - 1) "\n", shown, page)
        left = substr($0, 1, RSTART)
        sub(/^ */, "", left)
        check(left "\n", shown, page)
    }' "$dir/help"
done <"$dir/commands" >"$dir/log"
grep '^FAILED' "$dir/log" && status=1
{
    echo "$pages/cohort.1"
    grep -v '^FAILED' "$dir/log"
} | sort >"$dir/expected"
find "$pages" -type f | sort | diff "$dir/expected" - || bad 'other files than pages of commands'
grep -q "\"Cohort $("$cohort" --version | cut -d' ' -f2)\"" "$pages/cohort.1" || bad 'cohort.1 has another version'

if command -v mandoc >/dev/null; then
    mandoc -T lint -W warning "$pages"/*.1 || bad 'mandoc'
elif man --warnings --version >/dev/null 2>&1; then
    for page in "$pages"/*.1; do
        LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" 2>&1 >/dev/null </dev/null | grep . && bad "man: $page"
    done
else
    echo 'neither mandoc nor man is here: layout not checked'
fi
exit $status
