#!/bin/sh
# simulate.sh BUILD [POINT...] - what `cohort plan` predicts beside what SimGrid's SMPI simulates, by
# the code of Cohort's communicator and strategies (bench/simulate), on platforms that are made of
# the same cluster files. A point is CLUSTER:NODES:KIND:LIST:
#
#   ethernet:8:allreduce:4096,1048576     sums of so many bytes over all ranks of the nodes
#   ethernet:8:mpi-rdb:1048576            the same by SMPI's own all-reduce of that name
#   slow:16:step:sync;topk                steps of a training: sync, topk, bf16, local
#
# CLUSTER is a file of bench/simulate/clusters or configs/clusters; "quick" is a few points, "all" or
# none all of them. Exit code 77: SimGrid is not here.
#
#   PERCENT=     exit 1 where a point is off by more
set -eu
cd "$(dirname "$0")/.."
. bench/lib.sh
build=$(realpath "$1")
shift
PERCENT=${PERCENT:-}
program=$build/bench/simulate/cohort_simulate.so
command -v smpirun >/dev/null && [ -e "$program" ] || {
    echo "skipped: SimGrid is not here (Debian: libsimgrid-dev), or was not when the build was configured"
    exit 77
}
work=$(mktemp -d "${TMPDIR:-/tmp}/cohort-simulate-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# The network is what the cluster file says: no factors that SimGrid has measured on one cluster of
# its own, no limit by TCP's window, no acknowledgements that take bandwidth (that is measured, too).
# Of the host: no time for a call of MPI but for messages' overheads, which bench/simulate has.
options="--cfg=network/model:CM02 --cfg=network/TCP-gamma:0 --cfg=network/weight-S:0
    --cfg=network/crosstraffic:0 --cfg=smpi/privatization:no --cfg=smpi/simulate-computation:no
    --cfg=smpi/host-speed:1Gf --cfg=smpi/test:0 --cfg=smpi/iprobe:0 --cfg=smpi/wtime:0
    --cfg=smpi/grow-injected-times:no --cfg=contexts/stack-size:256 --log=root.threshold:error"

sums=1024,65536,1048576,4194304
all=
for nodes in 2 4 8; do
    all="$all ethernet:$nodes:allreduce:$sums"
done
for nodes in 2 8 16; do
    all="$all slow:$nodes:allreduce:$sums slow:$nodes:step:sync;local;topk;bf16"
    all="$all ethernet-small:$nodes:step:sync;local;topk;bf16"
done
for nodes in 64 256 1024; do
    all="$all one-rank:$nodes:allreduce:1024,65536,1048576"
done
all="$all ethernet:32:allreduce:1024,65536 dragonfly:32:allreduce:1024
    one-rank:64:mpi-lr:1048576 one-rank:64:mpi-rdb:1024,65536 one-rank:64:mpi-rab:65536,1048576
    one-rank:1024:mpi-rdb:1024,65536,1048576 one-rank:1024:mpi-rab:1024,65536,1048576
    one-rank:1024:mpi-lr:65536,1048576"
quick="ethernet:2:allreduce:4096,1048576 ethernet-small:24:allreduce:65536 slow:4:step:sync one-rank:64:mpi-rab:65536"
# shellcheck disable=SC2086 # words
case ${1:-all} in
all) set -- $all ;;
quick) set -- $quick ;;
esac

cluster() # NAME: its file
{
    for folder in bench/simulate/clusters configs/clusters; do
        [ -e $folder/"$1".yaml ] && { echo $folder/"$1".yaml; return; }
    done
    fail "no cluster $1"
}

strategy() # SHORT: a config with it, as smpirun takes no blanks in an argument
{
    echo "strategy: $(strategy_value "$1")" >"$work/$1"
    echo "$work/$1"
}

strategy_value() # SHORT
{
    case $1 in
    topk | bf16) echo "{name: sync, compress: $1}" ;;
    local) echo "{name: local, period: 8}" ;;
    *) echo "$1" ;;
    esac
}

# What plan calls an algorithm of SMPI.
formula() # ALGORITHM
{
    case $1 in
    lr) echo ring ;;
    rdb) echo recursive-doubling ;;
    rab) echo halving-doubling ;;
    *) echo best ;;
    esac
}

each() # FILE: ranks of a node
{
    sed -n 's/^\(ranks_per_node\|cores\|gpus\): *//p' "$1" | sort -n | head -n 1
}

# One simulation, on one core; its arguments are those of the program.
simulate() # FILE NODES ALGORITHM ARGUMENTS...
{
    file=$1 nodes=$2 algorithm=$3 ranks=$(each "$1")
    shift 3
    if [ -n "$algorithm" ]; then
        { cat "$file"; echo "allreduce: $(formula "$algorithm")"; } >"$work/cluster.yaml"
        file=$work/cluster.yaml
    fi
    "$build/bench/simulate/simulate_platform" "$file" "$nodes" >"$work/platform.xml"
    seq 0 $((nodes - 1)) | sed "s/.*/n&:$ranks/" >"$work/hosts"
    # shellcheck disable=SC2086 # words
    (cd "$work" && smpirun -np $((nodes * ranks)) -platform platform.xml -hostfile hosts $options \
        ${algorithm:+--cfg=smpi/allreduce:$algorithm} "$program" "$file" "$@")
}

point() # CLUSTER:NODES:KIND:LIST: lines of the program
{
    IFS=: read -r name nodes kind list <<WORDS
$1
WORDS
    file=$(realpath "$(cluster "$name")")
    case $kind in
    allreduce) set -- "" allreduce ;;
    mpi-*) set -- "${kind#mpi-}" mpi ;;
    step) set -- "" step ;;
    *) fail "$1: a kind is allreduce, mpi-ALGORITHM or step" ;;
    esac
    algorithm=$1
    set -- "$2"
    if [ "$kind" = step ]; then
        while [ -n "$list" ]; do
            set -- "$@" "$(strategy "${list%%;*}")"
            case $list in *\;*) list=${list#*;} ;; *) list= ;; esac
        done
    else
        # shellcheck disable=SC2046 # words
        set -- "$@" $(echo "$list" | tr ',' ' ')
    fi
    simulate "$file" "$nodes" "$algorithm" "$@"
}

printf '%-15s %6s %-36s %9s %14s %14s %8s\n' cluster ranks what bytes 'predicted, us' 'simulated, us' off
for point; do
    point "$point" >"$work/lines" || fail "$point failed"
    # smpirun may say that all went well
    [ "$(wc -l <"$work/lines")" -eq "$(echo "${point##*:}" | tr ',;' '\n\n' | wc -l)" ] || fail "$point failed"
    awk -v name="${point%%:*}" '{
        n = NF
        what = $1
        for (i = 2; i <= n - 4; i++) what = what " " $i
        printf "%-15s %6d %-36s %9d %14.1f %14.1f %7.1f%%\n", name, $(n - 3), what, $(n - 2), $(n - 1), $n,
            100 * ($(n - 1) / $n - 1) }' "$work/lines" | tee -a "$work/table"
done
awk '{ off = $NF + 0; print off < 0 ? -off : off }' "$work/table" | sort -g | awk '{ v[NR] = $1; within += $1 <= 15 }
    END { printf "off by %.1f%% in the median, %.1f%% at most; %d of %d points within 15%%\n", v[int((NR + 1) / 2)],
        v[NR], within, NR }'
[ -z "$PERCENT" ] || awk -v most="$PERCENT" '{ off = $NF + 0; bad += off > most || off < -most }
    END { exit bad > 0 }' "$work/table" || fail "a point is off by more than $PERCENT%"
