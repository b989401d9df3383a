#!/bin/sh
# slurm.sh BUILD - training under a real Slurm: its controller and four of its nodes, each a set of
# namespaces of this machine (scripts/hosts.sh), with munge. Exit code 77: this machine cannot.
#
# With 8 shards the weights, losses and accuracies of every run must be, to the last bit, those of
# one process. A job that reaches its time limit or loses a node must continue by itself.
set -eu
cohort=$(realpath "$1")/cohort
. "$(dirname "$0")/../../scripts/hosts.sh"
why=$(hosts_missing)
for tool in slurmctld slurmd munged srun sbatch; do
    PATH=$PATH:/usr/sbin command -v $tool >/dev/null ||
        why="needs $tool (Debian: slurmctld, slurmd, slurm-client, munge)"
done
[ -z "$why" ] || {
    echo "skipped: $why"
    exit 77
}
PATH=$PATH:/usr/sbin
kinds=
for kind in openmpi mpich; do
    "$cohort" doctor | grep -q "^ok *$kind " && kinds="$kinds $kind"
done
work=$(mktemp -d "${TMPDIR:-/tmp}/cohort-slurm-XXXXXX")
trap 'hosts_stop; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0
cd "$work"
hosts_start "$work/hosts" 4

fail()
{
    echo "slurm: failed: $*" >&2
    tail -n 30 log ./*.log >&2 2>/dev/null || :
    exit 1
}

pass()
{
    printf '%-66s ok\n' "$*"
}

# ---- the cluster ----

head -c 1024 /dev/urandom >munge.key
chmod 600 munge.key
mkdir state
# Each host has a /run of its own, but one /tmp with the others.
echo 'PMIxCliTmpDirBase=/run' >mpi.conf
cat >slurm.conf <<CONF
ClusterName=cohort
SlurmctldHost=n1
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_min_interval=1000000,bf_interval=5
ReturnToService=2
SlurmdTimeout=15
KillWait=30
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool.%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/%n.log
NodeName=n[1-4] CPUs=2 RealMemory=2000
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF="$work/slurm.conf"

# daemon HOST COMMAND...: of that host, and of this shell
daemon()
{
    daemon_host=$1
    shift
    hosts_on "$daemon_host" setpriv --pdeathsig KILL "$@" >"$daemon_host.$1.log" 2>&1 &
}

await() # TEXT SECONDS COMMAND...: until that succeeds
{
    await_text=$1
    await_left=$(($2 * 5))
    shift 2
    until "$@" >/dev/null 2>&1; do
        await_left=$((await_left - 1))
        [ $await_left -gt 0 ] || fail "$await_text: not in time"
        sleep 0.2
    done
}

node_up() # HOST: munge and slurmd there
{
    rm -rf "spool.$1" # a socket of a host that was switched off would be in the way
    mkdir "spool.$1"
    hosts_on "$1" mkdir -p /run/munge
    daemon "$1" munged --foreground --force --key-file="$work/munge.key" --pid-file=/run/munge/pid \
        --socket=/run/munge/munge.socket.2 --seed-file="$work/$1.seed" --log-file="$work/$1.munge.log"
    await "munge on $1" 30 hosts_on "$1" test -S /run/munge/munge.socket.2
    daemon "$1" slurmd -D -N "$1"
}

idle() # N nodes
{
    [ "$(hosts_on n1 sinfo --noheader --states=idle --format=%D)" = "$1" ]
}

for i in 1 2 3 4; do
    node_up n$i
done
daemon n1 slurmctld -D
await "the cluster" 60 idle 4

# ---- runs ----

# config NAME TEXT
config()
{
    cat >"$1.yaml" <<YAML
model: {name: mnist-net, batch_norm: true}
data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 500}
batch: 96
timeout: 60
threads: 1
shards: 8
$2
YAML
}

# What a run has come to, to the bit.
figures()
{
    grep -E '"(weights_sha256|train_loss|train_accuracy|test_loss|test_accuracy|steps)"' \
        "$1/summary.json" || fail "$1 is not complete"
}

same() # TEXT DIR AS: the runs in both folders came to the same
{
    [ "$(figures "$2")" = "$(figures "$3")" ] || fail "$1: $2 is not $3"
    pass "$1"
}

config short 'epochs: 2'
"$cohort" train short.yaml --run-dir one >log 2>&1 || fail "one process"
for kind in $kinds; do
    mpi=pmix
    [ $kind = openmpi ] || mpi=pmi2
    hosts_on n1 timeout 120 srun --mpi=$mpi -N 4 -n 8 "$cohort" train short.yaml --run-dir $mpi \
        >log 2>&1 || fail "srun --mpi=$mpi"
    grep -q '"ranks": 8,' $mpi/summary.json || fail "srun --mpi=$mpi: not 8 ranks"
    same "srun --mpi=$mpi: 8 ranks on 4 nodes, $kind: as one process" $mpi one
done
hosts_on n1 timeout 60 srun --mpi=none -n 2 "$cohort" train short.yaml --run-dir none >log 2>&1 &&
    fail "srun --mpi=none" || :
grep -q 'error: srun has started this as task . of 2, but without MPI' log || fail "srun --mpi=none"
pass "srun --mpi=none: refused"

# ---- jobs ----

submit() # ARGUMENT...: of `cohort slurm`; sets $job
{
    "$cohort" slurm long.yaml "$@" >job.sh 2>log || fail "cohort slurm $*"
    job=$(hosts_on n1 sbatch --parsable job.sh) || fail "sbatch"
}

saved() # DIR
{
    [ -n "$(ls "$1/checkpoints" 2>/dev/null)" ]
}

ended() # the job is not in the queue any more
{
    left=$(hosts_on n1 squeue --noheader --states=PD,R,CG,CF,S,RQ --format=%A) || return
    ! printf '%s\n' "$left" | grep -qx "$job"
}

queued() # the job waits, for a second start
{
    [ "$(hosts_on n1 squeue --noheader --jobs="$job" --format=%T)" = PENDING ]
}

# A job that is queued again may start after two minutes; who administers the cluster can change that.
# A node refuses a job that it ended within the same second.
release()
{
    await "queued again" 120 queued
    sleep 2
    hosts_on n1 scontrol update JobId="$job" StartTime=now
}

cells="compare short.yaml --strategies sync -n 1,2 --out cells"
job=$(hosts_on n1 sbatch --parsable --array=1-2 --wrap "'$cohort' $cells --cell \$SLURM_ARRAY_TASK_ID")
await "an array of jobs" 60 ended
# shellcheck disable=SC2086 # words of a command
"$cohort" $cells --resume >log 2>&1 || fail "compare --resume"
[ "$(grep -c 'from before' log)" = 2 ] || fail "compare --resume: the log"
pass "an array of jobs: the cells of a comparison"

config long 'max_steps: 3000
epochs: 1000
evaluate: false
checkpoint: {every: 20 steps, keep: 2}'
"$cohort" train long.yaml --run-dir long >log 2>&1 || fail "one process"

submit -N 2 --ntasks-per-node 2 --run-dir cancelled --set max_steps=1000000
await "the first job" 60 saved cancelled
hosts_on n1 scancel "$job"
await "scancel" 60 ended
grep -q 'terminated after step [0-9]*, which is saved' mnist-net-"$job".log || fail "scancel: the log"
pass "scancel: saved, and not queued again"

submit -N 2 --ntasks-per-node 2 --time 2 --save-before 60 --run-dir limited --set max_steps=1000000
await "the job" 60 saved limited
release
grep -q 'terminated after step [0-9]*, which is saved' mnist-net-"$job".log || fail "the limit: the log"
await "its second start" 60 grep -q '"event":"resume"' limited/metrics.jsonl
hosts_on n1 scancel "$job"
await "scancel" 60 ended
pass "time limit: saved before it, queued again, resumed"

submit -N 4 --ntasks-per-node 2 --run-dir signalled
await "the job" 60 saved signalled
hosts_on n1 scancel --signal=USR1 "$job"
release
await "the job's second start" 120 ended
same "queued again: 8 ranks on 4 nodes, as one process" signalled long

submit -N 4 --ntasks-per-node 2 --run-dir lost
await "the job" 60 saved lost
hosts_power_off n4
release
hosts_power_on n4
node_up n4
await "the job without its node" 200 ended
same "a node is switched off: queued again, as one process" lost long
await "n4" 60 idle 4

submit -N 4 --ntasks-per-node 2 --run-dir fewer --no-kill
await "the job" 60 saved fewer
hosts_power_off n3
await "the job on fewer nodes" 300 ended
grep -q '3 of 4 nodes are left' mnist-net-"$job".log || fail "--no-kill: the log"
grep -q '"ranks": 6,' fewer/summary.json || fail "--no-kill: not 6 ranks"
same "--no-kill, a node is switched off: continued on 3, as one process" fewer long
echo "slurm: all passed"
