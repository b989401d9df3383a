#!/bin/sh
# watch.sh - what `cohort watch` costs a training: the rate with three viewers and without any, in blocks that
# take turns within one training, and the mean difference of neighbours with its 95% confidence interval.
#
# A viewer is what a browser asks for: the page, then its events as they come. They connect before
# every second block and leave after it, out of the time that is measured: three starts of curl in each block would cost
# more than what they wait for. Pairs begin with and without them in turn, so that a machine that gets
# faster or slower counts for neither. Steps and seconds are those of the training's own events. The server
# runs all the time, on the training's cores, as do the viewers. Its processor time, which is much less noisy, is printed as a
# share of a core, with and without viewers, and so is that of evaluations, which get a core only while nobody else wants one.
#
#   RANKS='1 2'  PAIRS=50  BLOCK=2 (seconds)  VIEWERS=3
#   COHORT=build/cohort     the program
#
# Needs MNIST below $COHORT_DATA (../shared/data beside the source tree), curl, and a machine with nothing else
# to do. Prints a line for each number of ranks and appends it to bench/results/watch.json.
set -eu
cd "$(dirname "$0")/.."
. bench/lib.sh
COHORT=$(realpath "${COHORT:-build/cohort}")
PAIRS=${PAIRS:-50} BLOCK=${BLOCK:-2} VIEWERS=${VIEWERS:-3}
data=$(realpath "${COHORT_DATA:-../shared/data}/mnist") || fail "no MNIST"
results=$(realpath "${RESULTS:-bench/results}")/watch.json
dir=$(mktemp -d)
pids= viewers=
end()
{
    for pid in $viewers $pids; do
        kill "$pid" 2>/dev/null || :
        wait "$pid" 2>/dev/null || :
    done
    viewers= pids=
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

# The steps and the seconds of the last event that is whole.
now()
{
    tail -n 3 "$dir/run/metrics.jsonl" | grep '"event":"step".*}$' | tail -n 1 |
        sed 's/.*"step":\([0-9]*\).*"wall_seconds":\([0-9.]*\).*/\1 \2/'
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

connect()
{
    k=0
    while [ $k -lt "$VIEWERS" ]; do
        k=$((k + 1))
        curl -sS -b "$cookie" "http://$host$path" >"$dir/page"
        after=$(sed -n 's/.*"after":\([0-9]*\).*/\1/p' "$dir/page" | head -n 1)
        curl -sSN -b "$cookie" "http://$host${path}events?after=$after" >>"$dir/events" 2>/dev/null &
        viewers="$viewers $!"
    done
}

leave()
{
    for pid in $viewers; do
        kill "$pid" 2>/dev/null || :
        wait "$pid" 2>/dev/null || :
    done
    viewers=
}

# Seconds on a core: of the server, and of the evaluations that have ended.
used()
{
    { cat "/proc/$server/schedstat" && cat "/proc/$server/stat" && getconf CLK_TCK; } | awk '
        NR == 1 { on = $1 / 1e9 }
        NR == 2 { children = $16 + $17 }
        NR == 3 { print on, children / $1 }'
}

# block with|without: appends steps per second, and what was used to WITH-used
block()
{
    [ "$1" = without ] || { connect && sleep 0.3; }
    begin="$(now) $(used) $(date +%s.%N)"
    sleep "$BLOCK"
    stop="$(now) $(used) $(date +%s.%N)"
    leave
    echo "$begin $stop" | awk '{ printf "%.9g ", ($6 - $1) / ($7 - $2) }' >>"$dir/$1"
    echo "$begin $stop" | awk '{ print $8 - $3, $9 - $4, $10 - $5 }' >>"$dir/$1-used"
}

share() # with|without COLUMN: percent of a core
{
    awk -v c="$2" '{ used += $c; all += $3 } END { printf "%.3f", 100 * used / all }' "$dir/$1-used"
}

measure() # RANKS
{
    rm -rf "$dir/run" "$dir"/with* "$dir/events"
    on=$(cores "$1")
    taskset -c "$on" "$COHORT" train configs/mnist-net.yaml -n "$1" --set threads=1 --set "data.path=$data" \
        --set epochs=1000000 --set log_every=10 --set evaluate=false --set 'checkpoint.every=5000 steps' --run-dir "$dir/run" -q >"$dir/log" 2>&1 &
    pids=$!
    wait_for grep -q '"event":"step"' "$dir/run/metrics.jsonl" 2>/dev/null
    taskset -c "$on" "$COHORT" watch "$dir/run" >"$dir/address" &
    server=$!
    pids="$pids $server"
    wait_for grep -q http "$dir/address"
    login
    sleep 2
    pair=0
    while [ $pair -lt "$PAIRS" ]; do
        pair=$((pair + 1))
        if [ $((pair % 2)) = 0 ]; then block with && block without; else block without && block with; fi
    done
    got=$(grep -c '^data:' "$dir/events" || :)
    [ "$got" -ge $((PAIRS * VIEWERS)) ] || fail "the viewers got $got events of $PAIRS blocks"
    end
    { cat "$dir/with" && echo && cat "$dir/without" && echo; } | awk -v ranks="$1" -v viewers="$VIEWERS" -v block="$BLOCK" \
        -v server="$(share with 1)" -v alone="$(share without 1)" -v evaluations="$(share with 2)" '
        NR == 1 { n = NF; for (i = 1; i <= n; i++) with[i] = $i }
        NR == 2 {
            for (i = 1; i <= n; i++) {
                d[i] = 100 * (with[i] / $i - 1)
                rate += $i / n
                mean += d[i] / n
            }
            for (i = 1; i <= n; i++) sd += (d[i] - mean) ^ 2 / (n - 1)
            sd = sqrt(sd)
            half = (1.96 + 2.4 / (n - 1)) * sd / sqrt(n) # of Student, to 1% for 20 pairs or more
            printf "{\"bench\": \"watch\", \"ranks\": %d, \"viewers\": %d, \"pairs\": %d, \"block_s\": %g, \"steps_per_s\": %.0f, ", ranks, viewers, n, block, rate
            printf "\"difference_percent\": %.3f, \"low\": %.3f, \"high\": %.3f, \"sd\": %.3f, ", mean, mean - half, mean + half, sd
            printf "\"server_percent_of_core\": %s, \"without_viewers\": %s, \"evaluations_percent_of_core\": %s}\n", server, alone, evaluations
        }' | tee -a "$results"
}

mkdir -p "$(dirname "$results")"
machine >>"$results"
for ranks in ${RANKS:-1 2}; do
    measure "$ranks"
done
