#!/bin/sh
# watch.sh - what `cohort watch` costs a training: its rate with three viewers and without any, in blocks of half a second that
# take turns within one training, and the mean difference of neighbours with its 95% confidence interval.
#
# bench/watch_blocks.c has the viewers and takes the figures: the rate by the training's own events, and from the scheduler,
# which is much less noisy, the processor time of a step in all ranks, how long threads of ranks were ready and had no core,
# and the processor time of the server and of its evaluations. Pairs begin with and without viewers in turn, so that a machine
# that gets faster or slower counts for neither. The server runs all the time, on the training's cores, as do the viewers.
#
#   RANKS='1 2'  PAIRS=300  BLOCK=0.5 (seconds)  VIEWERS=3
#   COHORT=build/cohort     the program
#   BLOCKS=FILE             blocks are added to FILE-RANKS, and what is there already counts: to measure in pieces
#
# Needs MNIST below $COHORT_DATA (../shared/data beside the source tree), cc, curl, and a machine with nothing else
# to do: three blocks for each pair. Prints a line for each number of ranks and appends it to bench/results/watch.json.
set -eu
cd "$(dirname "$0")/.."
. bench/lib.sh
COHORT=$(realpath "${COHORT:-build/cohort}")
PAIRS=${PAIRS:-300} BLOCK=${BLOCK:-0.5} VIEWERS=${VIEWERS:-3}
data=$(realpath "${COHORT_DATA:-../shared/data}/mnist") || fail "no MNIST"
results=$(realpath "${RESULTS:-bench/results}")/watch.json
dir=$(mktemp -d)
pids=
end()
{
    for pid in $pids; do
        kill "$pid" 2>/dev/null || :
        wait "$pid" 2>/dev/null || :
    done
    pids=
}
trap 'end; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

# Until COMMAND succeeds, for a quarter of a minute.
wait_for()
{
    n=0
    until "$@"; do
        n=$((n + 1))
        [ $n -lt 150 ] || fail "waited in vain: $*"
        sleep 0.1
    done
}

login()
{
    # host:port, token
    address=$(sed -n 's/.*http:\/\/\([0-9.:]*\)\/#\(.*\)/\1 \2/p' "$dir/address")
    host=${address% *}
    path=$(curl -sS -D "$dir/head" --data-binary "${address#* }" "http://$host/login")
    cookie=$(sed -n 's/^[Ss]et-[Cc]ookie: \([^;]*\).*/\1/p' "$dir/head")
    [ -n "$cookie" ] || fail "no login at $host"
}

# Mean difference of neighbours with its 95% interval, and for the rate the median, whose interval needs no distribution.
summary()
{
    awk -v ranks="$1" -v viewers="$VIEWERS" -v block="$BLOCK" '
        function interval(name, d, n,    i, mean, sd, half) {
            for (i = 1; i <= n; i++) mean += d[i] / n
            for (i = 1; i <= n; i++) sd += (d[i] - mean) ^ 2 / (n - 1)
            sd = sqrt(sd)
            half = (1.96 + 2.4 / (n - 1)) * sd / sqrt(n) # of Student, to 1% for 20 pairs or more
            printf "\"%s\": {\"mean\": %.3f, \"low\": %.3f, \"high\": %.3f, \"sd\": %.3f}, ", name, mean, mean - half, mean + half, sd
        }
        function sort(v, n,    i, k, x) {
            for (i = 2; i <= n; i++) {
                x = v[i]
                for (k = i - 1; k >= 1 && v[k] > x; k--) v[k + 1] = v[k]
                v[k + 1] = x
            }
        }
        {
            pair = int((NR + 1) / 2)
            rate[$1, pair] = $3 / $2
            step[$1, pair] = $4 / $3
            delay[$1, pair] = 100 * $5 / $2
            all[$1] += $2
            steps[$1] += $3
            server[$1] += $6
            evaluations[$1] += $7
            events[$1] += $8
        }
        END {
            n = int(NR / 2)
            for (i = 1; i <= n; i++) {
                slower[i] = 100 * (rate[1, i] / rate[0, i] - 1)
                longer[i] = 100 * (step[1, i] / step[0, i] - 1)
                later[i] = delay[1, i] - delay[0, i]
            }
            printf "{\"bench\": \"watch\", \"ranks\": %d, \"viewers\": %d, \"pairs\": %d, \"block_s\": %g, ", ranks, viewers, n, block
            printf "\"steps_per_s\": %.1f, \"events\": %d, ", steps[0] / all[0], events[1]
            interval("rate_percent", slower, n)
            interval("processor_time_of_a_step_percent", longer, n)
            interval("ready_without_a_core_percent", later, n)
            sort(slower, n)
            far = int(0.98 * sqrt(n))
            printf "\"rate_median_percent\": {\"median\": %.3f, \"low\": %.3f, \"high\": %.3f}, ", slower[int((n + 1) / 2)], slower[int(n / 2) - far], slower[int(n / 2) + 1 + far]
            printf "\"server_percent_of_core\": [%.3f, %.3f], ", 100 * server[1] / all[1], 100 * server[0] / all[0]
            printf "\"evaluations_percent_of_core\": [%.3f, %.3f]}\n", 100 * evaluations[1] / all[1], 100 * evaluations[0] / all[0]
        }' "$blocks"
}

measure() # RANKS
{
    rm -rf "$dir/run"
    blocks=${BLOCKS:+$BLOCKS-$1}
    blocks=${blocks:-$dir/blocks-$1}
    on=$(cores "$1")
    taskset -c "$on" "$COHORT" train configs/mnist-net.yaml -n "$1" --set threads=1 --set "data.path=$data" \
        --set epochs=1000000 --set evaluate=false --set 'checkpoint.every=5000 steps' --run-dir "$dir/run" -q >"$dir/log" 2>&1 &
    training=$!
    pids=$training
    wait_for grep -q '"event":"step"' "$dir/run/metrics.jsonl" 2>/dev/null
    taskset -c "$on" "$COHORT" watch "$dir/run" >"$dir/address" &
    server=$!
    pids="$pids $server"
    wait_for grep -q http "$dir/address"
    login
    sleep 2
    taskset -c "$on" "$dir/watch_blocks" "${host##*:}" "$cookie" "$path" "$dir/run/metrics.jsonl" "$training" "$server" \
        "$VIEWERS" "$PAIRS" "$BLOCK" >>"$blocks"
    end
    summary "$1" | tee -a "$results"
}

cc -std=c11 -D_GNU_SOURCE -O2 bench/watch_blocks.c -o "$dir/watch_blocks" || fail "bench/watch_blocks.c does not compile"
mkdir -p "$(dirname "$results")"
machine >>"$results"
for ranks in ${RANKS:-1 2}; do
    measure "$ranks"
done
