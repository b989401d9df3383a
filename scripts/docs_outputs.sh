#!/bin/sh
# docs_outputs.sh check|update quick|all PAGE BUILD - the outputs that a page shows, beside those that
# its commands give today.
#
# A block that begins with "$ command" is run, command by command, in a fresh folder of the page that
# has configs/ and the program as `cohort` and build/cohort. Figures, paths and kernels are masked: two
# texts are the same if they say the same of other numbers. A line `...` of the page stands for any
# lines. Lines of progress, which a slow machine has more of, are left out. `update` puts today's lines in the place of those that differ.
#
# A comment in the line above a block says what it needs, by words parted by commas:
#   <!-- outputs: mnist, fashion-mnist, imagenette, text, mpi, gnuplot, onnx -->   skipped where it is missing
#   <!-- outputs: slow -->         only with `all`
#   <!-- outputs: not run, ... --> never: several hosts, hours, or figures of one machine
set -eu
mode=$1 part=$2 page=$3 build=$(cd "$4" && pwd)
source=$(cd "$(dirname "$0")/.." && pwd)
page=$source/$page
folder=$(mktemp -d "${TMPDIR:-/tmp}/cohort-docs-XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP
mkdir -p "$folder/blocks" "$folder/bin" "$folder/page/build" "$folder/page/runs"
ln -s "$build/cohort" "$folder/bin/cohort"
printf '#!/bin/sh\nexec "%s/tests/mpiexec.sh" "%s" "$@"\n' "$source" "$(command -v mpiexec || echo none)" >"$folder/bin/mpiexec"
chmod +x "$folder/bin/mpiexec"
ln -s "$build/cohort" "$folder/page/build/cohort"
ln -s "$source/configs" "$folder/page/configs"
data=${COHORT_DATA:-$source/../shared/data}
if [ -d "$data" ]; then
    mkdir "$folder/shared"
    ln -s "$(cd "$data" && pwd)" "$folder/shared/data"
fi
# The sets that configs name, where a user has them.
export XDG_DATA_HOME="$folder/sets"
mkdir -p "$XDG_DATA_HOME/cohort"
for name in mnist cifar10; do
    [ ! -d "$folder/shared/data/$name" ] || ln -s "$folder/shared/data/$name" "$XDG_DATA_HOME/cohort/$name"
done

# blocks/N: the lines of each block that is a session; blocks/N.at: its first line, and its comment
awk -v to="$folder/blocks/" '
/^<!-- outputs: .*-->$/ { note = $0; noted = FNR; next }
/^```/ && !inside { inside = 1; first = FNR + 1; session = 0; next }
/^```/ && inside {
    inside = 0
    if (session) {
        close(to n)
        close(to n ".at")
    }
    next
}
inside && FNR == first && /^\$ / {
    session = 1
    n++
    text = noted == FNR - 2 ? note : ""
    sub(/^<!-- outputs: */, "", text)
    sub(/ *-->$/, "", text)
    print FNR " " text > (to n ".at")
}
inside && session { print > (to n) }
END { print n + 0 > (to "count") }' "$page"

# Whether a block can be run; says why not.
may_run() {
    case ",$1," in
    *", not run"* | *",not run"*) echo "not run: ${1#not run, }"; return 1 ;;
    esac
    for need in $(echo "$1" | tr ',' ' '); do
        case $need in
        slow) [ "$part" = all ] || { echo "slow: see make test-docs"; return 1; } ;;
        mnist | imagenette | text) [ -d "$folder/shared/data/$need" ] || { echo "no $need"; return 1; } ;;
        fashion-mnist) [ -d /usr/share/datasets/fashion-mnist ] || { echo "no $need"; return 1; } ;;
        mpi)
            command -v mpiexec >/dev/null && "$build/cohort" doctor 2>/dev/null |
                grep -q '^ok *mpi ' || { echo "no MPI"; return 1; }
            ;;
        gnuplot) command -v gnuplot >/dev/null || { echo "no gnuplot"; return 1; } ;;
        onnx)
            "$build/cohort" doctor 2>/dev/null | grep -qi '^ok *onnx' || { echo "no ONNX"; return 1; }
            ;;
        *) echo "$page: unknown need '$need'" >&2; exit 1 ;;
        esac
    done
}

# What may differ from run to run and from machine to machine.
mask() {
    sed -E \
        -e 's/[0-9a-f]{64}/HASH/g' \
        -e 's/(^|[ (])(\/[A-Za-z0-9_.+-]+)+/\1PATH/g' \
        -e 's/\b(cpu-general|cpu|onednn|ref|sample-lanes|winograd|small-images|gemm|channel-blocks|per-sample|windows|any-layout)\b/KERNEL/g' \
        -e 's/-?[0-9][0-9,]*(\.[0-9]+)?(e[-+]?[0-9]+)?/N/g' \
        -e 's/\b(ms|us|s|min|KiB|MiB|GiB|B)\b/U/g' \
        -e 's/N U N U/N U/g' \
        -e 's/,? (the best, the latest|the best|the latest)//g' \
        -e 's/[#0-9.=-]{4,}/BAR/g' \
        -e 's/ \(best N in epoch N\)//' \
        -e 's/[[:space:]]+/ /g' -e 's/ $//' "$1"
}

