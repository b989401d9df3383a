#!/bin/sh
# Instructions of a training step and of an all-reduce, against the ones written down.
#
#   counts.sh BUILD [update]      BUILD: folder of a release build
#
# callgrind counts what a program executes, the same in every run however busy the machine is; for a
# build for ARM64 a plugin of qemu does (qemu_count.c), within `scripts/arm64.sh run`. Each piece of work is run a few times and a few times more: the difference is without the start. A
# count that is more than 3% off fails; `make update-counts` writes the new ones down.
#
# Counts depend on the compiler and on the instruction sets that kernels choose (valgrind shows no
# AVX-512, so these are AVX2's): those are the key of a line in counts.txt. Where no line has the
# key there is nothing to compare with: exit 77, skipped. A step with NEON, whose vectors are half as
# wide, may have 2.5 times the instructions of one with AVX2.
set -eu
build=$1
update=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
table=$here/counts.txt
margin=3
neon_bound=2.5

skip()
{
    printf 'skipped: %s\n' "$1"
    exit 77
}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export OMP_NUM_THREADS=1

# The program's architecture is at byte 18 of its file; 183 is ARM64.
if [ "$(od -An -tu2 -j18 -N2 "$build/cohort" | tr -d ' ')" = 183 ]; then
    qemu=$(qemu-aarch64 --version 2>/dev/null | sed -n 's/.* version \([0-9]*\)\..*/\1/p')
    [ -n "$qemu" ] && [ -n "${QEMU_LD_PREFIX:-}" ] || skip "instructions of ARM64 are counted by qemu alone"
    cc -shared -fPIC -DQEMU_API=$((qemu >= 9 ? 2 : 1)) "$here/qemu_count.c" -o "$dir/count.so" ||
        skip "no compiler here for a plugin of qemu"
    counting() { QEMU_PLUGIN="$dir/count.so,out=$dir/out" "$@"; }
    trying() { "$@"; }
else
    command -v valgrind >/dev/null || skip "no valgrind here (apt-get install valgrind)"
    counting() { valgrind --tool=callgrind --callgrind-out-file="$dir/out.%p" "$@"; }
    trying() { valgrind --tool=none -q "$@"; }
fi

# Instructions of a command and of the processes that it starts; of those the busiest counts: the
# others only start and wait.
instructions()
{
    rm -f "$dir"/out.*
    counting "$@" >"$dir/stdout" 2>"$dir/stderr" || {
        tail -n 5 "$dir/stderr" >&2
        return 1
    }
    awk '/^totals:/ && $2 > most { most = $2 } END { printf "%d\n", most }' "$dir"/out.*
}

# What one more of N costs: per_unit FEW MANY COMMAND..., where @ stands for the number.
per_unit()
{
    few=$1 many=$2
    shift 2
    a=$(instructions $(echo "$*" | sed "s/@/$few/g"))
    b=$(instructions $(echo "$*" | sed "s/@/$many/g"))
    echo $(((b - a) / (many - few)))
}

cat >"$dir/step.yaml" <<'YAML'
model: mnist-net
data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 256}
batch: 16
threads: 1
loader: {threads: 0}
optimizer: {name: sgd, lr: 0.01, momentum: 0.5}
YAML

step()
{
    per_unit 1 3 "$build/cohort" bench train "$dir/step.yaml" -n 1 --warmup 1 --rounds 1 --steps @
}

allreduce()
{
    per_unit 10 "$3" "$build/tests/perf/counted" "$1" "$2" @
}

key=$(trying "$build/tests/perf/counted" key 2>/dev/null) ||
    skip "valgrind cannot run this build here"
case $key in
*AVX2* | *NEON*) ;;
*) skip "neither AVX2 nor NEON here, so nothing to compare with: $key" ;;
esac
known=$(awk -v key="$key" '$1 == key' "$table")
[ -n "$known" ] || [ "$update" ] ||
    skip "no counts for $key; \`make update-counts\` would add them"

{
    printf '%s mnist-net-step-batch-16 %s\n' "$key" "$(step)"
    printf '%s allreduce-2-ranks-1-KiB %s\n' "$key" "$(allreduce allreduce 1024 110)"
    printf '%s allreduce-waited-for-1-KiB %s\n' "$key" "$(allreduce alone 1024 1010)"
    printf '%s allreduce-2-ranks-4-MiB %s\n' "$key" "$(allreduce allreduce 4194304 14)"
} >"$dir/new"

if [ "$update" ]; then
    awk -v key="$key" '$1 != key' "$table" >"$dir/table"
    cat "$dir/new" >>"$dir/table"
    sort "$dir/table" >"$table"
    cat "$dir/new"
    exit 0
fi

awk -v margin="$margin" -v bound="$neon_bound" '
FNR == NR {
    want[$1, $2] = $3
    if ($1 ~ /AVX2/)
        avx2[$2] = $3
    next
}
$1 ~ /NEON/ && $2 ~ /step/ && $3 > bound * avx2[$2] {
    printf "%-24s %12d  more than %s times that of AVX2, %d\n", $2, $3, bound, avx2[$2]
    bad = 1
}
{
    old = want[$1, $2]
    if (!old) {
        printf "%-24s %12d  not in counts.txt\n", $2, $3
        bad = 1
        next
    }
    off = 100 * ($3 - old) / old
    printf "%-24s %12d  was %12d  %+.2f%%", $2, $3, old, off
    if (off > margin || off < -margin) {
        printf "  %s by more than %d%%", (off > 0 ? "MORE" : "less"), margin
        bad = 1
    }
    printf "\n"
}
END {
    if (bad)
        print "where it is meant, `make update-counts` writes the new counts down"
    exit bad
}' "$table" "$dir/new"
