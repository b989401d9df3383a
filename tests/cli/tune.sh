#!/bin/sh
# tune.sh COHORT - what `cohort tune` prints, writes and refuses, on one core and a config of which a batch
# of one sample is all that can gain. How well it searches is tested with made-up machines, in tests/tune.
set -eu
cohort=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/cohort-tune-test-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir tmp
export TMPDIR="$work/tmp"

fail()
{
    echo "tune: $*" >&2
    [ ! -f out ] || cat out >&2
    exit 1
}

core=$(taskset -cp $$ | sed 's/.*[,-]//; s/.* //')
tune() # ARGUMENTS...
{
    taskset -c "$core" "$cohort" tune "$@" --ms 200 --try strategies=sync --try loader.threads=0 >out 2>&1 || fail "failed for: $*"
    [ -z "$(ls tmp)" ] || fail "folders are left: $(ls tmp)"
}

cat >net.yaml <<YAML
# badly set
model: {name: mlp, hidden: [32]}
data: {name: synthetic, shape: [1, 8, 8], classes: 10, samples: 6400}
batch: 1 # samples
loader: {threads: 0}
epochs: 1
YAML
cp net.yaml before.yaml
ln -s net.yaml link.yaml

# a larger batch is proposed, apart from what keeps the result, and not written unasked
tune net.yaml --try ranks=1 --try batch=512 --apply
grep -q '^net.yaml: 1 core$' out || fail "what was measured is not shown"
grep -q '^now: .* samples/s$' out || fail "the rate now is not shown"
grep -q '^with the same result:' out && fail "something keeps the result"
grep -q '^on top, what changes what is learnt (nothing else gains 2%):$' out || fail "no table of what changes the result"
grep -Eq '^  batch +1 +512 +(\+[0-9]+%|x [0-9.]+) +CHANGES +512 times the samples in ' out || fail "no row of the batch"
grep -q '^2 combinations were measured, in ' out || fail "not 2 combinations"
grep -q '^nothing is written: all that gains changes the result; give --change-result$' out || fail "not said to be kept"
[ ! -e net-tuned.yaml ] || fail "written unasked"

# to a file of its own, and in place through a link: comments stay
tune net.yaml --try ranks=1 --try batch=512 --apply --change-result
grep -q '^net-tuned.yaml is written$' out || fail "not said to be written"
cmp -s net.yaml before.yaml || fail "the config itself was changed"
tune link.yaml --try ranks=1 --try batch=512 --full --apply --change-result --in-place --json
grep -q '"same_result": {[^}]*"set": \[\], "proposals": \[\]}' out || fail "something keeps the result"
grep -q '"key": "batch", "now": "1", "proposed": "512", "result": "changes", "applied": true, "gain": [0-9]' out ||
    fail "no proposal of a batch, with its gain"
[ -L link.yaml ] || fail "the link was replaced"
sed 's/^batch: 1 #/batch: 512 #/' before.yaml >expected.yaml
cmp -s net-tuned.yaml expected.yaml || fail "net-tuned.yaml is not the config with another batch"
cmp -s net.yaml expected.yaml || fail "net.yaml is not the config with another batch"
"$cohort" train net-tuned.yaml --quiet --run-dir run >out 2>&1 || fail "what was written does not train"

# with batch norm, other ranks change the result
sed -e 's/{name: mlp.*/{name: mnist-net, batch_norm: true}/; s/1, 8, 8/1, 28, 28/; s/^batch: .*/batch: 16/' \
    -e 's/^epochs: .*/ranks: 2/' before.yaml >norm.yaml
tune norm.yaml --try ranks=1 --try batch=16 --try bucket_mib=auto --json
grep -q '"same_result": {[^}]*"set": \[\], "proposals": \[\]}' out || fail "ranks are said to keep the result"

# what makes no difference is measured once: `local` exchanges in no buckets, and with one rank every strategy is
# plain training, so that it is 3 sizes with sync and one measurement with local, and one of one rank
taskset -c "$core" "$cohort" tune before.yaml -s ranks=2 -s 'strategy={name: sync, bucket_mib: 0.05}' --full --ms 20 --try ranks=1,2 \
    --try batch=16 --try bucket_mib=0.5,auto --try 'strategies={name: local, period: 4}' --try loader.threads=0 -s batch=16 >out 2>&1 ||
    fail "failed with --full"
grep -q '^5 combinations were measured, in ' out || fail "not 5 combinations"

# strategies that save exchange are not proposed where there is next to none, however far ahead chance puts one of many
sed -e 's/{name: mlp.*/lenet5/; s/1, 8, 8/1, 28, 28/; s/6400/2048/; s/^batch: .*/batch: 1024/' -e 's/^epochs: .*/ranks: 2/' before.yaml >busy.yaml
strategies=sync
for start in 1001 1002 1003 1004 1005 1006 1007 1008 1009 1010 1011; do
    strategies="$strategies, {name: local, period: 2, start: $start}"
done
taskset -c "$core" "$cohort" tune busy.yaml --full --ms 1 --try ranks=2 --try batch=1024 --try bucket_mib=auto --try "strategies=$strategies" \
    --try loader.threads=0 >out 2>&1 || fail "failed with local"
grep -q '^12 combinations were measured, in ' out || fail "not 12 combinations"
# (on cores that others use, sums may take a part of a step)
if grep -q '^  strategy .*exchange would be [01]% of a step' out; then fail "local is proposed for steps without exchange"; fi

refuses() # WORDS ARGUMENTS...
{
    words=$1
    shift
    code=0
    "$cohort" tune "$@" >out 2>&1 || code=$?
    [ $code -eq 2 ] || fail "exit code $code for: $*"
    [ "$(wc -l <out)" -eq 1 ] || fail "more than one line for: $*"
    grep -qF -e "$words" out || fail "no word of '$words' for: $*"
}
refuses '--try bach=2' net.yaml --try bach=2 -s 'data={name: imagefolder, path: /none}'
refuses 'net-tuned.yaml: exists already' net.yaml --apply
refuses 'give --in-place' net.yaml --apply -o ./net.yaml
refuses '--in-place: --output names another file' net.yaml --apply --in-place -o x.yaml
refuses '--change-result: it is for --apply' net.yaml --change-result
refuses 'expected KEY=LIST' net.yaml --try lr=0.1
refuses 'MiB, or auto' net.yaml --try bucket_mib=many
refuses "error: --try batch=many: expected whole numbers from 1 to 16777216, not 'many'" net.yaml --try batch=many
refuses 'error: --try ranks=2,2: 2 is given twice' net.yaml --try ranks=2,2
refuses "unknown key 'bach'" net.yaml -s bach=1
