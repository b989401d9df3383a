# lib.sh - what the benchmarks share: cores, fields of JSON lines, medians. Sourced from the root of
# the project.

fail()
{
    printf 'bench: error: %s\n' "$1" >&2
    exit 1
}

# The first N cores that this process may use, as taskset wants them.
cores()
{
    taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' | awk -F- -v n="$1" '
        { for (c = $1; c <= (NF > 1 ? $2 : $1) && k < n; c++) list = list (k++ ? "," : "") c }
        END { print list }'
}

# field FILE NAME: that number of every line of a file of flat JSON objects.
field()
{
    sed -n "s/.*\"$2\": *\([-+.0-9e]*\).*/\1/p" "$1"
}

# text FILE NAME: likewise a string.
text()
{
    sed -n "s/.*\"$2\": *\"\([^\"]*\)\".*/\1/p" "$1"
}

median()
{
    sort -g | awk '{ v[NR] = $1 }
        END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# The machine, the day and the commit, as the first line of a file of results.
machine()
{
    printf '{"machine": "%s", "cores": %s, "date": "%s", "commit": "%s"}\n' \
        "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" \
        "$(date -u +%Y-%m-%d)" "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
}

# Interpreters that import torch, one a version: of $PYTORCH, else of the usual ones.
pythons()
{
    for python in ${PYTORCH:-python3 /usr/bin/python3}; do
        version=$("$python" -c 'import torch; print(torch.__version__)' 2>/dev/null) || continue
        case " $seen " in *" $version "*) continue ;; esac
        seen="${seen:-} $version"
        echo "$python"
    done
}
