#!/bin/sh
# network.sh BUILD [RUNS [SEED]] - faults of the network in runs over hosts that are namespaces of
# this machine (scripts/hosts.sh): links that are slow, lossy, cut or half cut, hosts that vanish,
# freeze or have another time. Run i is a function of SEED + i. Each must continue, or end in time
# with a cause, as docs/supervision.md says, leave no process, and reach the bits of an undisturbed
# run, resumed if it has ended. KIND=name: this fault alone (partition-5min only so). Exit code 77:
# this machine cannot.
set -eu
build=$(realpath "$1")
cohort=$build/cohort
runs=${2:-24}
first=${3:-1}
. "$(dirname "$0")/../../scripts/hosts.sh"
why=$(hosts_missing)
[ -c /dev/net/tun ] || why="needs /dev/net/tun"
command -v bridge >/dev/null || why="needs bridge (Debian: iproute2)"
[ -z "$why" ] || {
    echo "skipped: $why"
    exit 77
}
kinds_of_mpi=
for mpi in openmpi mpich; do
    "$cohort" doctor | grep -q "^ok *$mpi " && kinds_of_mpi="$kinds_of_mpi $mpi"
done
[ -n "$kinds_of_mpi" ] || {
    echo "skipped: no MPI"
    exit 77
}
unset COHORT_MPI
work=$(mktemp -d "${TMPDIR:-/tmp}/cohort-network-XXXXXX")
hosts_all=
trap 'hosts_stop; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0
cd "$work"

timeout=8    # of runs that reach it; of the others 60
end_most=60  # seconds from the fault to the end of a run that it ends: timeout, launcher, margin
left_most=40 # until no process is left, from the end or, if that is later, the repair of the network
steps=2000  # the fault has to come before the end, however fast they are

now()
{
    awk '{ print int($1) }' /proc/uptime
}

draw() # N: sets $drawn in 0 ... N - 1
{
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    drawn=$((seed / 65536 % $1))
}

pick() # WORD...: sets $picked
{
    draw $#
    shift $drawn
    picked=$1
}

config()
{
    cat >config.yaml <<YAML
model: {name: mlp, hidden: [64]}
data: {name: synthetic, shape: [1, 12, 12], classes: 10, samples: 2048}
batch: 32
epochs: 1000
max_steps: $steps
evaluate: false
log_every: 1
threads: 1
shards: 4
timeout: $1
on_failure: $2
checkpoint: {every: 20 steps, keep: 2}
optimizer: {name: sgd, lr: 0.01, momentum: 0.9}
YAML
}

weights() # DIR
{
    grep '"weights_sha256"' "$1/summary.json" 2>/dev/null || echo "none"
}

step()
{
    last=$(tail -c 400 run/metrics.jsonl 2>/dev/null | grep -o '"step":[0-9]*' | tail -n 1)
    echo "${last#*:}" | grep . || echo 0
}

# ---- faults ----

# What a fault leads to: "continues" whatever on_failure says; "ends", as on_failure says.
# "either": it depends on when the network is whole again.
all_kinds="delay loss reorder rate flapping partition-5s slow-host clock-skew \
partition cut-one-way two-apart vanishes frozen-host cut-at-start cut-at-end launcher-vanishes"
leads_to()
{
    case $1 in
    partition | cut-one-way | two-apart | vanishes | frozen-host) echo ends ;;
    cut-at-start | cut-at-end | launcher-vanishes) echo either ;;
    *) echo continues ;;
    esac
}

strike()
{
    case $kind in
    delay) hosts_shape "$victim" "delay 40" "jitter 20" ;;
    loss) hosts_shape "$victim" "loss $((2 + seed % 9))" ;;
    reorder) hosts_shape "$victim" "delay 1" "reorder 25" "double 5" ;;
    rate) hosts_rate "$victim" 2mbit ;;
    flapping)
        for _ in 1 2 3 4 5 6 7 8; do
            hosts_unplug "$victim"
            sleep 0.3
            hosts_plug "$victim"
            sleep 0.5
        done
        ;;
    slow-host)
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            hosts_freeze "$victim"
            sleep 0.4
            hosts_thaw "$victim"
            sleep 0.1
        done
        ;;
    partition* | cut-at-*) hosts_unplug "$victim" ;;
    cut-one-way)
        draw 2
        hosts_shape "$victim" "cut $([ "$drawn" = 0 ] && echo to || echo from)"
        ;;
    two-apart) hosts_part n2 n3 ;;
    vanishes | launcher-vanishes) hosts_power_off "$victim" ;;
    frozen-host) hosts_freeze "$victim" ;;
    esac
}

