#!/bin/sh
# A test function is called <unit>_<condition>_<result> (CONTRIBUTING.md). Prints each that has fewer
# than three words, or begins with a word that is no unit. That the words are the right ones is for
# the reader.
set -eu
cd "$(dirname "$0")/.."

find tests -name "*.c" | LC_ALL=C sort | xargs awk '
BEGIN {
    n = split("a an any all both each every it its many more no nobody none of only other " \
              "so some that the there these they this those two test tests " \
              "what whatever when where wherever which who whoever whose why with without", word, " ")
    for (i = 1; i <= n; i++)
        no_unit[word[i]] = 1
}
/^(static )?void [a-z0-9_]+\(void \*\*/ {
    name = $0
    sub(/\(.*/, "", name)
    sub(/.* /, "", name)
    n = split(name, word, "_")
    if (n < 3 || word[1] in no_unit) {
        printf "%s:%d: %s: call it <unit>_<condition>_<result>\n", FILENAME, FNR, name
        bad = 1
    }
}
END { exit bad }
'
