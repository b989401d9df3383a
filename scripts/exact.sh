#!/bin/sh
# exact.sh BUILD [quick | device | divided | strategies] - the same bits on any number of ranks: trains the
# same network on 1, 2, 3, 4, 5, 7 and 8 ranks with 8 shards, over shared memory and over MPI, and
# compares the final weights; then with ranks that come, go and are killed on the way, and with runs
# that are killed and resumed.
#
# Batches of 96 samples; the last one of an epoch is shorter. mnist-net (batch norm, dropout) learns
# on 10,000 images of MNIST, resnet9 on 500 of CIFAR-10 with augmentation; what has no data is left
# out, saying so. gpt2 (dropout, tied weights, logits in parts) learns made-up tokens, and again in
# bf16, with micro-batches and with recomputed blocks, each alike on any number of ranks; what is
# recomputed changes no bit, and neither does an update that ranks divide. Under strategies whose bits are those of a number of ranks it is
# trained twice on three, over MPI, with a rank killed, and killed and resumed. quick: one small run
# of each kind on made-up images and tokens. device: the same on NVIDIA's GPUs, or their stand-in
# (make test-device), which up to four ranks share. divided, strategies: the divided
# updates alone, and the last part alone. Exit code 1: bits differ.
set -eu
cohort=$1/cohort
how=${2:-all}
data=${COHORT_DATA:-$(dirname "$0")/../../shared/data}
work=$(mktemp -d "${TMPDIR:-/tmp}/cohort-exact-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
status=0
want=

fail()
{
    printf '%s\n' "$*" >&2
    exit 1
}

# sha DIR: of the run's final weights
sha()
{
    sed -n 's/.*"weights_sha256": *"\([0-9a-f]*\)".*/\1/p' "$1/summary.json"
}

# compare TEXT DIR: one line of the table; the first run of a network is what the others must equal.
compare()
{
    got=$(sha "$2")
    [ ${#got} -eq 64 ] || fail "$1: the run wrote no weights"
    : "${want:=$got}"
    verdict=same
    [ "$got" = "$want" ] || {
        verdict=DIFFERENT
        status=1
    }
    printf '%-32s %.16s  %s\n' "$1" "$got" "$verdict"
    rm -rf "$2"
}

# train DIR ARGUMENT...: a run, whose output is shown where it fails
train()
{
    dir=$1
    shift
    "$@" --run-dir "$dir" >"$work/log" 2>&1 || {
        tail -n 5 "$work/log" >&2
        fail "failed: $*"
    }
}

shm()
{
    for n in "$@"; do
        train "$work/run" "$cohort" train "$work/config.yaml" -n "$n"
        compare "$name, $n ranks, shm" "$work/run"
    done
}

mpi()
{
    command -v mpiexec >/dev/null &&
        "$cohort" list transports | awk '$1 == "mpi" { here = 1 } here && /not here/ { here = 0 } END { exit !here }' || {
        echo "skipped: $name: no MPI here, or none built in"
        return 0
    }
    for n in "$@"; do
        train "$work/run" mpiexec --oversubscribe -n "$n" "$cohort" train "$work/config.yaml"
        compare "$name, $n ranks, mpi" "$work/run"
    done
}

# apart RANKS: over MPI, two ranks on each host, as they believe
apart()
{
    export COHORT_RANKS_PER_HOST=2
    name="$name, pairs"
    mpi "$1"
    name=${name%, pairs}
    unset COHORT_RANKS_PER_HOST
}

# Runs that something happens to while they go on: start, wait for a step, ask.
begin()
{
    "$cohort" train "$work/config.yaml" --run-dir "$work/run" "$@" >"$work/log" 2>&1 &
    job=$!
}

# field NAME: of the run's status; nothing when nobody answers
field()
{
    "$cohort" ctl "$work/run" status --json 2>/dev/null | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p"
}

# reach STEP: wait until the run is there
reach()
{
    tries=0
    while step=$(field step) && [ "${step:-0}" -lt "$1" ]; do
        kill -0 $job 2>/dev/null || {
            tail -n 5 "$work/log" >&2
            fail "$name: the run ended before step $1"
        }
        tries=$((tries + 1))
        [ $tries -lt 15000 ] || fail "$name: the run does not reach step $1"
        sleep 0.02
    done
}

# end TEXT RANKS WORD: the run ends well with so many ranks, its output says so, and as the others
end()
{
    wait $job || {
        tail -n 5 "$work/log" >&2
        fail "$name: the run failed"
    }
    grep -q "\"ranks\": $2" "$work/run/summary.json" && grep -q "$3" "$work/log" ||
        fail "$1: nothing has happened to it"
    compare "$1" "$work/run"
}

# A whole number below $1, another one each time
random()
{
    od -An -N4 -tu4 /dev/urandom | awk -v n="$1" '{ print int($1 % n) }'
}

# rank_process: one of the run's, by chance
rank_process()
{
    "$cohort" ctl "$work/run" status --json | tr '{' '\n' | sed -n 's/.*"pid":\([0-9]*\).*/\1/p' |
        sort -R | head -n 1
}

# resized STEPS: 2, 4, 1, 3 ranks, changed while it runs
resized()
{
    at=$(($1 / 10))
    begin -n 2
    for n in 4 1 3; do
        reach $at
        "$cohort" ctl "$work/run" ranks $n >/dev/null || fail "$name: cannot change the ranks"
        at=$((at + $1 / 5))
    done
    end "$name, 2-4-1-3 ranks, shm" 3 ""
}

# bereft STEPS POLICY [RANKS]: of 4 ranks, or so many, one is killed at a random step
bereft()
{
    ranks=${3:-4}
    begin -n "$ranks" -s on_failure="$2"
    at=$((1 + $(random $(($1 * 2 / 3)))))
    reach $at
    kill -9 "$(rank_process)"
    [ "$2" != shrink ] || ranks=$((ranks - 1))
    end "$name, $2 near step $at" "$ranks" "restart 1 of"
}

# killed STEPS FROM TO: the whole run is killed on FROM ranks at a random step, and goes on on TO
killed()
{
    begin -n "$2" -s 'checkpoint={every: 7 steps}'
    at=$((8 + $(random $(($1 * 2 / 3)))))
    reach $at
    kill -9 $job
    wait $job 2>/dev/null || true
    [ ! -f "$work/run/summary.json" ] || fail "$name: the run was over before it was killed"
    train "$work/run" "$cohort" train "$work/config.yaml" -n "$3" --resume \
        -s 'checkpoint={every: 7 steps}'
    grep -q '"resume"' "$work/run/metrics.jsonl" || fail "$name: the run began anew"
    compare "$name, killed near $at, $2-$3" "$work/run"
}

# config_again TEXT: of runs that are to have the bits of those before
config_again()
{
    printf '%s\nshards: 8\nbatch: 96\n' "$1" >"$work/config.yaml"
}

# config NAME TEXT: of the runs that follow
config()
{
    name=$1
    want=
    config_again "$2"
}

# transformer VOCABULARY CONTEXT SAMPLES EPOCHS MORE
transformer()
{
    printf '%s\n' "
model: {name: gpt2, layers: 2, heads: 2, width: 32, dropout: 0.1}
data: {name: synthetic-tokens, vocabulary: $1, context: $2, samples: $3, test_samples: 20}
epochs: $4
optimizer: {name: adamw, lr: 1e-3, weight_decay: 0.1}
schedule: {name: cosine, unit: step, warmup: 5, final: 0.1}
clip: {norm: 1.0}
$5"
}

# divided: gpt2 with updates that ranks divide, beside one that each makes whole
divided()
{
    for kind in '' 'precision: bf16' 'accumulate: 3' 'recompute: true'; do
        config "gpt2, whole${kind:+, }$kind" "$(transformer 50 16 500 30 "$kind")"
        shm 1 3
        for update in parts zero; do
            name="gpt2, $update${kind:+, }$kind"
            config_again "$(transformer 50 16 500 30 "$kind")
strategy: {name: sync, update: $update, bucket_mib: 0.01}"
            shm 1 2 3 4
            mpi 3
            apart 4
            resized 180
            bereft 180 respawn
            bereft 180 shrink
            killed 180 4 2
            killed 180 1 3
        done
    done
}

# strategies: gpt2 on three ranks under each whose result is a function of the config
strategies()
{
    for strategy in 'update: parts' 'update: zero' 'compress: bf16' 'compress: fp16' \
        'compress: {name: topk, ratio: 0.05}' 'compress: {name: powersgd, rank: 2}' \
        'name: stale, k: 2' 'name: local, period: 5' \
        'name: local, period: 5, start: 4, outer: {momentum: 0.9, lr: 0.7, nesterov: true}' \
        'name: one-shot' 'name: threads'; do
        case $strategy in
        name:*) ;;
        *) strategy="name: sync, $strategy" ;;
        esac
        name="gpt2, $strategy"
        want=
        printf '%s\nbatch: 96\nstrategy: {%s}\n' "$(transformer 50 16 500 30 '')" "$strategy" \
            >"$work/config.yaml"
        shm 3 3
        [ "$strategy" = "name: threads" ] || mpi 3
        bereft 180 respawn 3
        killed 180 3 3
    done
}

if [ "$how" = strategies ] || [ "$how" = divided ]; then
    "$how"
    exit $status
fi

if [ "$how" = quick ]; then
    config gpt2 "$(transformer 50 16 200 2 'accumulate: 2')"
    shm 1 3
    config "gpt2, 9,000 tokens" "$(transformer 9000 48 100 1 '')"
    shm 1
    config_again "$(transformer 9000 48 100 1 'recompute: true')"
    shm 2
    config mnist-net "
model: {name: mnist-net, batch_norm: true}
data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 500}
epochs: 2"
    shm 1 3
    mpi 2
    exit $status
