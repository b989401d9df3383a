#!/bin/bash
# slow_network.sh BUILD [ROUNDS] [RATE...] - what compressed gradients gain over a slow network:
# milliseconds of a step of resnet9 (batch 128) on two ranks for each compressor and each rate
# ("1gbit", "100mbit"), interleaved round by round, medians over rounds, and the bytes of a step.
#
# The network is a pair of virtual Ethernet devices between two namespaces of this machine, held to
# the rate by a token bucket; ranks talk over it by Open MPI's TCP. Needs root, ip, tc and Open MPI.
# Namespaces, devices and addresses (198.18.0.0/15, set aside for benchmarks) are the script's own
# and gone afterwards.
set -eu
cohort=$(realpath "$1")/cohort
rounds=${2:-5}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- 10gbit 1gbit 100mbit
steps=30
a=cohort-a-$$ b=cohort-b-$$ va=coh-a$(($$ % 100000)) vb=coh-b$(($$ % 100000))
for tool in ip tc mpiexec unshare; do
    command -v $tool >/dev/null || { echo "slow_network: needs $tool" >&2; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "slow_network: needs root for namespaces" >&2; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/cohort-bench-XXXXXX")
clean() { ip netns del "$a" 2>/dev/null || :; ip netns del "$b" 2>/dev/null || :; rm -rf "$work"; }
trap clean EXIT

ip netns add "$a"
ip netns add "$b"
ip link add "$va" netns "$a" type veth peer name "$vb" netns "$b"
ip -n "$a" addr add 198.18.0.1/24 dev "$va"
ip -n "$b" addr add 198.18.0.2/24 dev "$vb"
for n in "$a $va" "$b $vb"; do
    ip -n "${n% *}" link set "${n#* }" up
    ip -n "${n% *}" link set lo up
done

# mpiexec starts its daemon on the other host by this, as it would by ssh.
cat >"$work/agent" <<AGENT
#!/bin/sh
shift
exec ip netns exec $b unshare --uts sh -c "hostname $b; \$*"
AGENT
chmod +x "$work/agent"

cat >"$work/config.yaml" <<'YAML'
model: resnet9
data: {name: synthetic, shape: [3, 32, 32], classes: 10, samples: 1280}
batch: 128
epochs: 100
threads: 1
evaluate: false
checkpoint: off
YAML

median()
{
    sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

measure() # RATE NAME COMPRESS
{
    rm -rf "$work/run"
    ip netns exec "$a" unshare --uts sh -c "hostname $a; exec \"\$@\"" sh \
        mpiexec --allow-run-as-root --mca plm_rsh_agent "$work/agent" --mca pml ob1 \
        --mca btl tcp,self --mca btl_tcp_if_include 198.18.0.0/24 \
        --mca oob_tcp_if_include 198.18.0.0/24 --bind-to none \
        --host 198.18.0.1:1,198.18.0.2:1 -n 2 "$cohort" train "$work/config.yaml" --quiet \
        --run-dir "$work/run" -s max_steps=$steps -s log_every=1 \
        -s "strategy={name: sync, compress: $3}" >"$work/log" 2>&1 </dev/null ||
        { cat "$work/log" >&2; exit 1; }
    # Without the first steps of a run. Both figures are sums since its beginning.
    sed -n 's/.*"step":\([0-9]*\),.*"train_seconds":\([0-9.e-]*\),.*"bytes_sent":\([0-9]*\).*/\1 \2 \3/p' \
        "$work/run/metrics.jsonl" | awk -v ms="$work/ms" -v bytes="$work/bytes-$2" '
            $1 == 5 { first = $3 }
            $1 > 5 { print ($2 - before) * 1000 >ms; print ($3 - first) / ($1 - 5) >bytes }
            { before = $2 }'
    median "$work/ms" >>"$work/$1-$2"
    tail -n 1 "$work/bytes-$2" >"$work/bytes"
    mv "$work/bytes" "$work/bytes-$2"
}

set_rate()
{
    tc -n "$a" qdisc replace dev "$va" root tbf rate "$1" burst 256kb latency 200ms
    tc -n "$b" qdisc replace dev "$vb" root tbf rate "$1" burst 256kb latency 200ms
}

compressors="none bf16 topk-1% topk-0.1% powersgd-4 powersgd-2"
keys() # NAME
{
    case $1 in
    topk-1%) echo '{name: topk, ratio: 0.01}' ;;
    topk-0.1%) echo '{name: topk, ratio: 0.001}' ;;
    powersgd-*) echo "{name: powersgd, rank: ${1#powersgd-}}" ;;
    *) echo "$1" ;;
    esac
}

for rate in "$@"; do
    set_rate "$rate"
    for _ in $(seq "$rounds"); do
        for name in $compressors; do
            measure "$rate" "$name" "$(keys "$name")"
        done
    done
    base=$(median "$work/$rate-none")
    for name in $compressors; do
        median "$work/$rate-$name" | awk -v rate="$rate" -v name="$name" -v base="$base" \
            -v bytes="$(cat "$work/bytes-$name")" '{
            printf "%-8s %-11s %9.0f bytes a step  %8.2f ms  %6.2f\n", rate, name, bytes, $1, base / $1 }'
    done
done
