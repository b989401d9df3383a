#!/bin/sh
# skips.sh TESTS.xml - how many tests were skipped and why, of what `ctest --output-junit` has written.
# A test says `skipped: REASON`; of a cmocka program that ran other tests, each skipped one is named.
set -eu
[ -f "$1" ] || exit 0
awk '
function plain(text)
{
    gsub(/&lt;/, "<", text)
    gsub(/&gt;/, ">", text)
    gsub(/&quot;/, "\"", text)
    gsub(/&apos;/, "\047", text)
    gsub(/&amp;/, "\\&", text)
    return text
}
function take(test)
{
    if (test == "" && reason == "")
        return
    parts++
    part[parts] = test
    why[parts] = reason
    reason = ""
}
function note(text)
{
    if (!((name, text) in noted))
        line[++lines] = "  " name ": " text
    noted[name, text] = 1
}
function end_test(   reasons)
{
    take("")
    for (i = 1; i <= parts; i++)
        reasons += why[i] != ""
    if (whole && !reasons) {
        parts = 0
        reason = last
        take("")
    }
    for (i = 1; i <= parts; i++)
        if (!whole || why[i] != "")
            note(whole || part[i] == "" ? why[i] : part[i] (why[i] == "" ? "" : ": " why[i]))
    n_whole += whole
    n_parts += !whole && parts
    name = ""
}
/^\t<testcase name="/ {
    name = plain($0)
    sub(/^\t<testcase name="/, "", name)
    sub(/" classname=.*/, "", name)
    reason = last = ""
    whole = parts = listing = 0
    next
}
/^\t\t<skipped / { whole = 1; next }
/^\t<\/testcase>/ { end_test() }
name != "" {
    text = plain($0)
    sub(/^\t*<system-out>/, "", text)
    sub(/<\/system-out>$/, "", text)
    if (text ~ /^ *skipped: /) {
        sub(/^ *skipped: /, "", text)
        reason = text
    } else if (text ~ /^\[ RUN /)
        take("")
    else if (text ~ /^\[  SKIPPED \] ([^ ]+: )?[0-9]+ test/)
        listing = 1
    else if (text ~ /^\[  SKIPPED \] / && !listing)
        take(substr(text, 14))
    if (text ~ /[^ \t]/)
        last = text
}
END {
    printf "%d tests skipped%s%s\n", n_whole, n_parts ? ", and parts of " n_parts " more" : "", lines ? ":" : ""
    fflush()
    for (i = 1; i <= lines; i++)
        print line[i] | "LC_ALL=C sort"
}' "$1"
