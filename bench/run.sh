#!/bin/sh
# run.sh - how fast training steps are, with PyTorch beside it in the same run.
#
# Trains mnist-net at global batch 128 on synthetic data of MNIST's shape, on one rank and on two,
# one core a rank for all that the rank does. Rounds alternate (Cohort, PyTorch, Cohort, ...), so
# that both see the same machine; the figures are medians over the rounds. PyTorch is left out,
# saying why, where it is not installed.
#
#   ROUNDS=5 STEPS=300 WARMUP=50   what a round is
#   PYTHON=/usr/bin/python3        the interpreter that has PyTorch
#   COHORT=build/cohort            the program
#
# Prints a table and writes bench/results/mnist-net.json.
set -eu
cd "$(dirname "$0")/.."
COHORT=${COHORT:-build/cohort}
ROUNDS=${ROUNDS:-5}
STEPS=${STEPS:-300}
WARMUP=${WARMUP:-50}
RANKS='1 2'
SAMPLES=8192
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

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

run_cohort()
{
    taskset -c "$(cores "$1")" "$COHORT" bench train configs/mnist-net.yaml -n "$1" \
        --steps "$STEPS" --warmup "$WARMUP" --rounds 1 --set threads=1 \
        --set "data={name: synthetic, shape: [1, 28, 28], classes: 10, samples: $SAMPLES}"
}

run_pytorch()
{
    taskset -c "$(cores "$1")" "$PYTHON" bench/peers/mnist_net.py -n "$1" \
        --steps "$STEPS" --warmup "$WARMUP" --samples "$SAMPLES"
}

find_python()
{
    for python in ${PYTHON:-python3 /usr/bin/python3}; do
        "$python" -c 'import torch' 2>/dev/null && { echo "$python"; break; }
    done
    :
}

# field FILE NAME: that number of every line of a file of JSON objects.
field()
{
    sed -n "s/.*\"$2\": *\([-+.0-9e]*\).*/\1/p" "$1"
}

median()
{
    sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# What a contestant did with so many ranks, as JSON: {medians, rounds}.
object()
{
    printf '{"samples_per_second": %s, "start_seconds": %s, "rounds": [%s]}' \
        "$(field "$1" samples_per_second | median)" "$(field "$1" start_seconds | median)" \
        "$(field "$1" samples_per_second | paste -sd , - | sed 's/,/, /g')"
}

[ -x "$COHORT" ] || fail "$COHORT is not built; run: make"
PYTHON=$(find_python)
[ -n "$PYTHON" ] || echo "PyTorch is left out: no python3 here imports torch (Debian: python3-torch)"

for round in $(seq "$ROUNDS"); do
    for n in $RANKS; do
        run_cohort "$n" >>"$dir/cohort-$n" || fail "cohort failed with $n ranks"
        if [ -n "$PYTHON" ]; then
            run_pytorch "$n" >>"$dir/pytorch-$n" || fail "bench/peers/mnist_net.py failed"
        fi
    done
    printf '\rround %s of %s' "$round" "$ROUNDS" >&2
done
printf '\r                    \r' >&2

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
peer=none
[ -z "$PYTHON" ] || peer=$(sed -n '1s/.*"peer": "\([^"]*\)".*/\1/p' "$dir/pytorch-1")
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
mkdir -p bench/results
out=bench/results/mnist-net.json
{
    printf '{"bench": "mnist-net", "date": "%s", "commit": "%s", "cpu": "%s", "cores": %s,\n' \
        "$(date -u +%Y-%m-%d)" "$commit" "${cpu:-unknown}" "$(nproc)"
    printf ' "batch": 128, "steps": %s, "rounds": %s, "peer": "%s",\n' "$STEPS" "$ROUNDS" "$peer"
    printf ' "results": ['
    comma=
    for n in $RANKS; do
        printf '%s\n  {"ranks": %s,\n   "cohort": %s' "$comma" "$n" "$(object "$dir/cohort-$n")"
        if [ -n "$PYTHON" ]; then
            printf ',\n   "pytorch": %s' "$(object "$dir/pytorch-$n")"
        fi
        printf '}'
        comma=,
    done
    printf '\n ]}\n'
} >"$dir/out"
mv "$dir/out" $out

# value CONTESTANT RANKS FIELD, and "-" for one that did not run
value()
{
    if [ -f "$dir/$1-$2" ]; then field "$dir/$1-$2" "$3" | median; else echo -; fi
}

echo "mnist-net, global batch 128, one core a rank; medians of $ROUNDS rounds of $STEPS steps"
echo "${cpu:-unknown CPU}; peer: $peer"
printf '%-6s %13s %13s %7s %12s %12s\n' ranks 'Cohort' 'PyTorch' ratio 'first step' 'PyTorch'
printf '%-6s %13s %13s %7s %12s %12s\n' '' 'samples/s' 'samples/s' '' 's' 's'
for n in $RANKS; do
    ours=$(value cohort "$n" samples_per_second)
    theirs=$(value pytorch "$n" samples_per_second)
    first=$(value cohort "$n" start_seconds)
    first_theirs=$(value pytorch "$n" start_seconds)
    echo "$n $ours $theirs $first $first_theirs" | awk '{
        ratio = $3 == "-" ? "-" : sprintf("%.2f", $2 / $3)
        theirs = $3 == "-" ? "-" : sprintf("%.0f", $3)
        first = $5 == "-" ? "-" : sprintf("%.3f", $5)
        printf "%-6s %13.0f %13s %7s %12.3f %12s\n", $1, $2, theirs, ratio, $4, first
    }'
done
echo "written: $out"
