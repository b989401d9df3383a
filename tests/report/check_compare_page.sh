#!/bin/sh
# check_compare_page.sh PROGRAM - the page of `cohort compare` in a real browser, headless: nothing is
# written to its console, and speedup, accuracy, T_comp and T_sync in its document are those of table.csv and of
# the runs' summaries. Skipped where there is no Chromium.
set -eu
program=$1
# shellcheck source=tests/report/browser.sh
. "$(dirname "$0")/browser.sh"
write_net 512 1 4
# gnuplot's plots are of no use here.
mkdir bin && ln -s /bin/false bin/gnuplot
PATH=$folder/bin:$PATH "$program" compare net.yaml --strategies 'sync, {name: local, period: 4}' -n 1,2 \
    --set threads=1 --out both --quiet 2>log || fail "no comparison: $(cat log)"

open_page both/report.html
grep -q 'href="http\|src="http' dom.html && fail "the page asks for something outside of it"

# table ID: cells of a table of the page, a row a line, with | between them.
table()
{
    tr '\n' ' ' <dom.html | sed "s/.*<table id=\"$1\">//; s/<\/table>.*//; s/.*<tbody>//; s/<\/tr>/\n/g" |
        sed 's/<\/t[dh]>/|/g; s/<[^>]*>//g; s/&nbsp;/ /g; s/\xc2\xa0/ /g' | grep '|'
}

# same NAME A B: a number of the page and the one that it is made of, to the page's digits.
same()
{
    awk -v a="$2" -v b="$3" -v digits="${4:-0.006}" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && b != "" && d <= digits) }' ||
        fail "$1: the page has '$2', not $3"
}

# cell COLUMN STRATEGY RANKS: of table.csv
cell()
{
    awk -F, -v want="$1" -v strategy="\"$2\"" -v ranks="$3" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == want) at = i }
        $1 == strategy && $2 == ranks { print $at }' both/table.csv
}

# last CHART NAME LABEL: where a line of a chart ends
last()
{
    tr '\n' ' ' <dom.html | sed "s/.*id=\"$1\"//; s/<\/svg>.*//; s/<polyline/\n<polyline/g" |
        grep "^<polyline[^>]*data-run=\"$2\"[^>]*data-label=\"$3\"" | sed 's/.*data-last="\([^"]*\)".*/\1/'
}

steps=$(awk '$1 == "\"steps\":" { print $2 + 0 }' both/sync-2/summary.json)
for strategy in sync 'local period=4'; do
    row=$(table comparison-table | grep "^$strategy|2|")
    same "$strategy: speedup" "$(echo "$row" | cut -d'|' -f5)" "$(cell speedup "$strategy" 2)"
    same "$strategy: predicted" "$(echo "$row" | cut -d'|' -f6)" "$(cell predicted_speedup "$strategy" 2)"
    same "$strategy: accuracy" "$(echo "$row" | cut -d'|' -f8)" "$(cell test_accuracy "$strategy" 2)" 0.00006
    compute=$(cell compute_seconds "$strategy" 2) sync=$(cell sync_seconds "$strategy" 2)
    row=$(table step-times-table | grep "^$strategy|2|")
    same "$strategy: T_sync / T_comp" "$(echo "$row" | cut -d'|' -f5)" \
        "$(awk -v a="$sync" -v b="$compute" 'BEGIN { print a / b }')" 0.0006
    pays=$(awk -v a="$sync" -v b="$compute" 'BEGIN { print a / b < 1 ? "yes" : "no" }')
    [ "$(echo "$row" | cut -d'|' -f9)" = "$pays" ] || fail "$strategy: whether two ranks pay is not '$pays'"
    same "$strategy: T_comp in the chart" "$(last chart-step-times "$strategy" T_comp)" \
        "$(awk -v a="$compute" -v n="$steps" 'BEGIN { print 1000 * a / n }')" 0.0005
    same "$strategy: T_sync in the chart" "$(last chart-step-times "$strategy" T_sync)" \
        "$(awk -v a="$sync" -v n="$steps" 'BEGIN { print 1000 * a / n }')" 0.0005
    same "$strategy: predicted in the chart" "$(last chart-speedup "$strategy" predicted)" \
        "$(awk -v a="$sync" -v b="$compute" 'BEGIN { print 2 / (1 + a / b) }')" 0.0005
    row=$(table costs-table | grep "^$strategy|2|")
    same "$strategy: accuracy against sync" "$(echo "$row" | cut -d'|' -f10)" \
        "$(awk -v a="$(cell test_accuracy "$strategy" 2)" -v b="$(cell test_accuracy sync 2)" 'BEGIN { print a - b }')" 0.00006
done
same "sync: ideal in the chart" "$(last chart-speedup ideal '')" 2
[ "$(grep -o 'data-run="local-period-4-2"' dom.html | wc -l)" -ge 3 ] || fail "the runs' curves are not there"
