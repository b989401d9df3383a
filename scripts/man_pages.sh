#!/bin/sh
# man_pages.sh TEMPLATE FOLDER COHORT... - cohort.1 and a page for each command, such as cohort-train.1 and
# cohort-data-get.1, into FOLDER. COHORT is the program, after an emulator where it needs one: what a page says
# is what `cohort COMMAND --help` says. TEMPLATE is cohort.1 with @VERSION@, and @COMMANDS@ on a line of its own.
set -eu
template=$1 folder=$2
shift 2
rm -rf "$folder"
mkdir -p "$folder"
version=$("$@" --version | cut -d' ' -f2)
date=$(sed -n 's/^\.TH COHORT 1 "\([^"]*\)".*/\1/p' "$template")

# NAME<tab>SUMMARY of every command
"$@" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\{1,\}\( [a-z]\{1,\}\)\{0,1\}\)  *\(.*\)/\1\t\3/p' >"$folder/commands"

while IFS='	' read -r command _; do
    # shellcheck disable=SC2086 # a command may be two words
    "$@" $command --help </dev/null >"$folder/help"
    page=cohort-$(printf '%s' "$command" | tr ' ' -)
    awk -v command="$command" -v page="$page" -v version="$version" -v date="$date" -v commands="$folder/commands" '
    BEGIN {
        while ((getline line < commands) > 0) {
            sub(/\t.*/, "", line)
            name[++n] = line
        }
        close(commands)
    }
    # text as troff takes it, with `words` in bold
    function troff(text) {
        gsub(/\\/, "\\e", text)
        gsub(/-/, "\\-", text)
        while (match(text, /`[^`]*`/))
            text = substr(text, 1, RSTART - 1) "\\fB" substr(text, RSTART + 1, RLENGTH - 2) "\\fR" substr(text, RSTART + RLENGTH)
        return (text ~ /^[.\047]/ ? "\\&" : "") text
    }
    # "-n, --ranks N", "CONFIG"
    function term(text,   word, count, i, out) {
        count = split(text, word, " ")
        for (i = 1; i <= count; i++)
            out = out (i > 1 ? " " : "") (word[i] ~ /^-.*,$/ ? "\\fB" troff(substr(word[i], 1, length(word[i]) - 1)) "\\fR," : \
                (word[i] ~ /^-/ ? "\\fB" : "\\fI") troff(word[i]) "\\fR")
        return out
    }
    # Lines that are indented stay as they are.
    function literal(on) {
        if (on && !shown)
            print ".RS 4\n.nf"
        if (!on && shown)
            print ".fi\n.RE"
        shown = on
    }
    function section(title) {
        literal(0)
        print ".SH " title
        apart = 0
    }
    FNR == 1 {
        sub(/^cohort [a-z ]* - /, "")
        printf ".TH %s 1 \"%s\" \"Cohort %s\" \"User Commands\"\n", troff(toupper(page)), date, version
        print ".nh\n.ad l"
        printf ".SH NAME\n%s \\- %s\n", troff(page), troff($0)
        next
    }
    /^Usage: / {
        sub(/^Usage: /, "")
        rest = substr($0, length("cohort " command) + 1)
        gsub(/[A-Z_a-z]+/, "\\fI&\\fR", rest)
        section("SYNOPSIS")
        printf "\\fBcohort %s\\fR%s\n", command, rest
        section("DESCRIPTION")
        next
    }
    /^Arguments:$/ { section("ARGUMENTS"); part = "terms"; next }
    /^Options:$/ { section("OPTIONS"); part = "terms"; next }
    /^Exit codes:$/ { section("EXIT STATUS"); part = "codes"; next }
    /^Example:$/ { section("EXAMPLES"); part = "examples"; next }
    /^$/ { apart = 1; next }
    part == "terms" {
        sub(/^ +/, "")
        at = match($0, /   *[^ ]/)
        help = substr($0, at + RLENGTH - 1)
        printf ".TP\n%s\n%s\n", term(substr($0, 1, at - 1)), troff(help)
        next
    }
    part == "codes" { sub(/^ +/, "") }
    part != "codes" { literal($0 ~ /^  /) }
    {
        if (apart && !shown && part == "" && described)
            print ".PP"
        else if (apart && shown && described)
            print ""
        apart = 0
        described = 1
        mentioned = mentioned " " $0
        sub(/^  /, "")
        print troff($0)
    }
    # Commands that the text names, and those with the same first word.
    END {
        section("SEE ALSO")
        split(command, word, " ")
        printf ".BR cohort (1)"
        for (i = 1; i <= n; i++) {
            split(name[i], other, " ")
            if (name[i] == command || !(index(mentioned, "`cohort " name[i] "`") || (index(command, " ") && other[1] == word[1])))
                continue
            gsub(/ /, "\\-", name[i])
            printf ",\n.BR cohort\\-%s (1)", name[i]
        }
        print "\n.PP\n.IR docs/commands.md ,\ninstalled below\n.IR share/doc/cohort ,\nshows what it prints."
    }' "$folder/help" >"$folder/$page.1"
done <"$folder/commands"

# Last: the build takes this one for all of them.
awk -v version="$version" -v commands="$folder/commands" '
function plain(text) {
    gsub(/-/, "\\-", text)
    return text
}
$0 == "@COMMANDS@" {
    while ((getline line < commands) > 0) {
        split(line, part, "\t")
        page = part[1]
        gsub(/ /, "-", page)
        printf ".TP\n.BR cohort\\-%s (1)\n%s\n", plain(page), plain(part[2])
    }
    next
}
{
    gsub(/@VERSION@/, version)
    print
}' "$template" >"$folder/cohort.1"
rm -f "$folder/help" "$folder/commands"
