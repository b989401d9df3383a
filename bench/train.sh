#!/bin/sh
# train.sh - how fast training steps are, with PyTorch beside it in the same run.
#
#   bench/train.sh [NET...]      all of bench/works, or those of its lines that have these networks
#
# For each line, on one rank and on two, one core a rank for all that the rank does. First every
# variant of PyTorch runs once, for a third of the steps: each version, eager and torch.compile,
# contiguous and channels-last.
# Then Cohort and the fastest variant take turns, ROUNDS times, so that both see the same machine;
# ratios are medians over the rounds. `scaling` is Cohort on two ranks with twice the batch, to
# twice Cohort on one. PyTorch is left out, saying why, where it is not installed.
#
#   ROUNDS=5                   turns
#   RANKS='1 2'
#   PRECISIONS='fp32 bf16'     of those that bench/works gives
#   PYTORCH='python3 ...'      interpreters that import torch
#   COMPILE=0                  leaves torch.compile out, which takes minutes to start
#   COHORT=build/cohort
#   DEVICE=cuda                on GPUs, one a rank: the lines of bench/works.cuda, CUDA graphs among
#                              the variants, no `scaling`, and MiB of the GPU's memory; the results have
#                              the host's, too
#
# Prints a table and writes bench/results/train-NET.jsonl (with DEVICE=cuda gpu-NET.jsonl), one object for each line of the table and
# for each variant that was tried.
set -eu
cd "$(dirname "$0")/.."
. bench/lib.sh
COHORT=${COHORT:-build/cohort}
ROUNDS=${ROUNDS:-5}
DEVICE=${DEVICE:-cpu}
case $DEVICE in
cpu) RANKS=${RANKS:-1 2} WORKS=bench/works RESULTS=bench/results/train ;;
cuda) RANKS=${RANKS:-1} WORKS=bench/works.cuda RESULTS=bench/results/gpu ;;
*) fail "DEVICE: cpu or cuda" ;;
esac
PRECISIONS=${PRECISIONS:-fp32 tf32 bf16}
COMPILE=${COMPILE:-1}
WARMUP=2
export PYTHONDONTWRITEBYTECODE=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
seen=

# bound RANKS COMMAND...: a core for each rank; with GPUs all cores.
bound()
{
    n=$1
    shift
    case $DEVICE in
    cpu) taskset -c "$(cores "$n")" "$@" ;;
    cuda) "$@" ;;
    esac
}

# run_cohort RANKS NET BATCH PRECISION: as many steps as the line of bench/works gives us.
run_cohort()
{
    tf32=false level=$4
    case $4 in tf32) tf32=true level=fp32 ;; esac
    case $DEVICE in
    cpu) more= ;;
    cuda) more="--set device.name=cuda --set device.tf32=$tf32" ;;
    esac
    # shellcheck disable=SC2086
    bound "$1" "$COHORT" bench train "bench/configs/$2.yaml" -n "$1" --warmup "$WARMUP" \
        --rounds 1 --set "batch=$3" --steps "$ours" --set "precision=$level" $more \
        || fail "cohort failed: $2, batch $3, $1 ranks, $4"
}

# run_pytorch RANKS NET BATCH STEPS PRECISION PYTHON [OPTION...]
run_pytorch()
{
    n=$1 net=$2 batch=$3 steps=$4 precision=$5 python=$6
    shift 6
    bound "$n" "$python" bench/peers/torch_train.py "$net" -n "$n" --batch "$batch" \
        --steps "$steps" --warmup "$WARMUP" --precision "$precision" --device "$DEVICE" "$@" \
        2>"$dir/err"
}

# try_variants RANKS NET BATCH STEPS PRECISION: the fastest one's interpreter and options to
# $dir/best, every one's figure to the results.
try_variants()
{
    set -- "$1" "$2" "$3" $((($4 + 2) / 3)) "$5"
    : >"$dir/tried"
    for python in $PYTHONS; do
        for options in '' --channels-last --graphs '--graphs --channels-last' --compile \
            '--compile --channels-last' '--compile --graphs --channels-last'; do
            case $COMPILE$options in 0--compile*) continue ;; esac
            case $DEVICE$options in cpu*--graphs*) continue ;; esac
            # shellcheck disable=SC2086
            run_pytorch "$@" "$python" $options >"$dir/one" || continue
            printf '%s %s %s\n' "$(field "$dir/one" samples_per_second)" "$python" "$options" \
                >>"$dir/tried"
            printf '{"variant": "%s", "net": "%s", "ranks": %s, "batch": %s, "precision": "%s", "samples_per_second": %s, "peak_memory_bytes": %s}\n' \
                "$(text "$dir/one" peer)" "$2" "$1" "$3" "$5" \
                "$(field "$dir/one" samples_per_second)" "$(field "$dir/one" peak_memory_bytes)" \
                >>"$dir/$2.jsonl"
        done
    done
    sort -gr "$dir/tried" | head -n 1 | cut -d ' ' -f 2- >"$dir/best"
}