# The lines of the page ($1) against those of today ($2), both masked ($1.m, $2.m). Prints what the
# page should have; exit code 1: that is something else.
settle() {
    mask "$1" >"$1.m"
    mask "$2" >"$2.m"
    awk -v old="$1" -v new="$2" '
    function take(name, to,   n, line) {
        n = 0
        while ((getline line < name) > 0)
            to[++n] = line
        return n
    }
    BEGIN {
        n = take(old, was)
        take(old ".m", a)
        m = take(new, is)
        take(new ".m", b)
        # fits[i, j]: lines i.. of the page stand for lines j.. of today
        fits[n + 1, m + 1] = 1
        for (i = n; i >= 1; i--)
            for (j = m + 1; j >= 1; j--)
                if (was[i] == "...")
                    fits[i, j] = fits[i + 1, j] || (j <= m && fits[i, j + 1])
                else
                    fits[i, j] = j <= m && a[i] == b[j] && fits[i + 1, j + 1]
        if (fits[1, 1]) {
            for (i = 1; i <= n; i++)
                print was[i]
            exit 0
        }
        for (j = 1; j <= m; j++)
            print is[j]
        exit 1
    }'
}

# One command of a block and what the page shows of it, to "$folder/result".
run_one() {
    command=$(sed -e '1s/^\$ //' "$folder/command")
    (
        cd "$folder/page"
        PATH=$folder/bin:$PATH COLUMNS=100 TERM=dumb sh -c "$command" </dev/null 2>&1 || true
    ) | sed -e "s|$folder/page/||g" -e "s|$build/cohort|build/cohort|g" -e "s|$source/||g" \
        -e 's/ | input-bound: .*//' | grep -v -e '^cohort: config: ' \
        -e '^ *rank [0-9]* is late by ' | grep -v '^epoch [0-9/]* *[0-9]*%  .* left$' | awk '
        # Who was late on a busy machine.
        /^  "stragglers": \[$/ { late = 1 }
        !late { print }
        late && /^  \],?$/ { late = 0; print "  \"stragglers\": []," }' >"$folder/today" || true
    cat "$folder/command" >>"$folder/result"
    # The page may show nothing of what a command says.
    if [ ! -s "$folder/shown" ]; then
        : >"$folder/lines"
    elif settle "$folder/shown" "$folder/today" >"$folder/lines"; then
        :
    else
        differs=1
        if [ "$mode" = check ]; then
            echo "$(basename "$page"):$at: \`$(head -n 1 "$folder/command" | cut -c3-)\` gives"
            sed 's/^/    /' "$folder/lines"
            echo "  where the page has"
            sed 's/^/    /' "$folder/shown"
        fi
    fi
    cat "$folder/lines" >>"$folder/result"
}

# Cuts a block into commands with their lines; a command goes on behind a backslash.
run_block() {
    : >"$folder/result"
    : >"$folder/command"
    : >"$folder/shown"
    more=0
    while IFS= read -r line; do
        case $line in
        '$ '*)
            [ ! -s "$folder/command" ] || run_one
            printf '%s\n' "$line" >"$folder/command"
            : >"$folder/shown"
            more=0
            ;;
        *)
            if [ $more = 1 ]; then
                printf '%s\n' "$line" >>"$folder/command"
            else
                printf '%s\n' "$line" >>"$folder/shown"
                continue
            fi
            ;;
        esac
        case $line in *\\) more=1 ;; *) more=0 ;; esac
    done <"$1"
    run_one
}

count=$(cat "$folder/blocks/count")
ran=0 skipped=0 bad=0 block=1
while [ "$block" -le "$count" ]; do
    read -r at note <"$folder/blocks/$block.at" || true
    if why=$(may_run "$note"); then
        differs=0
        run_block "$folder/blocks/$block"
        ran=$((ran + 1))
        bad=$((bad + differs))
        [ $differs = 0 ] || cp "$folder/result" "$folder/blocks/$block.new"
    else
        echo "skipped: $(basename "$page"):$at: $why"
        skipped=$((skipped + 1))
    fi
    block=$((block + 1))
done

if [ "$mode" = update ] && [ $bad -gt 0 ]; then
    awk -v from="$folder/blocks/" '
    /^```/ && !inside { inside = 1; first = FNR + 1; session = 0; print; next }
    /^```/ && inside { inside = 0; session = 0; print; next }
    inside && FNR == first && /^\$ / {
        n++
        if ((getline line < (from n ".new")) > 0) {
            session = 1
            print line
            while ((getline line < (from n ".new")) > 0)
                print line
        }
    }
    !session { print }' "$page" >"$folder/page.md"
    cp "$folder/page.md" "$page"
    echo "$(basename "$page"): $bad blocks are new"
    exit 0
fi
echo "$(basename "$page"): $ran blocks run, $skipped skipped, $bad differ"
[ $bad = 0 ] || exit 1
[ "$ran" -gt 0 ] || [ "$skipped" = 0 ] || exit 77
