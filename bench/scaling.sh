#!/bin/sh
# scaling.sh - what a second rank brings, and what the machine alone would leave of it.
#
#   bench/scaling.sh [NET...]      all of bench/works, or those of its lines that have these networks
#
# For each line of bench/works three things take turns, ROUNDS times:
#
#   one     one rank on one core; on the one and on the other in turn
#   two     two ranks on both cores, with twice the batch
#   beside  two runs of one rank each on both cores at once, that exchange nothing
#
# `scaling` is the samples per second of two to twice those of one, `beside` those of both runs to
# the same, and `to beside` those of two to those of both: what ranks lose to each other, and not to
# caches, memory and clock that cores share. All are medians of the ratios of single rounds, as a
# machine has other speeds from minute to minute.
#
#   ROUNDS=7
#   ROUND_SECONDS=1.5               that a round is to last
#   PRECISIONS='fp32'          of those that bench/works gives
#   COHORT=build/cohort
#
# Prints a table and writes bench/results/scaling-NET.jsonl, one object for each line of the table.
set -eu
cd "$(dirname "$0")/.."
. bench/lib.sh
COHORT=${COHORT:-build/cohort}
ROUNDS=${ROUNDS:-7}
ROUND_SECONDS=${ROUND_SECONDS:-1.5}
PRECISIONS=${PRECISIONS:-fp32}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

# run CORES RANKS NET BATCH STEPS PRECISION
run()
{
    taskset -c "$1" "$COHORT" bench train "bench/configs/$3.yaml" -n "$2" --warmup 2 --rounds 1 \
        --set "batch=$4" --steps "$5" --set "precision=$6" ||
        fail "cohort failed: $3, batch $4, $2 ranks, $6"
}

# steps NET BATCH PRECISION: how many last as long as a round should.
steps()
{
    run "$first" 1 "$1" "$2" 3 "$3" | tee "$dir/once" >/dev/null
    field "$dir/once" step_ms |
        awk -v s="$ROUND_SECONDS" '{ n = int(s * 1000 / $1 + 0.5); print (n > 2 ? n : 2) }'
}

# turn ROUND NET BATCH STEPS PRECISION: the samples per second of one, two, and of each run beside.
turn()
{
    if [ $(($1 % 2)) = 1 ]; then core=$first; else core=$second; fi
    run "$core" 1 "$2" "$3" "$4" "$5" >"$dir/one"
    run "$first,$second" 2 "$2" $((2 * $3)) "$4" "$5" >"$dir/two"
    run "$first" 1 "$2" "$3" "$4" "$5" >"$dir/a" &
    run "$second" 1 "$2" "$3" "$4" "$5" >"$dir/b"
    wait $! || exit 1
    for part in one two a b; do field "$dir/$part" samples_per_second; done | tr '\n' ' '
    echo
}

# column EXPRESSION: the median over the turns, of samples per second of one, two and beside.
column()
{
    awk "{ one = \$1; two = \$2; beside = \$3 + \$4; print $1 }" "$dir/turns" | median
}

# measure NET BATCH PRECISION: a line of the results.
measure()
{
    n=$(steps "$@")
    for round in $(seq "$ROUNDS"); do turn "$round" "$1" "$2" "$n" "$3"; done >"$dir/turns"
    awk '{ print $2 / $1 / 2 }' "$dir/turns" | sort -g >"$dir/scaling"
    printf '{"net": "%s", "batch": %s, "precision": "%s", "rounds": %s, "steps": %s, ' \
        "$1" "$2" "$3" "$ROUNDS" "$n"
    printf '"one_samples_per_second": %.6g, "two_samples_per_second": %.6g, ' \
        "$(column one)" "$(column two)"
    printf '"beside_samples_per_second": %.6g, "scaling": %.3f, "scaling_min": %.3f, "scaling_max": %.3f, ' \
        "$(column beside)" "$(median <"$dir/scaling")" "$(head -n 1 "$dir/scaling")" \
        "$(tail -n 1 "$dir/scaling")"
    printf '"beside": %.3f, "to_beside": %.3f}\n' "$(column 'beside / one / 2')" \
        "$(column 'two / beside')"
}

# A line of the table from one of the results.
show()
{
    printf '%-14s %5s %4s %9.5g %9.5g %9.5g %7s %13s %7s %9s\n' "$(text "$1" net)" \
        "$(field "$1" batch)" "$(text "$1" precision)" "$(field "$1" one_samples_per_second)" \
        "$(field "$1" two_samples_per_second)" "$(field "$1" beside_samples_per_second)" \
        "$(field "$1" scaling)" "$(field "$1" scaling_min)-$(field "$1" scaling_max)" \
        "$(field "$1" beside)" "$(field "$1" to_beside)"
}

[ -x "$COHORT" ] || fail "$COHORT is not built; run: make"
first=$(cores 1)
second=$(cores 2 | sed 's/.*,//')
[ "$first" != "$second" ] || fail 'two cores are needed'
machine
printf '%-14s %5s %4s %9s %9s %9s %7s %13s %7s %9s\n' net batch '' one/s two/s beside/s scaling \
    '(min-max)' beside 'to beside'
grep -v '^#' bench/works | while read -r net batch _ _ precisions; do
    [ $# -eq 0 ] || case " $* " in *" $net "*) ;; *) continue ;; esac
    [ -f "$dir/$net.jsonl" ] || machine >"$dir/$net.jsonl"
    for precision in $precisions; do
        case " $PRECISIONS " in *" $precision "*) ;; *) continue ;; esac
        measure "$net" "$batch" "$precision" </dev/null >"$dir/line"
        cat "$dir/line" >>"$dir/$net.jsonl"
        show "$dir/line"
    done
    mkdir -p bench/results
    cp "$dir/$net.jsonl" "bench/results/scaling-$net.jsonl"
done
echo "written: bench/results/scaling-NET.jsonl"
