#!/bin/sh
# same_bits.sh OLD NEW [PATTERN] - does a change keep the bits of what is trained? Trains each network
# of the table below with both programs, and compares the SHA-256 of the final weights: all strategies,
# shards, half precision, compressors, ranks over MPI, runs that are resumed on another number of ranks,
# 1 to 4 compute threads. Left out: strategies whose ranks race (hogwild, ssp, stale with racy). Only rows
# that match PATTERN (grep -E). Needs no data. Exit code 1: bits differ.
#
# A row: name | config of bench/configs | ranks | KEY=VALUE;KEY=VALUE. Ranks `mpi N` are started by
# mpiexec; `A>B` trains the first epoch on A and resumes on B.
set -eu
old=$1 new=$2 pattern=${3:-.}
configs=$(dirname "$0")/../bench/configs
work=$(mktemp -d "${TMPDIR:-/tmp}/cohort-bits-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
status=0

table()
{
    cat <<'ROWS'
mnist-net                  | mnist-net     | 1   |
lenet5, last batch shorter | lenet5        | 1   | batch=100
psgd-cnn                   | psgd-cnn      | 1   |
mnist-example              | mnist-example | 1   | data.samples=256
resnet9                    | resnet9       | 1   |
resnet9-wide               | resnet9-wide  | 1   | data.samples=128;batch=32
resnet18 32x32             | resnet18-cifar | 1  | data.samples=128;batch=32
resnet18                   | resnet18      | 1   | data.samples=32;batch=16
resnet50                   | resnet50      | 1   | data.samples=16;batch=8
alexnet                    | alexnet       | 1   | data.samples=32;batch=16
vgg11                      | vgg11         | 1   | data.samples=32;batch=16
resnet9, bf16              | resnet9       | 1   | precision=bf16;data.samples=256
gpt2, 4 layers             | gpt2-char     | 1   |
gpt2, 4 layers, bf16       | gpt2-char     | 2   | precision=bf16
resnet18 32x32, bf16       | resnet18-cifar | 1  | precision=bf16;data.samples=128;batch=32
resnet9, O2                | resnet9       | 2   | precision=O2;data.samples=256
resnet9, O3                | resnet9       | 1   | precision=O3;data.samples=256
sync                       | mnist-net     | 2   |
sync, over mpi             | mnist-net     | mpi 2 |
sync, 3 ranks              | lenet5        | 3   |
sync, parts                | resnet9       | 2   | strategy={name: sync, update: parts};data.samples=256
sync, sum per rank         | lenet5        | 2   | strategy={name: sync, reduction: mean}
local                      | mnist-net     | 2   | strategy={name: local, period: 4}
local, outer step          | mnist-net     | 2   | strategy={name: local, period: 4, outer: {momentum: 0.9, lr: 0.7, nesterov: true}}
one-shot                   | mnist-net     | 2   | strategy=one-shot
stale                      | mnist-net     | 2   | strategy={name: stale, k: 2}
threads                    | mnist-net     | 2   | strategy=threads
shards 8                   | mnist-net     | 3   | shards=8
shards 8, over mpi         | mnist-net     | mpi 2 | shards=8
shards 8, resumed          | mnist-net     | 1>3 | shards=8;epochs=2
sync batch norm            | resnet9       | 2   | sync_batch_norm=true;data.samples=256
compress fp16              | mnist-net     | 2   | strategy={name: sync, compress: fp16}
compress topk              | mnist-net     | 2   | strategy={name: sync, compress: {name: topk, ratio: 0.05}}
compress powersgd          | mnist-net     | 2   | strategy={name: sync, compress: {name: powersgd, rank: 2}}
adamw, clipping            | lenet5        | 1   | optimizer={name: adamw, lr: 0.001};clip.norm=0.5
accumulation, average      | lenet5        | 2   | accumulate=2;ema={decay: 0.99}
resumed on other ranks     | lenet5        | 2>3 | epochs=2
2 threads                  | resnet9       | 1   | threads=2;data.samples=256
3 threads                  | mnist-net     | 1   | threads=3
4 threads                  | resnet18-cifar | 1  | threads=4;data.samples=64;batch=32
ROWS
}

# run PROGRAM DIR CONFIG RANKS ARGUMENT...: train, and once more after `A>B`
run()
{
    program=$1 dir=$2 config=$3 ranks=$4
    shift 4
    set -- "$@" --run-dir "$dir" -q
    case $ranks in
    mpi*) mpiexec --oversubscribe -n "${ranks#mpi }" "$program" train "$config" "$@" ;;
    *\>*)
        "$program" train "$config" -n "${ranks%>*}" "$@" --set epochs=1
        "$program" train "$config" -n "${ranks#*>}" "$@" --resume
        ;;
    *) "$program" train "$config" -n "$ranks" "$@" ;;
    esac >"$dir.log" 2>&1
    sed -n 's/.*"weights_sha256": *"\([0-9a-f]*\)".*/\1/p' "$dir/summary.json"
}

# compare NAME CONFIG RANKS SETTINGS
compare()
{
    name=$1 config=$configs/$2.yaml ranks=$3 settings=$4
    set -- --set data.samples=1024 --set epochs=1
    while [ -n "$settings" ]; do
        set -- "$@" --set "${settings%%;*}"
        case $settings in
        *\;*) settings=${settings#*;} ;;
        *) settings= ;;
        esac
    done
    before=$(run "$old" "$work/old" "$config" "$ranks" "$@") || before="failed: $(tail -n 1 "$work/old.log")"
    after=$(run "$new" "$work/new" "$config" "$ranks" "$@") || after="failed: $(tail -n 1 "$work/new.log")"
    verdict=same
    [ ${#after} -eq 64 ] && [ "$before" = "$after" ] || {
        verdict="DIFFERENT: before $before, after $after"
        status=1
    }
    printf '%-28s %-10.16s %s\n' "$name" "$after" "$verdict"
    rm -rf "$work/old" "$work/new"
}

table | sed 's/ *| */|/g' | grep -E -- "$pattern" >"$work/rows"
while IFS='|' read -r name config ranks settings <&3; do
    compare "$name" "$config" "$ranks" "$settings"
done 3<"$work/rows"
exit $status
