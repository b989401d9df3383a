#!/bin/sh
# exact.sh BUILD [quick] - the same bits on any number of ranks: trains the same network on 1, 2, 3,
# 4, 5, 7 and 8 ranks with 8 shards, over shared memory and over MPI, and compares the final weights.
#
# Batches of 96 samples; the last one of an epoch is shorter. mnist-net (batch norm, dropout) learns
# on 10,000 images of MNIST, resnet9 on 500 of CIFAR-10 with augmentation; what has no data is left
# out, saying so. quick: one small run of each kind on made-up images. Exit code 1: bits differ.
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
    printf '%-28s %.16s  %s\n' "$1" "$got" "$verdict"
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
    command -v mpiexec >/dev/null && "$cohort" list transports | grep -q '^mpi' || {
        echo "$name: no MPI here, or none built in; left out"
        return 0
    }
    for n in "$@"; do
        train "$work/run" mpiexec --oversubscribe -n "$n" "$cohort" train "$work/config.yaml"
        compare "$name, $n ranks, mpi" "$work/run"
    done
}

# config NAME TEXT: of the runs that follow
config()
{
    name=$1
    want=
    printf '%s\nshards: 8\nbatch: 96\n' "$2" >"$work/config.yaml"
}

if [ "$how" = quick ]; then
    config mnist-net "
model: {name: mnist-net, batch_norm: true}
data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 500}
epochs: 2"
    shm 1 3
    mpi 2
    exit $status
fi

if [ -d "$data/mnist" ]; then
    config mnist-net "
model: {name: mnist-net, batch_norm: true}
data: {name: idx, path: $data/mnist, images: t10k-images-idx3-ubyte, labels: t10k-labels-idx1-ubyte,
  classes: 10, normalize: {mean: 0.1307, std: 0.3081}}
epochs: 2
optimizer: {name: sgd, lr: 0.01, momentum: 0.9}"
    shm 1 2 3 4 5 7 8
    mpi 1 2 3 4 5 7 8
else
    echo "mnist-net: no MNIST in $data; left out"
fi

if [ -f "$data/cifar10/exact/train_first4000_exact.bin.gz" ]; then
    gzip -dc "$data/cifar10/exact/train_first4000_exact.bin.gz" 2>/dev/null | head -c 1536500 >"$work/train.bin"
    gzip -dc "$data/cifar10/exact/test_first1000_exact.bin.gz" 2>/dev/null | head -c 614600 >"$work/test.bin"
    config resnet9 "
model: resnet9
data: {name: cifar10, path: $work, train: train.bin, test: test.bin}
epochs: 2
optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 5e-4}"
    shm 1 2 3 4 5 7 8
    mpi 1 2 3 4 5 7 8
else
    echo "resnet9: no CIFAR-10 in $data; left out"
fi
[ $status -eq 0 ] && echo "all the same" || echo "bits differ" >&2
exit $status
