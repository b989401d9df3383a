#!/bin/sh
# options.sh COHORT SOURCE - every option that the pages give a command, the command has; and every
# command that they name is there.
set -eu
cohort=$1
cd "$2"
folder=$(mktemp -d "${TMPDIR:-/tmp}/cohort-options-XXXXXX")
trap 'rm -rf "$folder"' EXIT
"$cohort" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\{1,\}\( [a-z]\{1,\}\)\{0,1\}\)  .*/\1/p' \
    >"$folder/commands"
while read -r command; do
    # shellcheck disable=SC2086 # a command may be two words
    "$cohort" $command --help | grep -oE -- '--[a-z][a-z-]*' | sed "s/^/$command\t/"
done <"$folder/commands" | sort -u >"$folder/options"

# "cohort train ... --resume" in backticks, or behind a "$ ".
awk -v commands="$folder/commands" -v options="$folder/options" '
BEGIN {
    while ((getline line < commands) > 0)
        command[line] = 1
    while ((getline line < options) > 0)
        option[line] = 1
}
function check(text,   word, n, i, name, at, own) {
    n = split(text, word, /[ \t]+/)
    for (i = 1; i <= n; i++)
        if (word[i] ~ /(^|\/)cohort$/)
            break
    if (i >= n || word[i + 1] !~ /^[a-z]+$/)
        return
    name = word[i + 1]
    at = i + 2
    if (!(name in command) && at <= n && ((name " " word[at]) in command)) {
        name = name " " word[at]
        at++
    }
    if (name == "help")
        return
    for (own in command)
        if (index(own, name " ") == 1 && !(name in command))
            return
    if (!(name in command)) {
        printf "%s:%d: there is no command `cohort %s`\n", FILENAME, FNR, name
        bad = 1
        return
    }
    for (; at <= n; at++) {
        if (word[at] ~ /^[|>;&#]/)
            return
        if (word[at] !~ /^--[a-z]/)
            continue
        sub(/[=,;:.].*/, "", word[at])
        if (!((name "\t" word[at]) in option)) {
            printf "%s:%d: `cohort %s` has no option %s\n", FILENAME, FNR, name, word[at]
            bad = 1
        }
    }
}
FNR == 1 { code = 0 }
/^```/ { code = !code; next }
code && /^\$ / {
    # What is shown as refused is none of the program.
    command_line = $0
    if ((getline) > 0 && $0 ~ /unknown option/)
        next
    gsub(/\047[^\047]*\047/, "X", command_line)
    check(substr(command_line, 3))
    next
}
!code {
    n_part = split($0, part, "`")
    for (p = 2; p <= n_part; p += 2)
        check(part[p])
}
END { exit bad }' README.md CONTRIBUTING.md docs/*.md
