#!/bin/sh
# plan.sh BUILD [CELL...] - what `cohort plan` predicts beside what the same run takes: on this
# machine with one and two ranks, and on two and four hosts made of namespaces (scripts/hosts.sh),
# whose cables are held to 1 Gbit/s and 100 Mbit/s. A cell is NETWORK:PLACE:STRATEGY; "quick" is four
# of them, "all" or no cell all of them. Hosts need root; what a cell cannot have is left out, saying
# so. Exit code 77: nothing could be run.
#
#   ROUNDS=3     plans and runs of a cell, in turns, as a machine is faster at one time than at another;
#                shown are medians, and of how far each plan is off
#   LINKS=1      show what was measured of the links
#   PERCENT=     exit 1 where a cell is off by more
#
# Nothing is fitted to the runs that are predicted: kernels are timed by `cohort plan` itself, and
# links by `cohort bench comm` before any training.
set -eu
cd "$(dirname "$0")/.."
. bench/lib.sh
. scripts/hosts.sh
cohort=$(realpath "$1")/cohort
shift
ROUNDS=${ROUNDS:-3}
PERCENT=${PERCENT:-}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d "${TMPDIR:-/tmp}/cohort-plan-bench-XXXXXX")
hosts_all= hosts_dir=$work/hosts
trap 'hosts_stop; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

networks="mnist-net resnet9 resnet18"
places="one two 1gbit-2 100mbit-2 1gbit 100mbit"
strategies="sync local topk bf16"
all=
for network in $networks; do
    for place in $places; do
        for strategy in $strategies; do
            [ $place != one ] || [ $strategy = sync ] || continue
            all="$all $network:$place:$strategy"
        done
    done
done
# shellcheck disable=SC2086 # words
[ "${1:-all}" != all ] || set -- $all
[ "$1" != quick ] || set -- mnist-net:one:sync mnist-net:two:sync mnist-net:two:local \
    mnist-net:100mbit-2:sync

config() # NETWORK
{
    data='{name: synthetic, shape: [3, 32, 32], classes: 10, samples: 25600}'
    model=$1 batch=64
    case $1 in
    mnist-net) data='{name: synthetic, shape: [1, 28, 28], classes: 10, samples: 25600}' ;;
    resnet18) model='{name: resnet18, stem: cifar}' batch=8 ;;
    esac
    cat >"$work/$1.yaml" <<YAML
model: $model
data: $data
batch_per_rank: $batch
epochs: 100000
threads: 1
evaluate: false
checkpoint: off
YAML
}

keys() # STRATEGY
{
    case $1 in
    sync) echo sync ;;
    local) echo '{name: local, period: 8}' ;;
    topk | bf16) echo "{name: sync, compress: $1}" ;;
    esac
}

steps() # NETWORK PLACE STRATEGY: of local, a quarter of them in whole periods; more where they are short
{
    case $1:$2:$3 in
    resnet18:*:local) echo 32 ;;
    resnet18:100mbit*) echo 8 ;;
    resnet18:*) echo 32 ;;
    resnet9:100mbit*) echo 64 ;;
    resnet9:*) echo 160 ;;
    *) echo 960 ;;
    esac
}

# A host has one core of this machine, or its part of one.
core() # writes $work/core, which runs a command there
{
    cat >"$work/core" <<SH
#!/bin/sh
host=\$(hostname)
cores=$(cores "$(nproc)")
exec taskset -c "\$(echo "\$cores" | cut -d, -f\$(((\${host#n} - 1) % $(nproc) + 1)))" "\$@"
SH
    chmod +x "$work/core"
}

over() # HOSTS COMMAND...: one rank on each, over Open MPI's TCP
{
    [ -e "$work/core" ] || core
    list=$(seq "$1" | sed 's/^/n/' | tr '\n' ',')
    over_ranks=$1
    shift
    hosts_on n1 timeout 200 mpiexec.openmpi --mca plm_rsh_agent "$work/hosts/ssh" --mca pml ob1 \
        --mca btl tcp,self --bind-to none --host "${list%,}" -n "$over_ranks" "$work/core" "$@"
}