fi

if [ "$how" = device ]; then
    network="
layers:
  - conv2d: {out: 8, kernel: 3, padding: 1, bias: false}
  - batchnorm
  - relu
  - maxpool: 2
  - flatten
  - dropout: 0.2
  - linear: 10
data: {name: synthetic, shape: [1, 10, 10], classes: 10, samples: 250}
epochs: 20
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
device: {name: cuda, ranks_per_gpu: 4}"
    config network "$network"
    shm 1 2 4
    mpi 1 2 4
    resized 60
    bereft 60 respawn
    bereft 60 shrink
    killed 60 4 2
    killed 60 1 4
    for update in parts zero; do
        name="network, update: $update"
        config_again "$network
strategy: {name: sync, update: $update}"
        shm 1 2 4
        mpi 4
        bereft 60 respawn
        killed 60 4 2
    done
    for more in 'strategy: {name: sync, compress: bf16}' \
        'strategy: {name: sync, compress: {name: topk, ratio: 0.05}}' \
        'strategy: {name: sync, compress: powersgd}' 'sync_batch_norm: true'; do
        for ranks in 2 3; do
            name="network, ${more#strategy: }"
            want=
            printf '%s\nbatch: 96\n%s\n' "$network" "$more" >"$work/config.yaml"
            shm $ranks $ranks
            mpi $ranks
            bereft 60 respawn $ranks
            killed 60 $ranks $ranks
        done
    done
    exit $status
