#!/bin/sh
# check_arrays.sh COHORT MAKE_ARRAYS SOURCES: the configs that learn from arrays get good on the data
# that the example makes, and to the byte as good on two ranks.
set -eu
cohort=$1 make_arrays=$2 sources=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$make_arrays" .

# check NAME KEY BOUND: figure KEY of the config's run is BOUND or less; an accuracy, or more.
check()
{
    for ranks in 1 2; do
        "$cohort" train "$sources/configs/$1.yaml" -n $ranks --run-dir "$1-$ranks" --quiet
    done
    cmp "$1-1/final.safetensors" "$1-2/final.safetensors"
    value=$(sed -n "s/.*\"$2\": \([0-9.e-]*\).*/\1/p" "$1-1/summary.json")
    [ "$value" = "$(sed -n "s/.*\"$2\": \([0-9.e-]*\).*/\1/p" "$1-2/summary.json")" ]
    echo "$1: $2 $value, bound $3"
    awk -v key="$2" -v value="$value" -v bound="$3" 'BEGIN {
        exit value == "" || (key ~ /loss/ ? value > bound : value < bound) }'
}

# runs_own NAME: no layer of the config runs on reference kernels.
runs_own()
{
    "$cohort" list kernels --config "$sources/configs/$1.yaml" >"$1.kernels"
    grep -q '^loss ' "$1.kernels"
    ! grep ' ref$' "$1.kernels"
}

runs_own energy
runs_own faults
check energy test_loss 0.001
check faults test_accuracy 0.85