# ---- links, before any training ----

seconds() # FILE BYTES: of the line for that size
{
    sed -n "s/.*\"bytes\": $2,.*\"latency_us\": \([0-9.e+-]*\).*/\1/p" "$1"
}

comm() # FILE HOSTS OP
{
    over "$2" "$cohort" bench comm --op "$3" --in-place --min-bytes 2097152 --max-bytes 4194304 >"$1"
}

# The median of three: a single one has been 20 times as long.
latency() # HOSTS
{
    for turn in 1 2 3; do
        over "$1" "$cohort" bench comm --op allreduce --in-place --min-bytes 1024 --max-bytes 1024 \
            >"$work/latency"
        seconds "$work/latency" 1024
    done | sort -g | sed -n 2p
}

# How many hosts a place has: "1gbit" four, "1gbit-2" two.
hosts_of() # PLACE
{
    case $1 in
    *-2) echo 2 ;;
    *) echo 4 ;;
    esac
}

# By sums over the hosts of the place: bandwidth by what 4 MiB take longer than 2, of which each host
# sends 2 (H - 1) / H (larger ones can be more than the shaper's queue holds, and are sent again);
# latency by 1 KiB, which go in one exchange; a core's time by the same without a rate. Of the latency
# that is measured, one is that of the descriptors, one that of the exchange, and a tenth that of each
# message. Nodes of less than a core share this machine.
link() # PLACE: writes $work/PLACE.yaml
{
    h=$(hosts_of "$1")
    [ -e "$work/hosts" ] || hosts_start "$work/hosts" 4
    for host in n1 n2 n3 n4; do
        hosts_rate $host 100gbit
    done
    [ -e "$work/free-$h" ] || comm "$work/free-$h" "$h" allreduce
    for host in n1 n2 n3 n4; do
        hosts_rate $host "${1%-2}"
    done
    comm "$work/held" "$h" allreduce
    awk -v a="$(latency "$h")" -v b="$(seconds "$work/held" 2097152)" \
        -v c="$(seconds "$work/held" 4194304)" -v d="$(seconds "$work/free-$h" 2097152)" \
        -v e="$(seconds "$work/free-$h" 4194304)" -v name="$1" -v h="$h" -v cores="$(nproc)" 'BEGIN {
            sent = 2097152 * 2 * (h - 1) / h
            a /= 2 + 2 * (h - 1) / 10
            printf "name: namespaces, %s\nnodes: %d\ncores: %g\nlinks:\n  across:\n", name, h, cores / h - 0.001
            printf "    bandwidth: %.6g MB/s\n    latency: %.4g us\n", sent / (c - b), a
            printf "    cpu: %.4g s/GB\n    burst: 256 KiB\n", (e - d) / sent * 1e3 * cores / h }' \
        >"$work/$1.yaml"
    [ -z "${LINKS:-}" ] || cat "$work/$1.yaml"
}

here() # PLACE: ranks of this machine
{
    n=$([ "$1" = one ] && echo 1 || echo 2)
    "$cohort" bench comm -n 2 --op allreduce --in-place --min-bytes 1024 --max-bytes 4194304 \
        >"$work/comm"
    awk -v a="$(seconds "$work/comm" 1024)" -v b="$(seconds "$work/comm" 2097152)" \
        -v c="$(seconds "$work/comm" 4194304)" -v n="$n" 'BEGIN {
            printf "name: this machine\nnodes: 1\ncores: %d\nranks_per_node: %d\nlinks:\n", '"$(nproc)"', n
            printf "  inside: {bandwidth: %.6g MB/s, latency: %.4g us}\n", 2097152 / (c - b), a / 2
        }' >"$work/$1.yaml"
}

# ---- predicted, and run ----