fi

if [ -d "$data/mnist" ]; then
    config mnist-net "
model: {name: mnist-net, batch_norm: true}
data: {name: idx, path: $data/mnist, images: t10k-images-idx3-ubyte, labels: t10k-labels-idx1-ubyte,
  classes: 10, normalize: {mean: 0.1307, std: 0.3081}}
epochs: 6
optimizer: {name: sgd, lr: 0.01, momentum: 0.9}"
    shm 1 2 3 4 5 7 8
    mpi 1 2 3 4 5 7 8
    resized 630
    bereft 630 respawn
    bereft 630 shrink
    killed 630 5 3
    killed 630 1 8
else
    echo "skipped: mnist-net: no MNIST in $data"
fi

if [ -f "$data/cifar10/exact/train_first4000_exact.bin.gz" ]; then
    gzip -dc "$data/cifar10/exact/train_first4000_exact.bin.gz" 2>/dev/null | head -c 1536500 >"$work/train.bin"
    gzip -dc "$data/cifar10/exact/test_first1000_exact.bin.gz" 2>/dev/null | head -c 614600 >"$work/test.bin"
    config resnet9 "
model: resnet9
data: {name: cifar10, path: $work, train: train.bin, test: test.bin,
  normalize: {mean: [0.491, 0.482, 0.447], std: [0.247, 0.243, 0.262]},
  augment: [random-crop, horizontal-flip]}
epochs: 20
optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 5e-4}"
    shm 1 2 3 4 5 7 8
    mpi 1 2 3 4 5 7 8
    resized 120
    bereft 120 respawn
    bereft 120 shrink
    killed 120 5 3
    killed 120 1 8
else
    echo "skipped: resnet9: no CIFAR-10 in $data"
fi
for kind in '' 'precision: bf16' 'accumulate: 3'; do
    config "gpt2${kind:+, }$kind" "$(transformer 50 16 500 30 "$kind")"
    shm 1 2 3 4 5 7 8
    mpi 1 2 3 4 5 7 8
    resized 180
    bereft 180 respawn
    bereft 180 shrink
    killed 180 5 3
    killed 180 1 8
    config_again "$(transformer 50 16 500 30 "recompute: true
$kind")"
    name="$name, recomputed"
    shm 1 3 4
done
config "gpt2, 9,000 tokens" "$(transformer 9000 48 300 4 "")"
shm 1 2 3 4 8
mpi 1 3
bereft 16 respawn
killed 16 4 2
divided
strategies
[ $status -eq 0 ] && echo "all the same" || echo "bits differ" >&2
exit $status
