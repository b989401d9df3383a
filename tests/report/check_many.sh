#!/bin/sh
# check_many.sh PROGRAM - 20 runs of 100,000 points each in one page of `cohort report`: it opens in a real browser,
# headless, in less than two seconds, with every curve, and has less than 5 MB a run. Skipped where there is no Chromium.
set -eu
program=$1
# shellcheck source=tests/report/browser.sh
. "$(dirname "$0")/browser.sh"
write_net 256 3 1
"$program" train net.yaml --run-dir first --quiet --profile >/dev/null 2>&1
for run in 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20; do
    cp -r first "run-$run"
    awk -v run="$run" '
        NR == 1 { print }
        END {
            for (i = 1; i <= 100000; i++)
                printf "{\"event\":\"step\",\"step\":%d,\"wall_seconds\":%.2f,\"train_loss\":%.5f,\"train_accuracy\":%.4f,\"samples_per_second\":%.1f,\"lr\":0.1,\"gradient_norm\":%.4f}\n",
                    i, i / 100, 1 + run / 10 + i * run % 77 / 100, i % 97 / 100, 1000 + i % 89, i * run % 83 / 10
        }' first/metrics.jsonl >"run-$run/metrics.jsonl"
done
sed -i 's/^seed:.*/seed: 7/' run-07/config.yaml
"$program" report run-* -o page.html --quiet
size=$(wc -c <page.html)
open_page page.html
tr '\n' ' ' <dom.html | sed 's/.*id="config-differs"//; s/<\/table>.*//' | grep -q '>seed<.*>run-07</th><td>7<' ||
    fail "the key that differs is not in its table"
ready=$(sed -n 's/.*data-ready="\([0-9]*\)".*/\1/p' dom.html | head -n 1)
curves=$(grep -o 'data-run="run-[0-9]*" data-points="[0-9]*"' dom.html | sort -u | wc -l)
echo "open after ${ready:-?} ms, $((size / 20)) bytes a run, curves of $curves runs"
[ -n "$ready" ] && [ "$ready" -lt 2000 ] && [ $((size / 20)) -lt 5000000 ] && [ "$curves" -ge 20 ]
