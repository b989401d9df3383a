#!/bin/sh
# links.sh SOURCE - every link between the pages leads to a file that is there, and to a heading; every page is linked
# to from another one, and is in the navigation of the site.
set -eu
cd "$1"
awk '
function slug(text) {
    text = tolower(text)
    gsub(/[^a-z0-9 _-]/, "", text)
    gsub(/ /, "-", text)
    return text
}
function folder(path) {
    return path ~ /\// ? substr(path, 1, length(path) - length(base(path))) : ""
}
function base(path) {
    sub(/.*\//, "", path)
    return path
}
function tidy(path) {
    while (sub(/(^|\/)[^\/.][^\/]*\/\.\.\//, "/", path))
        ;
    sub(/^\//, "", path)
    return path
}
FNR == 1 { code = 0 }
/^```/ { code = !code; next }
code { next }
/^#+ / {
    text = $0
    sub(/^#+ +/, "", text)
    heading[FILENAME "#" slug(text)] = 1
    next
}
{
    rest = $0
    while (match(rest, /\]\([^)]*\)/)) {
        to = substr(rest, RSTART + 2, RLENGTH - 3)
        rest = substr(rest, RSTART + RLENGTH)
        if (to !~ /^[a-z]+:/)
            link[++n] = FILENAME "\t" FNR "\t" to
    }
}
END {
    for (i = 1; i <= n; i++) {
        split(link[i], part, "\t")
        at = part[3]
        anchor = ""
        if (match(at, /#/)) {
            anchor = substr(at, RSTART + 1)
            at = substr(at, 1, RSTART - 1)
        }
        path = at == "" ? part[1] : tidy(folder(part[1]) at)
        if (system("test -e \"" path "\"") != 0) {
            printf "%s:%d: there is no %s\n", part[1], part[2], path
            bad = 1
        } else if (anchor != "" && path ~ /\.md$/ && !((path "#" anchor) in heading)) {
            printf "%s:%d: %s has no heading #%s\n", part[1], part[2], path, anchor
            bad = 1
        }
        if (path != part[1])
            linked[path] = 1
    }
    while ((getline line < "docs/mkdocs.yml") > 0)
        if (match(line, /[A-Za-z\/-]+\.md$/))
            shown[substr(line, RSTART)] = 1
    for (i = 1; i < ARGC; i++) {
        if (ARGV[i] != "README.md" && !(ARGV[i] in linked)) {
            printf "%s: no page links to it\n", ARGV[i]
            bad = 1
        }
        if (!(ARGV[i] in shown)) {
            printf "%s: not in docs/mkdocs.yml\n", ARGV[i]
            bad = 1
        }
    }
    exit bad
}' README.md CONTRIBUTING.md CHANGELOG.md docs/*.md
