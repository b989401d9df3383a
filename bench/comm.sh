#!/bin/sh
# comm.sh - how fast the sum over two ranks of one machine is, beside Gloo, Open MPI and MPICH in
# the same run.
#
#   ROUNDS=7                                  turns; figures are medians over them
#   SIZES='1024 65536 4194304 33554432'       bytes of a message
#   PYTORCH='python3 ...'                     interpreters that import torch, for Gloo
#   COHORT=build/cohort
#
# A repetition starts behind a barrier and lasts until the slower rank is done; each program takes
# the median over its own repetitions. Those that are not installed are left out, saying so. Prints
# a table and writes bench/results/comm.jsonl.
set -eu
cd "$(dirname "$0")/.."
. bench/lib.sh
COHORT=${COHORT:-build/cohort}
ROUNDS=${ROUNDS:-7}
SIZES=${SIZES:-1024 65536 4194304 33554432}
export PYTHONDONTWRITEBYTECODE=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
seen=

# find_mpi NAME: the compiler and the launcher that Debian's alternatives give that MPI.
find_mpi()
{
    for cc in "mpicc.$1" mpicc; do
        run=mpiexec${cc#mpicc}
        command -v "$cc" >/dev/null && command -v "$run" >/dev/null || continue
        "$run" --version 2>&1 | grep -qi "$2" || continue
        "$cc" -O2 bench/peers/mpi_allreduce.c -o "$dir/$1" || fail "$cc cannot build the peer"
        echo "$run" >"$dir/$1.run"
        return
    done
    echo "$2 is left out: not installed (Debian: $3)"
}

# peer NAME SIZE: that one's line for a size; nothing where it is left out.
peer()
{
    case $1 in
    cohort) "$COHORT" bench comm -n 2 --op allreduce --min-bytes "$2" --max-bytes "$2" ;;
    gloo) [ -z "$PYTHON" ] || "$PYTHON" bench/peers/torch_allreduce.py "$2" ;;
    openmpi)
        [ ! -x "$dir/openmpi" ] || OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
            "$(cat "$dir/openmpi.run")" -n 2 --bind-to core "$dir/openmpi" "$2" "$2"
        ;;
    mpich)
        [ ! -x "$dir/mpich" ] ||
            "$(cat "$dir/mpich.run")" -n 2 -bind-to core "$dir/mpich" "$2" "$2"
        ;;
    esac
}

# ratio NAME SIZE: how many times as long it takes as Cohort, and "-" where it is left out.
ratio()
{
    [ -s "$dir/$1-$2" ] || { echo -; return; }
    field "$dir/cohort-$2" latency_us >"$dir/ours"
    field "$dir/$1-$2" latency_us | paste "$dir/ours" - | awk '{ print $2 / $1 }' | median |
        awk '{ printf "%.2f\n", $1 }'
}

time_us()
{
    [ -s "$dir/$1-$2" ] || { echo -; return; }
    field "$dir/$1-$2" latency_us | median | awk '{ printf "%.4g\n", $1 }'
}

[ -x "$COHORT" ] || fail "$COHORT is not built; run: make"
PYTHON=$(pythons | head -n 1)
[ -n "$PYTHON" ] || echo "Gloo is left out: no python3 here imports torch (Debian: python3-torch)"
find_mpi openmpi 'Open MPI\|OpenRTE' libopenmpi-dev
find_mpi mpich 'HYDRA' libmpich-dev
for round in $(seq "$ROUNDS"); do
    for size in $SIZES; do
        for name in cohort gloo openmpi mpich; do
            peer "$name" "$size" >>"$dir/$name-$size" || fail "$name failed at $size bytes"
        done
    done
done
machine | tee "$dir/out"
printf '%10s %10s %18s %18s %18s\n' bytes 'Cohort us' 'Gloo us' 'Open MPI us' 'MPICH us'
for size in $SIZES; do
    printf '%10s %10s' "$size" "$(time_us cohort "$size")"
    printf '{"bytes": %s, "cohort_us": %s' "$size" "$(time_us cohort "$size")" >>"$dir/out"
    for name in gloo openmpi mpich; do
        us=$(time_us $name "$size") times=$(ratio $name "$size")
        printf ' %10s %6sx' "$us" "$times"
        [ "$us" = - ] || printf ', "%s_us": %s, "%s_ratio": %s' $name "$us" $name "$times" >>"$dir/out"
    done
    echo
    echo '}' >>"$dir/out"
done
mkdir -p bench/results
mv "$dir/out" bench/results/comm.jsonl
echo "written: bench/results/comm.jsonl"
