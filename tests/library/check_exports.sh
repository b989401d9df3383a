#!/bin/sh
# check_exports.sh LIBRARY INCLUDE - the shared library shows the functions that the public
# headers mark CO_API, all of them and nothing else.
set -eu
library=$1
include=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

nm -D --defined-only "$library" | awk '{ print $3 }' | sort >"$dir/shown"
# The name before the first "(" after CO_API; a declaration may go over two lines.
find "$include" -name '*.h' -exec cat {} + | tr '\n' ' ' | sed 's/CO_API /\n&/g' |
    sed -n 's/^CO_API [^(;]*[ *]\(co_[a-z0-9_]*\)[(;].*/\1/p' | sort -u >"$dir/promised"

status=0
[ -s "$dir/promised" ] || { echo "no CO_API function found in $include"; status=1; }
comm -23 "$dir/shown" "$dir/promised" | sed 's/^/shown, but no public header marks it CO_API: /' \
    >"$dir/extra"
comm -13 "$dir/shown" "$dir/promised" | sed 's/^/in a public header, but not in the library: /' \
    >"$dir/absent"
cat "$dir/extra" "$dir/absent"
[ ! -s "$dir/extra" ] && [ ! -s "$dir/absent" ] || status=1
echo "$(wc -l <"$dir/shown") symbols"
exit $status
