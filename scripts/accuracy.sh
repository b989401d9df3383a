#!/bin/sh
# accuracy.sh BUILD [SEEDS|quick] - what numbers of 16 bits cost in accuracy: trains mnist-net
# (MNIST, 5 epochs) and resnet9 (20,000 images of CIFAR-10, 6 epochs) on two ranks with each level
# of `precision`, seeds 1 to SEEDS (5), and prints mean test accuracies and their differences to
# fp32.
#
# Exit code 1: a level with its own defaults is off by more than 0.002 (mnist-net) or 0.01
# (resnet9). 77: there is no data. quick: mnist-net, one epoch, one seed, fp32 and O3 in bf16,
# within 0.005.
set -eu
cohort=$1/cohort
seeds=${2:-5}
root=$(dirname "$0")/..
data=${COHORT_DATA:-$root/../shared/data}
work=$(mktemp -d "${TMPDIR:-/tmp}/cohort-accuracy-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

levels='fp32
bf16
O1
{level: O1, dtype: bf16}
O2
{level: O2, dtype: bf16}
O3
{level: O3, rounding: stochastic}
{level: O3, dtype: bf16}
{level: O3, dtype: bf16, rounding: nearest}'

# run PRECISION SEED ARGUMENT...: prints the test accuracy
run()
{
    precision=$1 seed=$2
    shift 2
    "$cohort" train "$@" -n 2 -s checkpoint=off -s "precision=$precision" -s "seed=$seed" \
        --run-dir "$work/run" >"$work/log" 2>&1 || {
        tail -n 5 "$work/log" >&2
        exit 1
    }
    accuracy=$(sed -n 's/.*"test_accuracy": *\([0-9][0-9.e+-]*\).*/\1/p' "$work/run/summary.json")
    [ -n "$accuracy" ] || { # null: nothing was measured
        echo "accuracy: no test_accuracy with $precision" >&2
        exit 1
    }
    echo "$accuracy"
    rm -rf "$work/run"
}

# table NAME BOUND ARGUMENT...: all levels of a network
table()
{
    name=$1 bound=$2
    shift 2
    echo "$levels" | while read -r precision; do
        : >"$work/$precision"
        for seed in $(seq "$seeds"); do
            run "$precision" "$seed" "$@" </dev/null >>"$work/$precision"
        done
        paste -d ' ' "$work/$precision" "$work/fp32" |
            awk -v name="$name" -v precision="$precision" -v bound="$bound" '
                { own += $1; other += $2 }
                END {
                    off = (own - other) / NR
                    far = (off < -bound || off > bound) && precision !~ /rounding/
                    printf "%-10s %-44s %.4f  %+.4f%s\n", name, precision, own / NR, off,
                        far ? "  TOO FAR" : ""
                    exit far
                }' || touch "$work/far"
    done
}

[ -d "$data/mnist" ] && [ -d "$data/cifar10" ] || {
    echo "skipped: no MNIST and CIFAR-10 in $data"
    exit 77
}
if [ "$seeds" = quick ]; then
    seeds=1
    levels='fp32
{level: O3, dtype: bf16}'
    table mnist-net 0.005 "$root/configs/mnist-net.yaml" -s "data.path=$data/mnist" -s epochs=1
else
    table mnist-net 0.002 "$root/configs/mnist-net.yaml" -s "data.path=$data/mnist" -s epochs=5
    table resnet9 0.01 "$root/configs/resnet9-cifar10.yaml" -s "data.path=$data/cifar10" \
        -s epochs=6 -s schedule=cosine
fi
[ ! -e "$work/far" ]
