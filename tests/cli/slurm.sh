#!/bin/sh
# slurm.sh COHORT - runs scripts of `cohort slurm` with commands in Slurm's place that note how they are
# called: what is done when a run ends well, saves before the time limit, is cancelled, loses a node.
set -eu
cohort=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/cohort-slurm-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir bin
export PATH="$work/bin:$PATH" SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=4

fail()
{
    echo "slurm: $*" >&2
    cat calls out 2>/dev/null >&2
    exit 1
}

# command_of NAME TEXT: a program of these lines
command_of()
{
    printf '#!/bin/sh\necho "%s $*" >>calls\n%s\n' "$1" "$2" >"bin/$1"
    chmod +x "bin/$1"
}

# The first start ends with the first code, and so on; then there is a run to resume, unless that code is early-CODE.
command_of srun 'mkdir -p "$DIR"
read -r code rest <codes; echo "$rest" >codes
case $code in early-*) exit "${code#early-}" ;; esac
: >"$DIR/config.yaml"; echo >>"$DIR/metrics.jsonl"
exit "$code"'
command_of squeue 'case $* in *%T*) echo "$STATE" ;; *) echo "$LEFT" ;; esac'
command_of scontrol ''
command_of sleep ''

cat >net.yaml <<YAML
model: mlp
data: {name: synthetic, shape: [1, 4, 4], classes: 2, samples: 8}
batch: 8
max_steps: 2
YAML

# ends CODE STARTS CODES STATE LEFT: the script, after srun's exit codes
ends()
{
    rm -rf calls "$dir"
    echo "$3" >codes
    code=0
    DIR=$dir STATE=$4 LEFT=$5 sh job.sh >out 2>&1 || code=$?
    [ $code = "$1" ] || fail "exit code $code instead of $1 after '$3', $4"
    [ "$(grep -c ^srun calls)" = "$2" ] || fail "not $2 starts after '$3', $4"
}

dir=runs/mlp-7
"$cohort" slurm net.yaml -N 4 --ntasks-per-node 2 -t 1:00:00 -s "max_steps=3" >job.sh
grep -q '^#SBATCH --nodes=4$' job.sh || fail "no nodes"
grep -q '^#SBATCH --signal=USR1@300$' job.sh || fail "no signal"
ends 0 1 0 RUNNING 4
grep -q "^srun --mpi=pmix --nodes=4 --ntasks=8 .* train net.yaml --run-dir $dir --set max_steps=3" calls ||
    fail "the first start"
ends 0 1 143 RUNNING 4
grep -qx 'scontrol requeue 7' calls || fail "saved before the limit, and not queued again"
ends 143 1 143 COMPLETING 4
! grep -q scontrol calls || fail "cancelled, and queued again"
ends 4 1 4 RUNNING 3
! grep -q scontrol calls || fail "failed, and queued again"
ends 139 1 139 RUNNING 4
ends 0 3 'early-139 early-137 0' RUNNING 4
! grep -q -e --resume calls || fail "what has not begun is resumed"
ends 139 3 'early-139 early-139 early-139' RUNNING 4
ends 143 1 early-143 COMPLETING 4

dir="it's here"
"$cohort" slurm net.yaml -N 4 --ntasks-per-node 2 --no-kill --run-dir "$dir" >job.sh
ends 0 2 '4 0' RUNNING 3
grep -q "^srun --mpi=pmix --nodes=3 --ntasks=6 .* train net.yaml --run-dir it's here --resume" calls ||
    fail "the start on three nodes"
ends 137 1 137 RUNNING 4
ends 2 1 2 RUNNING 3
ends 0 1 143 RUNNING 3
grep -qx 'scontrol requeue 7' calls || fail "--no-kill: not queued again"

# refused WORDS ARGUMENT...
refused()
{
    words=$1
    shift
    code=0
    "$cohort" slurm "$@" >out 2>&1 || code=$?
    [ $code = 2 ] && grep -q "error: .*$words" out || fail "$*: not refused for $words"
}
refused 'shards: 2 cannot occupy 4 ranks' net.yaml -N 4 -s shards=2
refused 'checkpoint=off: checkpoint: .*`1 epoch`' net.yaml -s checkpoint=off
for strategy in hogwild ssp threads; do
    refused "strategy=$strategy: .* share memory" net.yaml -N 2 -s strategy=$strategy
done
refused 'on_failure=shrink: .*only `stop`' net.yaml -N 2 -s on_failure=shrink
# no data is needed for that
missing='data={name: imagefolder, path: /none}'
refused '3 ratios for 2 parts' net.yaml -N 2 -s 'partition={kind: random, ratios: [0.5, 0.3, 0.2]}' -s "$missing"
refused '3 ratios for 2 parts' net.yaml -N 2 -s 'test_partition={kind: contiguous, ratios: [0.5, 0.3, 0.2]}'
refused 'labels for 1 rank, but there are 2' net.yaml -N 2 -s 'partition={kind: labels, labels: [[0, 1]]}'
"$cohort" slurm net.yaml -N 3 -s 'partition={kind: random, ratios: [0.5, 0.3, 0.2]}' -s "$missing" >out 2>&1 ||
    fail "refused for data that may be on the cluster"
refused "'soon'" net.yaml -t soon
refused "'1:2:3:4'" net.yaml -t 1:2:3:4
refused "'1-'" net.yaml -t 1-
refused 'saves 300 s before that' net.yaml -t 5
refused 'saves 7200 s before that' net.yaml -t 0-2 --save-before 7200
for limit in 6 5:01 0:05:01 0-1 1-00:00:00 0; do
    "$cohort" slurm net.yaml -t $limit | grep -qx "#SBATCH --time=$limit" || fail "--time $limit"
done
refused 'pmix does for Open MPI' net.yaml --mpi openmpi
refused 'line break' net.yaml --run-dir 'a
b'
refused 'sbatch' net.yaml --sbatch 'account=lab'
refused 'none.yaml' none.yaml
