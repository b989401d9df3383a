#!/bin/sh
# hosts.sh BUILD [quick] - training over several hosts: each a set of namespaces of this machine with
# a network, a name, processes and /dev/shm of its own, reached by ssh (scripts/hosts.sh). The MPI is
# the one that COHORT_MPI names, or Open MPI. quick: some bits alone. Exit code 77: this machine cannot.
#
# With 8 shards the weights, losses and accuracies of every run must be, to the last bit, those of
# one process: a rank with other weights would measure another loss. Runs in which a rank, a cable or
# a host is lost must end in time, say who it was, and go on from what they have saved.
set -eu
cohort=$(realpath "$1")/cohort
how=${2:-all}
. "$(dirname "$0")/../../scripts/hosts.sh"
why=$(hosts_missing)
[ -z "$why" ] || {
    echo "skipped: $why"
    exit 77
}
mpi=${COHORT_MPI:-openmpi}
"$cohort" doctor | grep -q "^ok *$mpi " || {
    echo "skipped: $mpi or Cohort's module for it is not here"
    exit 77
}
unset COHORT_MPI
work=$(mktemp -d "${TMPDIR:-/tmp}/cohort-hosts-XXXXXX")
trap 'hosts_stop; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0
cd "$work"
hosts_start "$work/hosts" 3

if [ $mpi = openmpi ]; then
    mpiexec="$(command -v mpiexec.openmpi || echo mpiexec) -x ASAN_OPTIONS --mca plm_rsh_agent $work/hosts/ssh"
    host_key=--host
else
    mpiexec="mpiexec.mpich -launcher ssh -launcher-exec $work/hosts/ssh"
    host_key=-hosts
fi

fail()
{
    echo "hosts: failed: $*" >&2
    [ ! -f "$work/log" ] || tail -n 30 "$work/log" >&2
    exit 1
}

pass()
{
    printf '%-58s ok\n' "$*"
}

# config NAME TEXT
config()
{
    cat >"$1.yaml" <<YAML
model: {name: mnist-net, batch_norm: true}
data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 500}
batch: 96
timeout: 60
threads: 1
$2
YAML
}

# over HOSTS RANKS COMMAND...: from the first host on; what it says goes to the log
over()
{
    over_hosts=$1
    over_ranks=$2
    shift 2
    # shellcheck disable=SC2086 # words of a command
    hosts_on n1 timeout 300 $mpiexec $host_key "$over_hosts" -n "$over_ranks" "$@" >log 2>&1
}

# What a run has come to, to the bit.
figures()
{
    grep -E '"(weights_sha256|train_loss|train_accuracy|test_loss|test_accuracy|steps)"' \
        "$1/summary.json" || fail "$1 is not complete"
}

# same TEXT DIR AS: the runs in both folders came to the same
same()
{
    [ "$(figures "$2")" = "$(figures "$3")" ] || fail "$1: $2 is not $3"
    pass "$1"
}

# ---- the same bits ----

config whole 'epochs: 2
shards: 8'
"$cohort" train whole.yaml --run-dir one >log 2>&1 || fail "one process"
placements='n1:2,n2:1=3'
[ "$how" = quick ] || placements='n1:1,n2:1=2 n1:2,n2:2=4 n1:1,n2:1,n3:1=3 n1:2,n3:1=3'
for placed in $placements; do
    rm -rf run
    over "${placed%=*}" "${placed#*=}" "$cohort" train whole.yaml --run-dir run ||
        fail "ranks on $placed"
    grep -q "\"ranks\": ${placed#*=}," run/summary.json || fail "not ${placed#*=} ranks"
    grep -q "${placed#*=} ranks (sync over mpi)" log || fail "the log"
    grep -q '"event":"end"' run/metrics.jsonl || fail "no end in metrics.jsonl"
    same "${placed#*=} ranks on ${placed%=*}: as one process" run one
done
[ "$how" != quick ] || exit 0

# ---- the rest of a run ----

over n1:1,n2:1 2 "$cohort" eval run --json && grep '^{' log >evaluated || fail "eval"
"$cohort" eval one --json >log 2>&1 || fail "eval in one process"
cmp -s log evaluated || fail "eval on two hosts differs: $(cat evaluated)"
pass "eval on two hosts: as in one process"

for compress in bf16 topk '{name: powersgd, rank: 2}'; do
    rm -rf run shm
    config compress "epochs: 2
strategy: {name: sync, compress: $compress}"
    "$cohort" train compress.yaml -n 3 --run-dir shm >log 2>&1 || fail "compress: $compress"
    over n1:1,n2:1,n3:1 3 "$cohort" train compress.yaml --run-dir run ||
        fail "compress: $compress on hosts"
    same "compress: $compress on three hosts: as one host" run shm
done

rm -rf run
config parts 'epochs: 2
shards: 8
optimizer: adam
strategy: {name: sync, update: parts}'
"$cohort" train parts.yaml --run-dir adam >log 2>&1 || fail "one process"
over n1:2,n2:2 4 "$cohort" train parts.yaml --run-dir run || fail "update: parts"
same "update: parts on two hosts of two ranks: as one process" run adam

# ---- what can be wrong from host to host ----

for i in 1 2; do
    hosts_on n$i cp whole.yaml /dev/shm/config.yaml
done
hosts_on n2 sed -i 's/^batch: .*/batch: 64/' /dev/shm/config.yaml
over n1:1,n2:1 2 "$cohort" train /dev/shm/config.yaml --run-dir differ && fail "unequal configs" || :
grep -q 'error: .*batch: 64' log || fail "unequal configs: no word of it"
pass "configs that differ from host to host: refused"

# ---- a run at work, and losses ----

