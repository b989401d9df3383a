#!/bin/bash
# slow_network.sh BUILD [ROUNDS] [RATE...] - what compressed gradients gain over a slow network:
# milliseconds of a step of resnet9 (batch 128) on two ranks for each compressor and each rate
# ("1gbit", "100mbit"), interleaved round by round, medians over rounds, and the bytes of a step.
# Needs what slow_link.sh does.
set -eu
cohort=$(realpath "$1")/cohort
rounds=${2:-5}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- 10gbit 1gbit 100mbit
steps=30
. "$(dirname "$0")/slow_link.sh"
cat >"$work/config.yaml" <<'YAML'
model: resnet9
data: {name: synthetic, shape: [3, 32, 32], classes: 10, samples: 1280}
batch: 128
epochs: 100
threads: 1
evaluate: false
checkpoint: off
YAML

median()
{
    sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

measure() # RATE NAME COMPRESS
{
    rm -rf "$work/run"
    link_run "$cohort" train "$work/config.yaml" --quiet \
        --run-dir "$work/run" -s max_steps=$steps -s log_every=1 \
        -s "strategy={name: sync, compress: $3}" >"$work/log" 2>&1 ||
        { cat "$work/log" >&2; exit 1; }
    # Without the first steps of a run. Both figures are sums since its beginning.
    sed -n 's/.*"step":\([0-9]*\),.*"train_seconds":\([0-9.e-]*\),.*"bytes_sent":\([0-9]*\).*/\1 \2 \3/p' \
        "$work/run/metrics.jsonl" | awk -v ms="$work/ms" -v bytes="$work/bytes-$2" '
            $1 == 5 { first = $3 }
            $1 > 5 { print ($2 - before) * 1000 >ms; print ($3 - first) / ($1 - 5) >bytes }
            { before = $2 }'
    median "$work/ms" >>"$work/$1-$2"
    tail -n 1 "$work/bytes-$2" >"$work/bytes"
    mv "$work/bytes" "$work/bytes-$2"
}

compressors="none bf16 topk-1% topk-0.1% powersgd-4 powersgd-2"
keys() # NAME
{
    case $1 in
    topk-1%) echo '{name: topk, ratio: 0.01}' ;;
    topk-0.1%) echo '{name: topk, ratio: 0.001}' ;;
    powersgd-*) echo "{name: powersgd, rank: ${1#powersgd-}}" ;;
    *) echo "$1" ;;
    esac
}

for rate in "$@"; do
    link_set_rate "$rate"
    for _ in $(seq "$rounds"); do
        for name in $compressors; do
            measure "$rate" "$name" "$(keys "$name")"
        done
    done
    base=$(median "$work/$rate-none")
    for name in $compressors; do
        median "$work/$rate-$name" | awk -v rate="$rate" -v name="$name" -v base="$base" \
            -v bytes="$(cat "$work/bytes-$name")" '{
            printf "%-8s %-11s %9.0f bytes a step  %8.2f ms  %6.2f\n", rate, name, bytes, $1, base / $1 }'
    done
done
