#!/bin/bash
# kills.sh COHORT KILLS [FOLDER] - SIGKILL at random moments of runs that write a checkpoint after
# nearly every step. Each time the run directory must load, and when a run gets to its end its weights
# must be those of the run that nobody killed.
set -u
cohort=$1 kills=$2
folder=$(mktemp -d "${3:-/tmp}/cohort-kills-XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
RANDOM=${KILLS_SEED:-1}

cat >"$folder/config.yaml" <<'YAML'
model: {name: mnist-net, batch_norm: true}
data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 230}
batch: 24
epochs: 12
optimizer: {name: adam, lr: 0.002}
checkpoint: {every: 2 steps, keep: 2}
threads: 1
YAML

fail() {
    echo "kills: $*" >&2
    cat "$folder/err" >&2
    trap - EXIT
    echo "kills: the run directory stays in $folder" >&2
    exit 1
}
# `sha256sum` of all that a run comes to.
weights() { sha256sum <"$folder/$1/final.safetensors"; }

"$cohort" train "$folder/config.yaml" -n 2 -q --run-dir "$folder/whole" 2>"$folder/err" ||
    fail "the run without kills failed"
want=$(weights whole)
done=0 ends=0 writing=0 run=0
while [ "$done" -lt "$kills" ]; do
    rm -rf "$folder/run"
    run=$((run + 1))
    while :; do
        # Not through the function: $! would be a shell, and the kill would miss the launcher.
        "$cohort" train "$folder/config.yaml" -n 2 -q --run-dir "$folder/run" --resume \
            2>"$folder/err" &
        pid=$!
        # From the start of the process to a long way into the run.
        sleep "0.$((RANDOM % 6))$((RANDOM % 10))"
        if [ "$done" -lt "$kills" ] && kill -KILL "$pid" 2>/dev/null; then
            wait "$pid" 2>/dev/null
            status=$?
        else
            wait "$pid"
            status=$?
        fi
        if [ "$status" -eq 137 ]; then
            done=$((done + 1))
            ls -A "$folder/run/checkpoints" 2>/dev/null | grep -q '^\.' && writing=$((writing + 1))
            continue
        fi
        [ "$status" -eq 0 ] || fail "after $done kills a run directory did not go on (exit $status)"
        break
    done
    [ "$(weights run)" = "$want" ] || fail "after $done kills the weights are others"
    ends=$((ends + 1))
done
echo "kills: $done of $kills, $writing while a checkpoint was being written or removed;" \
    "$ends runs came to their end, each with the same weights"
