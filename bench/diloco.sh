#!/bin/bash
# diloco.sh BUILD [STEPS] [RATE] - a transformer on two ranks with a slow link between them: sync,
# and local with Nesterov's outer steps every 50 (DiLoCo), at equal tokens. Prints the test loss and
# the seconds of both. Needs what slow_link.sh does, and ../shared/data/text (or $COHORT_DATA/text).
set -eu
cohort=$(realpath "$1")/cohort
steps=${2:-2000}
rate=${3:-100mbit}
text=$(realpath "${COHORT_DATA:-../shared/data}/text/tinyshakespeare.txt")
. "$(dirname "$0")/slow_link.sh"

cat >"$work/config.yaml" <<YAML
model: {name: gpt2, layers: 4, heads: 4, width: 128, dropout: 0}
data: {name: text, path: $text, context: 64, test_fraction: 0.1}
batch: 24
max_steps: $steps
evaluate_every: 1000
optimizer: {name: adamw, lr: 1e-3, betas: [0.9, 0.99], weight_decay: 0.1}
schedule: {name: cosine, unit: step, warmup: 100, final: 0.1}
clip: {norm: 1.0}
seed: 1337
threads: 1
checkpoint: off
YAML

figure() # NAME KEY
{
    sed -n "s/.*\"$2\": \([0-9.e+-]*\).*/\1/p" "$work/$1/summary.json"
}

measure() # NAME STRATEGY
{
    link_run "$cohort" train "$work/config.yaml" --quiet --run-dir "$work/$1" -s "strategy=$2" \
        >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    echo "$1 $(figure "$1" test_loss) $(figure "$1" train_seconds)"
}

link_set_rate "$rate"
measure diloco '{name: local, period: 50, start: 100, outer: {momentum: 0.9, lr: 0.7, nesterov: true}}'
measure sync sync
awk -v d="$(figure diloco train_seconds)" -v s="$(figure sync train_seconds)" \
    'BEGIN { printf "diloco takes %.2f of the time of sync\n", d / s }'
