#!/bin/sh
# tune.sh BUILD [NETWORK...] - `cohort tune` beside the full grid of what it may choose, from configs
# that are set badly on purpose: threads that take turns, tiny buckets and a small batch. Networks are
# mnist-net, resnet9 (default: these two) and resnet18 for CIFAR.
#
#   KEEP=DIR     keep what was measured there, and continue with what is there
#   LIMIT=0      stop after so many seconds, to be continued with KEEP; 0: do not
#   MS=1000      that a candidate is measured, in both
#   ROUNDS=5     in which the two winners are timed in turns at the end
#   CHECK=1      exit 1 where tune has less than 90% of the grid's throughput, or takes more than a
#                tenth of its time
#
# The grid is `cohort tune --full`, one batch after another, without the combinations whose threads take
# turns: they would only make it longer. Its time is without what it measures before, that of tune is from
# start to end.
set -eu
cd "$(dirname "$0")/.."
. bench/lib.sh
cohort=$(realpath "$1")/cohort
shift
[ $# -gt 0 ] || set -- mnist-net resnet9
MS=${MS:-1000} ROUNDS=${ROUNDS:-5} LIMIT=${LIMIT:-0}
work=${KEEP:-$(mktemp -d "${TMPDIR:-/tmp}/cohort-tune-bench-XXXXXX")}
mkdir -p "$work"
[ -n "${KEEP:-}" ] || trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
begin=$(date +%s)

pause_if_late()
{
    [ "$LIMIT" -eq 0 ] || [ $(($(date +%s) - begin)) -lt "$LIMIT" ] ||
        { echo "stopped after $LIMIT s; the same command continues"; exit 0; }
}

config() # NETWORK
{
    data='{name: synthetic, shape: [3, 32, 32], classes: 10, samples: 25600}'
    model=$1 batch=16
    batches='16 32 64 128 256 512 1024'
    case $1 in
    mnist-net) data='{name: synthetic, shape: [1, 28, 28], classes: 10, samples: 25600}' ;;
    resnet18) model='{name: resnet18, stem: cifar}' batch=4 batches='4 8 16 32 64' ;;
    esac
    cat >"$work/$1.yaml" <<YAML
model: $model
data: $data
batch: $batch
ranks: $(nproc)
threads: $(nproc)
strategy: {name: sync, bucket_mib: 0.05}
loader: {threads: 4}
YAML
}

tune() # NETWORK FILE OPTIONS...: the JSON of a run, once
{
    name=$1 file=$2
    shift 2
    [ ! -s "$file" ] || return 0
    pause_if_late
    "$cohort" tune "$work/$name.yaml" --json --ms "$MS" --try strategies=sync "$@" >"$file.new" ||
        fail "tune failed for $name"
    mv "$file.new" "$file"
}

found() # FILE: samples a second and --set of the best
{
    sed -n 's/.*"changed_result": {"samples_per_second": \([0-9.e+-]*\), "set": \[\([^]]*\)\].*/\1 \2/p' "$1" |
        sed 's/", "/ /g; s/"//g'
}

number() # KEY FILE
{
    sed -n "s/.*\"$1\": \([0-9.e+-]*\)[,}].*/\1/p" "$2"
}

points() # FILE
{
    grep -o '"loader_threads"' "$1" | wc -l
}

time_one() # NETWORK "KEY=VALUE..."
{
    words=
    for word in $2; do
        words="$words -s $word"
    done
    # shellcheck disable=SC2086 # words
    "$cohort" bench train "$work/$1.yaml" $words --steps "$3" --rounds 3 --warmup "$3" |
        sed -n 's/.*"samples_per_second": \([0-9.e+-]*\),.*/\1/p'
}

compare() # NETWORK
{
    all="$work/$1-grid" seconds=0 cells=0 best=0 settings=
    for batch in $batches; do
        grid=$all-$batch
        seconds=$(echo "$seconds $(number search_seconds "$grid")" | awk '{ print $1 + $2 }')
        cells=$((cells + $(points "$grid")))
        rate=$(found "$grid" | cut -d' ' -f1)
        if awk "BEGIN { exit !($rate > $best) }"; then
            best=$rate settings="batch=$batch threads=0 $(found "$grid" | cut -d' ' -f2-)"
        fi
    done
    own=$(found "$work/$1-tune" | cut -d' ' -f2-)
    # steps of about half a second
    batch=$(echo "$settings" | sed -n 's/.*batch=\([0-9]*\).*/\1/p')
    steps=$(awk "BEGIN { s = int($best / 2 / $batch); print s < 3 ? 3 : s }")
    for _ in $(seq "$ROUNDS"); do
        time_one "$1" "$settings" "$steps" >>"$work/$1-best.times"
        time_one "$1" "$own" "$steps" >>"$work/$1-own.times"
    done
    a=$(median <"$work/$1-best.times") b=$(median <"$work/$1-own.times")
    rm "$work/$1-best.times" "$work/$1-own.times"
    echo "$1"
    echo "  now    $(number now_samples_per_second "$work/$1-tune") samples/s"
    echo "  grid   $a samples/s after $cells combinations in $seconds s: $settings"
    echo "  tune   $b samples/s after $(points "$work/$1-tune") combinations in $(number total_seconds "$work/$1-tune") s: $own"
    awk -v a="$a" -v b="$b" -v grid="$seconds" -v tune="$(number total_seconds "$work/$1-tune")" \
        -v check="${CHECK:-}" 'BEGIN {
            printf "  tune finds %.1f%% of the throughput in %.1f%% of the time\n", 100 * b / a, 100 * tune / grid
            exit check != "" && (b < 0.9 * a || tune > 0.1 * grid) }' || failed=1
}

failed=0
machine
for network; do
    config "$network"
    # shellcheck disable=SC2086 # words
    tune "$network" "$work/$network-tune" --try "batch=$(echo $batches | tr ' ' ',')"
    for batch in $batches; do
        tune "$network" "$work/$network-grid-$batch" --full -s "batch=$batch" -s threads=0 --try "batch=$batch"
    done
    pause_if_late
    compare "$network"
done
exit $failed
