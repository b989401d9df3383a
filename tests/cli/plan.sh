#!/bin/sh
# plan.sh COHORT - `cohort plan` on runs of its own and on an earlier one, as text, JSON and a page; cluster
# files that are wrong.
set -eu
cohort=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/cohort-plan-test-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir tmp
export TMPDIR="$work/tmp"

fail()
{
    echo "plan: $*" >&2
    [ ! -f out ] || cat out >&2
    exit 1
}

cat >net.yaml <<'YAML'
model: {name: mlp, hidden: [64]}
data: {name: synthetic, shape: [1, 8, 8], classes: 10, samples: 640}
batch_per_rank: 16
epochs: 1
threads: 1
YAML
cat >c.yaml <<'YAML'
nodes: 8
cores: 1
price: 2
links:
  across: {bandwidth: 100 Mbit/s, latency: 50 us}
YAML

# what it measures here leaves nothing
"$cohort" plan net.yaml -c c.yaml --steps 20 --strategies 'sync, {name: sync, compress: topk}' >out 2>&1 || fail "measuring failed"
grep -q '^shortest epoch: ' out || fail "no best is named"
grep -q 'sync compress=topk' out || fail "no other strategy was compared"
[ -z "$(ls tmp)" ] || fail "folders are left: $(ls tmp)"

# nor is it refused for what the config says of its end
"$cohort" plan net.yaml -c c.yaml --steps 5 --strategies sync -s 'stop_at={accuracy: 0.9}' >out 2>&1 ||
    fail "a config with stop_at is not measured"

"$cohort" plan net.yaml -c c.yaml --steps 5 --strategies sync -s batch_per_rank=0 -s batch=16 -s on_failure=shrink >out 2>&1 ||
    fail "a config with on_failure is not measured"

# parts that are of other ranks than it measures on
for partition in '{kind: random, ratios: [0.5, 0.3, 0.2]}' '{kind: labels, labels: [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]}'; do
    code=0
    "$cohort" plan net.yaml -c c.yaml --steps 5 --strategies '{name: sync, compress: topk}' -s ranks=3 -s "partition=$partition" \
        >out 2>&1 || code=$?
    [ $code -eq 2 ] || fail "exit code $code for a partition of 3 ranks"
    grep -q 'are measured here on [0-9]* ranks\{0,1\}, .*-s partition=global' out ||
        fail "it does not say on how many ranks it measures"
done
"$cohort" plan net.yaml -c c.yaml --steps 5 --strategies sync -s ranks=3 -s partition=global >out 2>&1 || fail "the remedy fails"

# an earlier run, and the same numbers twice
"$cohort" train net.yaml --quiet --run-dir run --profile -s log_every=1
"$cohort" plan net.yaml -c c.yaml --profile-from run --json -n 1,8 --strategies 'sync, {name: local, period: 4}' \
    --html page.html >one.json
"$cohort" plan net.yaml -c c.yaml --profile-from run --json -n 1,8 --strategies 'sync, {name: local, period: 4}' >two.json
cmp -s one.json two.json || fail "the same profile gives other numbers"
[ "$(grep -c '"ranks": 8' one.json)" -ge 2 ] || fail "not two strategies on 8 ranks"
# sync sends 2 (8 - 1) / 8 of 4 bytes of each of the 4,816 elements in every step, local a quarter
grep -q '"node_bytes_per_step": 33712' one.json || fail "the bytes of a step are others: $(grep node_bytes one.json)"
grep -q '"node_bytes_per_step": 8428' one.json || fail "the bytes of local are others"
grep -q '<svg' page.html || fail "the page has no curve"
if grep -Eq '<script|src=|href=' page.html; then fail "the page loads something"; fi

# memory is that of the batch that is planned, whatever the batch of the run
memory()
{
    "$cohort" plan net.yaml -c c.yaml --profile-from "$1" --json -n 1 --batches 64 --strategies sync |
        sed -n 's/.*"rank_memory_bytes": //p' | head -n 1
}
"$cohort" train net.yaml --quiet --run-dir run64 --profile -s log_every=1 -s batch_per_rank=64
[ -n "$(memory run)" ] || fail "no memory"
[ "$(memory run)" = "$(memory run64)" ] || fail "by runs of 16 and of 64 samples a rank of 64 needs $(memory run) and $(memory run64)"

