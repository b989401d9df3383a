#!/bin/sh
# The words of the project are those of the field (CONTRIBUTING.md, Words). Prints each line of docs,
# public headers and messages (strings of src) that has another one, and what to say. Not looked
# at: docs/decisions.md, to which everybody appends.
set -eu
cd "$(dirname "$0")/.."

# what is found, as words of a regular expression: what to say
terms='
behind: after
lies|lie|lying|lay: is in, is stored in
stands?|stood: is
goes on|go on|going on|went on: continue, resume
told|tells?|telling: report, say
at work: running
mend|mends|mended: repair
near ranks?|near communicator: node-local
crowded: oversubscribed
verdicts?|convicts?|convicted: failure record
kept together|keep together: synchronize
first weights|first biases: initial weights
scores?: logits
taken for: confused with
(numbers?|floats?|tensors?|weights?|values?) of (16|32) bits: half precision, 16-bit floats
deviations?: standard deviation, std
least|greatest: minimum, maximum
size of an element: absolute value
'

# Phrases in which such a word is the right one.
fine='at least|stand-ins?|standard deviations?|(falls?|fell|steps?|lags?|lags? furthest) behind'

# Places that keep it, and why: FILE: what is in the line: reason.
allowed='
src/launch/rank_notes.c: "told": a word in files that a running run has written
'

{
    find README.md CONTRIBUTING.md docs include -name "*.md" -o -name "*.1" -o -name "*.h"
    find src -name "*.[ch]" -o -name "*.cu"
} | grep -vx docs/decisions.md | LC_ALL=C sort | xargs awk -v terms="$terms" -v fine="$fine" -v allowed="$allowed" '
BEGIN {
    n = split(terms, line, "\n")
    for (i = 1; i <= n; i++) {
        at = index(line[i], ": ")
        if (at == 0)
            continue
        many++
        term[many] = "(^|[^a-z_])(" substr(line[i], 1, at - 1) ")([^a-z_]|$)"
        say[many] = substr(line[i], at + 2)
        every = every (every == "" ? "" : "|") substr(line[i], 1, at - 1)
    }
    every = "(^|[^a-z_])(" every ")([^a-z_]|$)"
    n = split(allowed, line, "\n")
    for (i = 1; i <= n; i++)
        if (split(line[i], part, ": ") > 2)
            keeps[part[1], part[2]] = 1
}
# the strings of a line of C; comments are left out
function strings(text,    out, quoted, i, c)
{
    out = ""
    quoted = 0
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (comment) {
            if (substr(text, i, 2) == "*/") {
                comment = 0
                i++
            }
        } else if (quoted) {
            if (c == "\\") {
                out = out " "
                i++
            } else if (c == "\"") {
                quoted = 0
                out = out " "
            } else
                out = out c
        } else if (c == "\"")
            quoted = 1
        else if (substr(text, i, 2) == "/*") {
            comment = 1
            i++
        } else if (substr(text, i, 2) == "//" )
            break
    }
    return out
}
function may(    key, place)
{
    for (key in keeps) {
        split(key, place, SUBSEP)
        if (FILENAME == place[1] && index($0, place[2]))
            return 1
    }
    return 0
}
FNR == 1 { comment = glossary = 0; before = ""; code = FILENAME ~ /^src\// }
FILENAME == "CONTRIBUTING.md" && /^## / { glossary = $0 == "## Words" }
glossary { next }
{
    text = $0
    if (code)
        text = strings(text)
    text = tolower(text)
    if (text ~ /^[ \t]*$/) {
        before = ""
        next
    }
    last = text
    if (before !~ every)
        text = before " " text
    sub(/[ \t]*$/, "", last)
    sub(/^.*[ \t]/, "", last)
    before = last ~ /^[a-z]+$/ ? last : "" # a phrase may begin in the line before
    gsub(fine, "", text)
    if (text !~ every)
        next
    for (i = 1; i <= many; i++)
        if (text ~ term[i] && !may()) {
            printf "%s:%d: say \"%s\": %s\n", FILENAME, FNR, say[i], $0
            bad = 1
        }
}
END { exit bad }
'