repair()
{
    case $kind in
    delay | loss | reorder | cut-one-way)
        hosts_shape "$victim" "delay 0" "jitter 0" "loss 0" "reorder 0" "double 0" "cut none" say
        ;;
    rate) hosts_rate "$victim" 10gbit ;;
    partition* | cut-at-*) hosts_plug "$victim" ;;
    two-apart) hosts_join ;;
    frozen-host) hosts_thaw "$victim" ;;
    esac
}

# Seconds that it lasts; 0: for ever.
lasts()
{
    case $kind in
    delay | loss | reorder | rate) echo 8 ;;
    partition-5s) echo 5 ;;
    partition-5min) echo 300 ;;
    partition | cut-one-way | two-apart | frozen-host) echo $((timeout + 5 + seed % 20)) ;;
    cut-at-*) echo $((5 + seed % 30)) ;;
    *) echo 0 ;;
    esac
}

# ---- a run ----

choose() # SEED: sets kind, mode, mpi, hosts, ranks, victim, at
{
    seed=$((($1 * 7919 + 12345) % 2147483648))
    draw 2 && draw 2 && draw 2
    kind=${KIND:-}
    # shellcheck disable=SC2086 # words
    [ -n "$kind" ] || kind=$(echo $all_kinds | cut -d' ' -f $(($1 % $(echo $all_kinds | wc -w) + 1)))
    pick stop respawn shrink
    mode=$picked
    # shellcheck disable=SC2086
    pick openmpi $kinds_of_mpi
    mpi=$picked
    pick n1:1,n2:1,n3:1=3 n1:2,n2:1,n3:1=4 n2:1,n3:1=2 n1:1,n2:2,n3:1=4
    hosts=${picked%=*}
    ranks=${picked#*=}
    pick n2 n3
    victim=$picked
    [ $kind != launcher-vanishes ] || victim=n1
    draw 200
    at=$((20 + drawn))
    [ $kind != cut-at-start ] || at=-1
    [ $kind != cut-at-end ] || at=$((steps - 300))
    hosts_wire=$build/tests/network/wire
    case $kind in flapping | partition*) hosts_wire= ;; esac # a veth, whose carrier is lost
    hosts_seed=$1
    hosts_skew=$build/tests/network/skew.so
    hosts_skew_n1=0 hosts_skew_n2=0 hosts_skew_n3=0
    [ $kind != clock-skew ] || eval "hosts_skew_$victim=$((3600 + drawn * 100))"
}

begin()
{
    run_most=280 # seconds
    case $kind-$(leads_to $kind) in
    partition-5min-*)
        config 600 $mode
        run_most=900
        ;;
    *-continues) config 60 $mode ;;
    *) config $timeout $mode ;;
    esac
    rm -rf run hosts log
    hosts_start "$work/hosts" 3 || return 1
    if [ $mpi = openmpi ]; then
        launcher="$(command -v mpiexec.openmpi || echo mpiexec) --oversubscribe -x ASAN_OPTIONS \
--mca plm_rsh_agent $work/hosts/ssh"
    else
        launcher="mpiexec.mpich -launcher ssh -launcher-exec $work/hosts/ssh -hosts {hosts}"
    fi
    hosts_on n1 env COHORT_MPI="$mpi" "$cohort" train config.yaml -n "$ranks" --run-dir run \
        --mpiexec "$launcher" --hosts "$hosts" >log 2>&1 &
    job=$!
    began=$(now)
    if [ $kind = cut-at-start ]; then
        draw 15
        sleep "$(echo "$drawn" | awk '{ print $1 / 10 }')"
    fi
    until [ "$(step)" -ge $at ]; do
        kill -0 $job 2>/dev/null || return 1
        [ $(($(now) - began)) -lt $run_most ] || return 1
        sleep 0.05
    done
}

# Until the run has ended; sets $code, $took (seconds from the fault). The fault is repaired on the way.
finish()
{
    struck=$(now)
    at_fault=$(step)
    strike
    until=$(lasts)
    repaired=$((until == 0))
    next=
    while kill -0 $job 2>/dev/null; do
        if [ $repaired = 0 ] && [ $(($(now) - struck)) -ge "$until" ]; then
            repair
            repaired=1
        fi
        [ -n "$next" ] || [ "$(grep -c '"event":"restart"' run/metrics.jsonl 2>/dev/null)" = 0 ] ||
            next=$(($(now) - struck))
        [ $(($(now) - struck)) -lt $run_most ] || return 1
        sleep 0.1
    done
    took=$(($(now) - struck))
    code=0
    wait $job || code=$?
    [ $repaired = 1 ] || repair
    left_since=$(now)
    for host in n1 n2 n3; do
        while [ -n "$(hosts_init $host)" ] && hosts_on $host pgrep -x cohort >left 2>/dev/null; do
            [ $(($(now) - left_since)) -lt $left_most ] || {
                hosts_on $host ps -ef >>log
                return 2
            }
            sleep 0.2
        done
    done
    left=$(($(now) - left_since))
}