predict() # NETWORK PLACE STRATEGY: milliseconds of a step
{
    case $2 in
    one) ranks=1 ;;
    two) ranks=2 ;;
    *) ranks=$(hosts_of "$2") ;;
    esac
    case $1 in # about as long as the runs are
    mnist-net) steps=800 ;;
    resnet9) steps=200 ;;
    *) steps=20 ;;
    esac
    "$cohort" plan "$work/$1.yaml" --cluster "$work/$2.yaml" --json -n $ranks --steps $steps \
        --strategies "$(keys "$3")" >"$work/plan.json" || fail "plan failed for $1 on $2"
    sed -n 's/.*"step_ms": \([0-9.e+-]*\).*/\1/p' "$work/plan.json" | head -n 1
}

# Seconds of a step over the run but its first quarter, in whole rounds of `local`.
measured() # RUN STEPS
{
    sed -n 's/.*"event":"step".*"step":\([0-9]*\),.*"train_seconds":\([0-9.e+-]*\),.*/\1 \2/p' \
        "$1/metrics.jsonl" | awk -v steps="$2" '
            $1 == steps / 4 { from = $2 } $1 == steps { to = $2 }
            END { printf "%.5g\n", (to - from) * 1000 / (steps * 3 / 4) }'
}

train() # NETWORK PLACE STRATEGY: milliseconds of a step
{
    n=$(steps "$1" "$2" "$3")
    rm -rf "$work/run"
    set -- "$1" "$2" "$cohort" train "$work/$1.yaml" --quiet --run-dir "$work/run" \
        -s "strategy=$(keys "$3")" -s "max_steps=$n" -s "log_every=$((n / 4))"
    place=$2
    shift 2
    case $place in
    one) "$@" -n 1 ;;
    two) "$@" -n 2 ;;
    *)
        for host in n1 n2 n3 n4; do
            hosts_rate $host "${place%-2}"
        done
        over "$(hosts_of "$place")" "$@"
        ;;
    esac >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "a run failed"; }
    measured "$work/run" "$n"
}

why=$(hosts_missing)
ran=0
machine
printf '%-10s %-8s %-8s %14s %13s %8s\n' network place strategy 'predicted, ms' 'measured, ms' off
for cell; do
    network=${cell%%:*} strategy=${cell##*:} place=${cell#*:}
    place=${place%:*}
    case $place in
    one | two) [ -e "$work/$place.yaml" ] || here "$place" ;;
    *)
        [ -z "$why" ] || { echo "$cell is left out: $why"; continue; }
        [ -e "$work/$place.yaml" ] || link "$place"
        ;;
    esac
    [ -e "$work/$network.yaml" ] || config "$network"
    rm -f "$work/predicted" "$work/times"
    for _ in $(seq "$ROUNDS"); do
        predict "$network" "$place" "$strategy" >>"$work/predicted"
        train "$network" "$place" "$strategy" >>"$work/times"
    done
    ran=$((ran + 1))
    off=$(paste "$work/predicted" "$work/times" | awk '{ print 100 * ($1 / $2 - 1) }' | median)
    printf '%-10s %-8s %-8s %14.2f %13.2f %7.1f%%\n' "$network" "$place" "$strategy" \
        "$(median <"$work/predicted")" "$(median <"$work/times")" "$off" | tee -a "$work/table"
done
[ $ran -gt 0 ] || exit 77
awk '{ off = $NF + 0; print off < 0 ? -off : off }' "$work/table" | sort -g | awk '{ v[NR] = $1 }
    END { printf "off by %.1f%% in the median, %.1f%% at most, of %d cells\n", v[int((NR + 1) / 2)], v[NR], NR }'
[ -z "$PERCENT" ] || awk -v most="$PERCENT" '{ off = $NF + 0; bad += off > most || off < -most }
    END { exit bad > 0 }' "$work/table" || fail "a cell is off by more than $PERCENT%"