# begin NAME HOSTS RANKS ARGUMENT...: a long run under `cohort train --mpiexec`, until it has saved
begin()
{
    name=$1
    hosts=$2
    ranks=$3
    shift 3
    rm -rf "$name"
    hosts_on n1 "$cohort" train long.yaml -n "$ranks" --run-dir "$name" --mpiexec "$launcher" \
        --hosts "$hosts" "$@" >log 2>&1 &
    job=$!
    await_checkpoint
}

# Of the job at work.
await_checkpoint()
{
    tries=0
    until [ -n "$(ls "$name/checkpoints" 2>/dev/null)" ]; do
        kill -0 $job 2>/dev/null || fail "$name: ended before its time"
        tries=$((tries + 1))
        [ $tries -lt 3000 ] || fail "$name: does not get on"
        sleep 0.1
    done
    began=$(date +%s)
}

# end CODE: the run ends, as that, in time also on a busy machine
end()
{
    while kill -0 $job 2>/dev/null; do
        [ $(($(date +%s) - began)) -le 300 ] || fail "$name: still there after 300 s"
        sleep 0.2
    done
    code=0
    wait $job || code=$?
    [ $code -eq "$1" ] || fail "$name: exit code $code instead of $1"
    for host in n1 n2 n3; do
        [ -z "$(hosts_on $host pgrep -x cohort 2>/dev/null)" ] || fail "$name: a rank is left on $host"
    done
}

# says PATTERN: the last line of the log
says()
{
    grep '^cohort: ' log | tail -n 1 | grep -q "error: .*$1" || fail "$name: does not say $1"
}

# dead RANK RANKS: that one has died. MPICH's mpiexec kills the others so that nobody knows which was the first.
dead()
{
    [ $mpi = openmpi ] && says "$1 has died" || says "one or more of $2 ranks have died"
}

config long 'epochs: 120
shards: 8
checkpoint: {every: 20 steps, keep: 2}'
case $mpi in
openmpi) launcher=$mpiexec ;;
*) launcher="$mpiexec -hosts {hosts}" ;;
esac
"$cohort" train long.yaml --run-dir long >log 2>&1 || fail "one process"

begin asked n1:1,n2:1 2 -s epochs=100000
hosts_on n1 "$cohort" ctl asked status >status || fail "ctl status"
grep -q 'step [0-9]* of .*, 2 ranks' status || fail "ctl status: $(cat status)"
hosts_on n1 "$cohort" ctl asked stop >status || fail "ctl stop"
end 0
grep -q 'stopped after step [0-9]*: asked to stop' log || fail "ctl stop: the log"
pass "cohort ctl on the host of rank 0: status, stop"

begin killed n1:1,n2:1,n3:1 3
hosts_on n2 pkill -KILL -x cohort
end 4
dead 'rank 1 (process [0-9]* on n2)' 3
over n1:2,n2:2 4 "$cohort" train long.yaml --run-dir killed --resume || fail "resume"
same "a rank is killed: named, and resumed on four ranks" killed long

begin respawned n1:1,n2:1,n3:1 3 -s on_failure=respawn
hosts_on n3 pkill -KILL -x cohort
end 0
grep -q '"restarts": 1' respawned/summary.json || fail "restarts are not counted"
same "a rank is killed: started again" respawned long

begin told n1:1,n2:1 2
hosts_on n1 pkill -TERM -o -x cohort
end 143
says 'terminated after step [0-9]*, which is saved'
over n1:1,n3:1 2 "$cohort" train long.yaml --run-dir told --resume || fail "resume"
same "SIGTERM: saved, and resumed on another host" told long

begin off n1:1,n2:1,n3:1 3 -s timeout=10
hosts_power_off n3
end 4
dead 'rank 2 (process [0-9]* on n3)' 3
over n1:2,n2:1 3 "$cohort" train long.yaml --run-dir off --resume || fail "resume"
same "a host is switched off: named, and resumed without it" off long

hosts_power_on n3
begin fewer n1:1,n2:1,n3:1 3 -s on_failure=shrink -s timeout=10
hosts_power_off n3
end 0
grep -q '"ranks": 2,' fewer/summary.json || fail "fewer: not on two ranks"
same "a host is switched off: the others go on without it" fewer long

hosts_power_on n3
rm -rf alone
over n1:1,n2:1,n3:1 3 "$cohort" train long.yaml --run-dir alone -s epochs=100000 -s timeout=10 &
job=$!
name=alone
await_checkpoint
hosts_power_off n3
end "$([ $mpi = mpich ] && echo 4 || echo 137)"
grep -q 'rank [01] timed out after [0-9]* ms, waiting in [a-z_]* for rank 2 (n3)' log ||
    fail "alone: no word of rank 2"
[ $mpi = mpich ] || grep -q 'error: mpiexec had not ended 15 s after' log || fail "alone: the log"
pass "a host is switched off under mpiexec alone: an end in time"

# The folder is still seen by all, so that each side of the cut says of the other that it is late.
hosts_power_on n3
begin cut n1:1,n2:1,n3:1 3 -s timeout=10
hosts_unplug n3
end 4
says 'timed out after [0-9]* ms, waiting in [a-z_]* for rank'
hosts_plug n3
over n1:1,n2:1 2 "$cohort" train long.yaml --run-dir cut --resume || fail "resume"
same "a cable is cut: an end in time, and resumed" cut long

begin apart n1:1,n2:1,n3:1 3 -s on_failure=shrink -s timeout=10
hosts_unplug n3
end 0
hosts_plug n3
grep -q '"ranks": 2,' apart/summary.json || fail "apart: not on two ranks"
same "a cable is cut: the others go on without that host" apart long
echo "hosts: all passed"