# How it ended, in a word; a line of the log must say why.
explained()
{
    if [ "$code" = 0 ]; then
        grep -q '"restarts": [1-9]' run/summary.json && echo restarted || echo continued
        return
    fi
    [ $kind != launcher-vanishes ] || {
        echo gone
        return
    }
    [ "$code" = 4 ] || return 1
    case $(grep '^cohort: error' log | grep -v 'see above' | tail -n 1) in
    *"timed out after "*" ms, waiting in "* | *" died in or after step "* | *" died before "* | \
        *"has waited "*" s for MPI"* | *"MPI failed in "* | *"it waits for "* | \
        *" had not begun "*": a host or its network does not answer"*) echo ended ;;
    *) return 1 ;;
    esac
}

# Where each rank was, and on which host, is in the log of a run that did not get on.
reported()
{
    [ "$(leads_to $kind)" = ends ] || return 0
    grep -q 'rank.* waited for others, ' log || return 1
    r=0
    while [ $r -lt "$ranks" ]; do
        grep -q "^cohort: warning:   rank $r (process [0-9]* on n[123])" log || return 1
        r=$((r + 1))
    done
}

expected() # OUTCOME
{
    case $(leads_to $kind)-$mode-$1 in
    continues-*-continued | either-*) ;;
    ends-stop-ended | ends-shrink-restarted | ends-respawn-restarted) ;;
    # What is not whole again when it starts anew fails once more in the same step.
    ends-respawn-ended | ends-shrink-ended) [ $kind != vanishes ] || [ "$mode" = respawn ] ;;
    *) return 1 ;;
    esac
}

failed() # WHY
{
    echo "FAILED: $line: $1"
    sed 's/^/  | /' log | tail -n 25
    keep=${TMPDIR:-/tmp}/cohort-network-failed-$run
    rm -rf "$keep"
    cp -r "$work" "$keep" 2>/dev/null || :
    echo "  kept: $keep"
    line="$line failed"
}

one() # SEED
{
    run=$1
    choose "$1"
    line="seed $1 $kind $mode $mpi $hosts $victim"
    took=0 left=0 next=
    begin || { failed "does not begin"; return; }
    finish || {
        [ $? = 1 ] && failed "hangs: not over $run_most s after the fault" ||
            failed "a process is left $left_most s after its end, on $host"
        return
    }
    outcome=$(explained) || { failed "exit code $code, and no explanation"; return; }
    expected "$outcome" || { failed "it has $outcome"; return; }
    reported || { failed "no report of where the ranks were"; return; }
    [ "$outcome" != ended ] || [ $mode != stop ] || [ $took -le $end_most ] ||
        { failed "ended after $took s"; return; }
    # Ranks that have lost their launcher may still have come to the end.
    if [ $code != 0 ] && [ "$(weights run)" != "$whole" ]; then
        "$cohort" train config.yaml --run-dir run --resume >>log 2>&1 ||
            [ ! -e run/config.yaml ] || { failed "cannot be resumed"; return; }
        [ -e run/config.yaml ] || "$cohort" train config.yaml --run-dir run >>log 2>&1
        after=$(grep -o 'continues after step [0-9]*' log | tail -n 1 | grep -o '[0-9]*$' || echo 0)
        [ "$((after + 21))" -ge "$at_fault" ] ||
            { failed "resumed after step $after, the fault was in step $at_fault"; return; }
    fi
    [ "$(weights run)" = "$whole" ] || { failed "other bits"; return; }
    line="$line $outcome"
}

config 60 stop
"$cohort" train config.yaml --run-dir whole >log 2>&1 || {
    cat log >&2
    exit 1
}
whole=$(weights whole)
i=0
while [ $i -lt "$runs" ]; do
    one $((first + i))
    printf '%s took %s left %s\n' "$line" "$took" "$left" | tee -a lines
    hosts_stop
    wait 2>/dev/null || :
    i=$((i + 1))
done

awk '
BEGIN { printf "%-18s %5s %7s %10s %10s %6s %13s\n", "fault", "runs", "failed", "continued",
    "restarted", "ended", "slowest end" }
{
    if (!($3 in n)) order[++kinds] = $3
    n[$3]++
    count[$3, $8]++
    if ($8 == "ended" && $10 > slow[$3]) slow[$3] = $10
    bad += $8 == "failed"
}
END {
    for (k = 1; k <= kinds; k++) {
        f = order[k]
        printf "%-18s %5d %7d %10d %10d %6d %11s s\n", f, n[f], count[f, "failed"],
            count[f, "continued"], count[f, "restarted"], count[f, "ended"] + count[f, "gone"],
            slow[f] ? slow[f] : "-"
    }
    exit bad > 0
}' lines
