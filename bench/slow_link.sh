# slow_link.sh - two hosts with a slow link between them, made on this machine; sourced by benchmarks.
#
# The link is a pair of virtual Ethernet devices between two namespaces, held to a rate by a token
# bucket; ranks talk over it by Open MPI's TCP. Needs root, ip, tc and Open MPI. Namespaces, devices
# and addresses (198.18.0.0/15, set aside for benchmarks) are its own and gone at the end, and so is
# the folder $work.
a=cohort-a-$$ b=cohort-b-$$ va=coh-a$(($$ % 100000)) vb=coh-b$(($$ % 100000))
for tool in ip tc mpiexec unshare; do
    command -v $tool >/dev/null || { echo "$0: needs $tool" >&2; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "$0: needs root for namespaces" >&2; exit 77; }
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

# Two ranks, one on each host: their command.
link_run()
{
    ip netns exec "$a" unshare --uts sh -c "hostname $a; exec \"\$@\"" sh \
        mpiexec --allow-run-as-root --mca plm_rsh_agent "$work/agent" --mca pml ob1 \
        --mca btl tcp,self --mca btl_tcp_if_include 198.18.0.0/24 \
        --mca oob_tcp_if_include 198.18.0.0/24 --bind-to none \
        --host 198.18.0.1:1,198.18.0.2:1 -n 2 "$@" </dev/null
}

link_set_rate() # RATE
{
    tc -n "$a" qdisc replace dev "$va" root tbf rate "$1" burst 256kb latency 200ms
    tc -n "$b" qdisc replace dev "$vb" root tbf rate "$1" burst 256kb latency 200ms
}