# one number of ranks is a dot, in the order given or not
"$cohort" plan net.yaml -c c.yaml --profile-from run -n 8,4 --strategies sync --html page.html >out
grep -q '^ *4  *4 ' out || fail "no row of 4 ranks"
"$cohort" plan net.yaml -c c.yaml --profile-from run -n 4 --strategies sync --html page.html >out
grep -q 'stroke-linecap="round" d="M[0-9.]* [0-9.]*h0"' page.html || fail "the page does not show the one point"
"$cohort" plan net.yaml -c c.yaml --profile-from run -n 4 --global-batch 2 --strategies sync >out
grep -q '^  lacks a sample for each rank' out || fail "it does not say what is lacking"

refuses() # WORDS [ARGUMENT...]: in the message about c.yaml, with its line
{
    words=$1
    shift
    code=0
    "$cohort" plan net.yaml -c c.yaml --profile-from run "$@" >out 2>&1 || code=$?
    [ $code -eq 2 ] || fail "exit code $code for: $words"
    [ "$(wc -l <out)" -eq 1 ] || fail "more than one line for: $words"
    grep -qF -e "$words" out || fail "no word of: $words"
}
# options come before data that is not there
refuses "unknown strategy 'fast'" --strategies fast -s 'data={name: imagefolder, path: /none}'
refuses '--ranks' -n 0 -s 'data={name: imagefolder, path: /none}'
refuses '--batches' --batches 0 -s 'data={name: imagefolder, path: /none}'
# each names the option and what was typed, once
refuses 'error: --ranks 0: expected whole numbers from 1 to 1000000, not' -n 0
refuses "error: --strategies foo: unknown strategy 'foo'" --strategies foo
refuses 'error: --batches 100000000: expected whole numbers from 1 to 16777216, not' --batches 100000000
# with shards, what training refuses
refuses "error: --strategies sync,local: the strategy 'local' has no order of summing" --strategies sync,local -s shards=2 -s batch_per_rank=0
refuses "'local' has no order of summing" -s shards=2 -s batch_per_rank=0 -s strategy=local
"$cohort" plan net.yaml -c c.yaml --profile-from run -s shards=2 -s batch_per_rank=0 >out 2>&1 || fail "shards are refused"
[ "$(grep -c '^[a-z]) ' out)" -eq 1 ] || fail "with shards more is compared than sync"
"$cohort" plan net.yaml -c c.yaml --profile-from run -s shards=1 -s batch_per_rank=0 -n 2 --strategies sync >out
grep -q '^  lacks a shard for each rank' out || fail "more ranks than shards"
! grep -q '^shortest epoch: sync' out || fail "more ranks than shards are proposed"
# weights are those of the network, without what pads the store
"$cohort" plan net.yaml -c c.yaml --profile-from run -n 1 --strategies sync >out
grep -q '^network    mlp, 4,810 weights$' out || fail "the weights are others"
"$cohort" plan net.yaml -c c.yaml --profile-from run -n 1 --strategies sync --json | grep -q '"weights": 4810' || fail "weights in JSON"
# what changes memory as it likes is not proposed
printf 'nodes: 1\ncores: 2\nlinks:\n  inside: {bandwidth: 8 GB/s, latency: 1 us}\n' >c.yaml
"$cohort" plan net.yaml -c c.yaml --profile-from run -n 2 --strategies sync,hogwild,ssp >out
[ "$(grep -c 'its traffic over memory is not known' out)" -eq 2 ] || fail "hogwild and ssp are not marked"
grep -q '^shortest epoch: sync on 2 ranks' out || fail "what is not known is proposed"
printf 'nodes: 8\ncors: 1\n' >c.yaml
refuses "c.yaml:2:7: cluster: unknown key 'cors'; did you mean 'cores'?"
printf 'nodes: 8\ncores: 1\nlinks:\n  across: {bandwidth: 10 Gb, latency: 1 us}\n' >c.yaml
refuses "c.yaml:4:23: bandwidth: '10 Gb'"
printf 'nodes: 8\ncores: 1\n' >c.yaml
refuses 'links: nodes talk to each other'
rm c.yaml
refuses 'c.yaml'

echo '{}' >run/profile.json
printf 'nodes: 1\ncores: 1\n' >c.yaml
code=0
"$cohort" plan net.yaml -c c.yaml --profile-from run >out 2>&1 || code=$?
[ $code -eq 3 ] || fail "exit code $code for a damaged profile"
grep -q 'run/profile.json' out || fail "the damaged profile is not named"