# one RANKS NET BATCH STEPS PRECISION: a line of the table.
one()
{
    for part in cohort pytorch double ratio scaling; do : >"$dir/$part"; done
    try_variants "$@"
    for round in $(seq "$ROUNDS"); do
        run_cohort "$1" "$2" "$3" "$5" >>"$dir/cohort"
        if [ -s "$dir/best" ]; then
            # shellcheck disable=SC2046
            run_pytorch "$@" $(cat "$dir/best") >>"$dir/pytorch" || fail "$(cat "$dir/err")"
        fi
        [ "$DEVICE$1" != cpu1 ] || run_cohort 2 "$2" $((2 * $3)) "$5" >>"$dir/double"
    done
    field "$dir/cohort" samples_per_second >"$dir/ours"
    field "$dir/pytorch" samples_per_second | paste "$dir/ours" - |
        awk 'NF == 2 { print $1 / $2 }' >"$dir/ratio"
    field "$dir/double" samples_per_second | paste "$dir/ours" - |
        awk 'NF == 2 { print $2 / $1 / 2 }' >"$dir/scaling"
    printf '{"net": "%s", "batch": %s, "precision": "%s", "ranks": %s, "rounds": %s, ' \
        "$2" "$3" "$5" "$1" "$ROUNDS"
    printf '"samples_per_second": %.6g, "peak_memory_bytes": %s' "$(median <"$dir/ours")" \
        "$(field "$dir/cohort" peak_memory_bytes | median)"
    [ "$DEVICE" != cuda ] || printf ', "peak_device_memory_bytes": %s' \
        "$(field "$dir/cohort" peak_device_memory_bytes | median)"
    if [ -s "$dir/ratio" ]; then
        printf ', "peer": "%s", "peer_samples_per_second": %.6g, "peer_peak_memory_bytes": %s' \
            "$(text "$dir/pytorch" peer | head -n 1)" \
            "$(field "$dir/pytorch" samples_per_second | median)" \
            "$(field "$dir/pytorch" peak_memory_bytes | median)"
        printf ', "ratio": %.3f, "ratio_min": %.3f, "ratio_max": %.3f' "$(median <"$dir/ratio")" \
            "$(sort -g "$dir/ratio" | head -n 1)" "$(sort -gr "$dir/ratio" | head -n 1)"
    fi
    [ ! -s "$dir/scaling" ] || printf ', "scaling": %.3f' "$(median <"$dir/scaling")"
    printf '}\n'
}

# Lines of the table from lines of the results.
show()
{
    awk '
    function get(name,   s) {
        if (!match($0, "\"" name "\": *\"?[^,\"}]*"))
            return "-"
        s = substr($0, RSTART, RLENGTH)
        sub("^\"" name "\": *\"?", "", s)
        return s
    }
    /"net"/ && !/"variant"/ {
        peer = get("peer")
        mib = get("peer_peak_memory_bytes")
        ours = get("peak_device_memory_bytes")
        if (ours == "-")
            ours = get("peak_memory_bytes")
        printf "%-14s %5s %4s %5s %9.4g %9s %6s %7s %6.0f %7s  %s\n", get("net"), get("batch"),
            get("precision"), get("ranks"), get("samples_per_second"),
            peer == "-" ? "-" : sprintf("%.4g", get("peer_samples_per_second")), get("ratio"),
            get("scaling"), ours / 1048576,
            mib == "-" ? "-" : sprintf("%.0f", mib / 1048576), peer
    }'
}

[ -x "$COHORT" ] || fail "$COHORT is not built; run: make"
PYTHONS=$(pythons)
[ -n "$PYTHONS" ] || echo "PyTorch is left out: no python3 here imports torch (Debian: python3-torch)"
machine
printf '%-14s %5s %4s %5s %9s %9s %6s %7s %6s %7s  %s\n' net batch '' ranks Cohort/s PyTorch/s ratio \
    scaling MiB PyTorch 'fastest PyTorch'
grep -v '^#' $WORKS | while read -r net batch steps ours precisions; do
    [ $# -eq 0 ] || case " $* " in *" $net "*) ;; *) continue ;; esac
    [ -f "$dir/$net.jsonl" ] || machine >"$dir/$net.jsonl"
    for precision in $precisions; do
        case " $PRECISIONS " in *" $precision "*) ;; *) continue ;; esac
        for n in $RANKS; do
            one "$n" "$net" "$batch" "$steps" "$precision" </dev/null >"$dir/line"
            tee -a "$dir/$net.jsonl" <"$dir/line" | show
        done
    done
    mkdir -p bench/results
    cp "$dir/$net.jsonl" "$RESULTS-$net.jsonl"
done
echo "written: $RESULTS-NET.jsonl"
