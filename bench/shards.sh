#!/bin/sh
# shards.sh BUILD [ROUNDS] - what exact bits cost: milliseconds of a step for `shards: auto` and for
# 1 to 16 shards on 1 and 2 ranks, interleaved round by round, medians over rounds; and how often as
# much as `auto`. One compute thread a rank, batches of 96.
set -eu
cohort=$1/cohort
rounds=${2:-9}
work=$(mktemp -d "${TMPDIR:-/tmp}/cohort-bench-XXXXXX")
trap 'rm -rf "$work"' EXIT

measure() # NAME RANKS SHARDS STEPS
{
    "$cohort" bench train "$work/$1.yaml" -n "$2" -s shards="$3" -s threads=1 --warmup 5 \
        --steps "$4" --rounds 1 | sed -n 's/.*"step_ms": *\([0-9.e+-]*\).*/\1/p' >>"$work/$1-$2-$3"
}

median()
{
    sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

cat >"$work/mnist-net.yaml" <<'YAML'
model: {name: mnist-net, batch_norm: true}
data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 960}
batch: 96
YAML
cat >"$work/resnet9.yaml" <<'YAML'
model: resnet9
data: {name: synthetic, shape: [3, 32, 32], classes: 10, samples: 960}
batch: 96
YAML

for ranks in 1 2; do
    for model in mnist-net resnet9; do
        steps=50
        round=0
        while [ $round -lt "$rounds" ]; do
            for shards in auto 1 2 4 8 16; do
                [ "$shards" = 1 ] && [ $ranks = 2 ] || measure $model $ranks $shards $steps
            done
            round=$((round + 1))
        done
        base=$(median "$work/$model-$ranks-auto")
        for shards in auto 1 2 4 8 16; do
            [ -f "$work/$model-$ranks-$shards" ] || continue
            median "$work/$model-$ranks-$shards" | awk -v model=$model -v ranks=$ranks \
                -v shards=$shards -v base="$base" \
                '{ printf "%-10s %d ranks, shards %-4s  %8.3f ms  %5.2f\n", model, ranks, shards, $1, $1 / base }'
        done
    done
done
