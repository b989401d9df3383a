#!/bin/sh
# busy.sh BUILD [ROUNDS [REPEATS]] - the tests on a busy machine: with two loops beside them that
# leave no core idle, the quick tests ROUNDS (3) times, then every test with a clock or a limit
# (label `clock`) REPEATS (20) times by itself. A summary at the end; exit code 1: something failed.
#
# What ctest says goes to BUILD/busy/.
set -eu
build=$1
rounds=${2:-3}
repeats=${3:-20}
logs=$build/busy
loops=
failed=0
mkdir -p "$logs"
rm -f "$logs"/*

# A loop ends with this shell, however that ends.
trap 'for loop in $loops; do kill "$loop" 2>/dev/null || :; done' EXIT
trap 'exit 130' INT TERM
for _ in 1 2; do
    # shellcheck disable=SC2016 # for the shell within
    sh -c 'while kill -0 "$1" 2>/dev/null; do
               n=0
               while [ $n -lt 100000 ]; do n=$((n + 1)); done
           done' busy $$ &
    loops="$loops $!"
done

# run NAME WHAT ARGUMENT...: ctest, and a line on how it went
run()
{
    log=$logs/$1.txt what=$2
    shift 2
    began=$(date +%s) verdict=passed
    ctest --test-dir "$build" --output-on-failure "$@" >"$log" 2>&1 || {
        verdict="FAILED: see $log"
        failed=$((failed + 1))
        sed -n '/The following tests FAILED/,$p' "$log"
    }
    printf '%-44s %6d s  %s\n' "$what" $(($(date +%s) - began)) "$verdict"
}

round=1
while [ "$round" -le "$rounds" ]; do
    run "quick-$round" "quick tests, round $round of $rounds" -j "$(nproc)" -LE slow
    round=$((round + 1))
done
tests=$(ctest --test-dir "$build" -N -L clock -LE slow | sed -n 's/^ *Test *#[0-9]*: //p')
[ -n "$tests" ] || {
    echo "busy: no test has the label clock" >&2
    exit 1
}
[ "$repeats" -eq 0 ] || for test in $tests; do
    run "$test" "$test, $repeats times" -R "^$test\$" --repeat "until-fail:$repeats"
done
[ $failed -eq 0 ] && echo "busy: all passed" || {
    echo "busy: $failed failed" >&2
    exit 1
}
