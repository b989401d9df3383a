#!/bin/sh
# check_headers.sh INCLUDE CC [CXX] - each public header compiles alone as strict C11, and from
# C++ where there is a compiler; no header needs another one first or a feature macro.
set -eu
include=$1
cc=$2
cxx=${3:-}
flags='-pedantic -Wall -Wextra -Wshadow -Wconversion -Wundef -Werror -fsyntax-only'
status=0
count=0

for header in $(find "$include" -name '*.h' | sort); do
    name=${header#"$include"/}
    count=$((count + 1))
    # shellcheck disable=SC2086 # a list of flags
    echo "#include <$name>" | "$cc" -std=c11 $flags -I"$include" -x c - || {
        echo "$name: not strict C11 on its own"
        status=1
    }
    [ -n "$cxx" ] || continue
    # shellcheck disable=SC2086
    echo "#include <$name>" | "$cxx" -std=c++11 $flags -I"$include" -x c++ - || {
        echo "$name: does not compile from C++"
        status=1
    }
done
[ -n "$cxx" ] || echo "no C++ compiler: C only"
echo "$count headers"
[ $count -gt 0 ] || status=1
exit $status
