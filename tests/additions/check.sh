#!/bin/sh
# What a strategy and a command touch: each patch here applies to the tree, and to at most so many
# files. scripts/additions.sh builds and runs them.
set -eu
cd "$(dirname "$0")"
most=4

command -v patch >/dev/null || {
    echo "skipped: no patch here (apt-get install patch)"
    exit 77
}
bad=0
for file in *.patch; do
    touched=$(grep -c '^+++ ' "$file")
    if [ "$touched" -gt "$most" ]; then
        echo "$file: touches $touched files, at most $most are allowed"
        bad=1
    fi
    patch --dry-run -p1 -s -f -d ../.. <"$file" || {
        echo "$file: does not apply any more; make it again"
        bad=1
    }
done
exit $bad
