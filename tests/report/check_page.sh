#!/bin/sh
# check_page.sh PROGRAM - the page of `cohort report` in a real browser, headless: nothing is written to
# its console, the numbers of the runs are in its document, names of runs are text and no markup, and
# nothing outside the file is asked for. Skipped where there is no Chromium.
set -eu
program=$1
# shellcheck source=tests/report/browser.sh
. "$(dirname "$0")/browser.sh"
write_net 256 3 1
"$program" train net.yaml --run-dir 'runs/a' -n 2 --quiet --profile >/dev/null 2>&1
"$program" train net.yaml --run-dir 'runs/<b>x' --quiet --set optimizer.lr=0.05
"$program" report runs/* -o page.html --quiet

open_page page.html
! grep -q '<b>x' dom.html || fail "the name of a run has become markup"
grep -q 'href="http\|src="http' dom.html && fail "the page asks for something outside of it"

# number KEY of a run's summary, with 4 decimals as the page has it
number()
{
    awk -v key="\"$2\":" '$1 == key { printf "%.4f", $2 }' "runs/$1/summary.json"
}
for run in a '<b>x'; do
    for key in best_test_accuracy best_test_loss; do
        value=$(number "$run" $key)
        [ -n "$value" ] && grep -q ">$value<" dom.html || fail "$run: $key $value is not in the page"
    done
done
# The last point of the curve is that of the last event.
last=$(grep '"event":"step"' runs/a/metrics.jsonl | tail -n 1 | sed 's/.*"train_loss":\([0-9.e-]*\).*/\1/')
awk -v last="$last" '
    match($0, /id="chart-loss".*/) {
        rest = substr($0, RSTART)
        match(rest, /data-run="a" data-points="[0-9]*" data-last="[^"]*"/)
        split(substr(rest, RSTART, RLENGTH), part, "\"")
        d = part[6] - last
        found = part[4] == 24 && d * d < 1e-10 * last * last
    }
    END { exit !found }' dom.html || fail "the curve of the loss does not end at $last"
grep -q 'id="confusion-0"' dom.html || fail "there is no confusion matrix"
[ "$(grep -o 'data:image/jpeg;base64,' dom.html | wc -l)" -ge 24 ] || fail "there are no samples"
[ "$(grep -o '<tr class="differs"><th scope="row">[a-z]*' dom.html | wc -l)" -ge 1 ] ||
    fail "the keys that differ are not marked"
grep -o 'id="event-table".*' dom.html | sed 's/<tr/\n<tr/g; s/<\/tbody>.*//' | grep '>a</th>' | tail -n 1 |
    grep -q '>end<' || fail "the checkpoints of a run are not before its end"

for section in layers-0 layers-1; do
    tr '\n' ' ' <dom.html | sed "s/.*id=\"$section\"//; s/<\/section>.*//" | grep -q '>linear<' ||
        fail "layers have no operators, with a profile or without one"
done
tr '\n' ' ' <dom.html | sed 's/.*id="config-table"//; s/<\/table>.*//' | grep -q '>auto<' ||
    fail "a string of the config is not shown as it is"

# A long run: few points in the file, and none of the extremes lost.
cp -r runs/a long
{
    head -n 1 runs/a/metrics.jsonl
    awk 'BEGIN {
        for (i = 1; i <= 100000; i++)
            printf "{\"event\":\"step\",\"step\":%d,\"wall_seconds\":%.2f,\"train_loss\":%s,\"lr\":0.1}\n", i,
                i / 100, i == 54321 ? "77.5" : 1 + i % 7 / 10
    }'
} >long/metrics.jsonl
"$program" report long -o long.html --samples 0 --quiet
[ "$(wc -c <long.html)" -lt 5242880 ] || fail "a run of 100,000 points has more than 5 MiB"
grep -q '77.5' long.html || fail "the highest of 100,000 points is not in the page"
grep -q '"points_of":100000' long.html || fail "the page does not say how many points there were"

# A run of fewer steps than log_every: its curves are those of its epochs, metrics among them.
write_net 128 3 50
"$program" train net.yaml --run-dir short --quiet --set 'metrics=[f1_macro]'
"$program" report short -o short.html --samples 0 --quiet
open_page short.html
for id in loss accuracy test-loss test-accuracy train-f1_macro test-f1_macro rate lr; do
    tr '\n' ' ' <dom.html | grep -o "id=\"chart-$id\".*" | grep -o 'data-run="[^"]*" data-points="[0-9]*"' | head -n 1 |
        grep -q 'data-run="short" data-points="3"' || fail "chart-$id does not have the run's epochs"
done
tr '\n' ' ' <dom.html | sed 's/.*id="epochs"//; s/<\/table>.*//' | grep -q 'test f1_macro' ||
    fail "a metric is not in the table of epochs"
