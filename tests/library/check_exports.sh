#!/bin/sh
# check_exports.sh INCLUDE FILE... - each file, a shared library, an archive, or the program, which
# plugins are linked with, shows the functions that the public headers mark CO_API, all of them and
# nothing else.
set -eu
include=$1
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The name before the first "(" after CO_API; a declaration may go over two lines.
find "$include" -name '*.h' -exec cat {} + | tr '\n' ' ' | sed 's/CO_API /\n&/g' |
    sed -n 's/^CO_API [^(;]*[ *]\(co_[a-z0-9_]*\)[(;].*/\1/p' | sort -u >"$dir/promised"

status=0
[ -s "$dir/promised" ] || { echo "no CO_API function found in $include"; status=1; }
for library in "$@"; do
    # Names that begin with an underscore and another, or a capital letter, are the compiler's and the C
    # library's: sanitizers put some in. Those with a version are another library's, of which a program
    # has a copy.
    case $library in
    *.a) nm -g --defined-only "$library" ;;
    *) nm -D --defined-only "$library" ;;
    esac | awk 'NF == 3 && $3 !~ /^_[_A-Z]|@/ { print $3 }' | sort >"$dir/shown"
    name=$(basename "$library")
    comm -23 "$dir/shown" "$dir/promised" |
        sed "s/^/$name shows what no public header marks CO_API: /" >"$dir/extra"
    comm -13 "$dir/shown" "$dir/promised" |
        sed "s/^/in a public header, but not in $name: /" >"$dir/absent"
    cat "$dir/extra" "$dir/absent"
    [ ! -s "$dir/extra" ] && [ ! -s "$dir/absent" ] || status=1
    echo "$name: $(wc -l <"$dir/shown") symbols"
done
exit $status
