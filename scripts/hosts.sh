# hosts.sh - hosts of a network that lie within this machine, to be sourced: each has a network, a
# name, processes, /dev/shm and /tmp of its own, and an sshd that the others reach. Needs root.
#
#   hosts_missing                   why there can be none here; empty: nothing is missing
#   hosts_start FOLDER N            n1 ... nN, joined by a switch; FOLDER, new, is the same on all
#   hosts_on HOST COMMAND...        run it there
#   hosts_rate HOST RATE            hold what it sends to "1gbit", "100mbit"
#   hosts_unplug HOST, hosts_plug HOST    its cable
#   hosts_shape HOST LINE...        its cable delays, loses, ... (tests/network/wire.c)
#   hosts_part HOST HOST            these two no longer reach each other; hosts_join: all do
#   hosts_freeze HOST, hosts_thaw HOST    all its processes stand still
#   hosts_power_off HOST            its processes are gone at once, and nobody is told
#   hosts_power_on HOST             it starts anew
#   hosts_stop                      all of them; to be called at exit
#
# Set before a host starts: hosts_wire, the program of tests/network/wire.c, makes its cable one for
# hosts_shape, with hosts_seed; hosts_skew_nN, seconds by which its clocks are ahead, with hosts_skew,
# the library of tests/network/skew.c.
#
# Addresses are 198.18.0.1 and so on (set aside for tests, RFC 2544), and lie in namespaces alone:
# nothing of the machine's own network is touched, and all is gone when this shell is.
# shellcheck shell=sh

hosts_missing()
{
    for tool in ip tc unshare nsenter setpriv ssh ssh-keygen; do
        command -v "$tool" >/dev/null || {
            echo "needs $tool (Debian: iproute2, util-linux, openssh-client)"
            return 0
        }
    done
    [ -x /usr/sbin/sshd ] || {
        echo "needs sshd (Debian: openssh-server)"
        return 0
    }
    [ "$(id -u)" = 0 ] || {
        echo "needs root, for namespaces"
        return 0
    }
    unshare -n -m -u -i -p -f --mount-proc sh -c 'mount -t tmpfs tmpfs /dev/shm &&
        ip link add hosts0 type bridge && ip link add hosts1 type veth peer name hosts2' \
        >/dev/null 2>&1 || echo "needs namespaces with bridge and veth, which this machine refuses"
}

# A process that holds namespaces; it dies with this shell.
hosts_hold() # PIDFILE COMMAND...
{
    hosts_file=$1
    shift
    setpriv --pdeathsig KILL "$@" </dev/null >"$hosts_file.log" 2>&1 &
    echo $! >"$hosts_file"
}

# What all programs of host $1 have in their environment: another time of day.
hosts_skewed()
{
    eval "hosts_ahead=\${hosts_skew_$1:-0}"
    # shellcheck disable=SC2154 # set by eval
    [ "$hosts_ahead" = 0 ] || echo "COHORT_SKEW=$hosts_ahead LD_PRELOAD=$hosts_skew"
}

# What the first process of a host does.
hosts_boot='
set -e
hostname "$1"
mount --make-rprivate /
mount -t tmpfs -o size=2g tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount --bind "$2/etc-hosts" /etc/hosts
mkdir -p /run/sshd
exec /usr/sbin/sshd -D -e -f "$2/$1/sshd_config"
'

hosts_files() # of host $1
{
    mkdir -p "$hosts_dir/$1/tmp"
    cat >"$hosts_dir/$1/sshd_config" <<CONFIG
ListenAddress $(hosts_address "$1")
HostKey $hosts_dir/key
PidFile none
AuthorizedKeysFile $hosts_dir/key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
PrintMotd no
SetEnv TMPDIR=$hosts_dir/$1/tmp PATH=$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 $(hosts_skewed "$1")
CONFIG
}

hosts_address()
{
    echo "198.18.0.${1#n}"
}

# The first process within host $1.
hosts_init()
{
    cat "/proc/$(cat "$hosts_dir/$1/unshare")/task/$(cat "$hosts_dir/$1/unshare")/children" \
        2>/dev/null | tr -d ' '
}

hosts_wait() # until the sshd of host $1 listens, at port 22
{
    hosts_tries=0
    until grep -q ':0016 00000000:0000 0A' "/proc/$(hosts_init "$1")/net/tcp" 2>/dev/null; do
        hosts_tries=$((hosts_tries + 1))
        [ $hosts_tries -lt 10000 ] || {
            echo "hosts: $1 does not start:" >&2
            cat "$hosts_dir/$1/unshare.log" >&2
            return 1
        }
        sleep 0.01
    done
}

# Between host $1 and the switch lies a cable, e-n1 at the switch and eth0 at the host.
hosts_cable()
{
    hosts_switch=$(cat "$hosts_dir/switch")
    hosts_pid=$(cat "$hosts_dir/$1/unshare")
    hosts_mac=$(printf '02:00:00:00:00:%02x' "${1#n}")
    if [ -z "${hosts_wire:-}" ]; then
        nsenter -t "$hosts_switch" -n ip link add "e-$1" type veth peer name eth0 \
            netns "$hosts_pid" address "$hosts_mac"
    else
        rm -f "$hosts_dir/$1/control"
        mkfifo "$hosts_dir/$1/control"
        hosts_hold "$hosts_dir/$1/wire" nsenter -t "$hosts_switch" -n "$hosts_wire" "$hosts_pid" \
            eth0 "e-$1" "$((${hosts_seed:-1} * 100 + ${1#n}))" "$hosts_dir/$1/control"
        hosts_tries=0
        until nsenter -t "$hosts_pid" -n ip link set eth0 address "$hosts_mac" 2>/dev/null; do
            hosts_tries=$((hosts_tries + 1))
            [ $hosts_tries -lt 1000 ] || return 1
            sleep 0.01
        done
    fi
    nsenter -t "$hosts_switch" -n ip link set "e-$1" master switch up
    nsenter -t "$hosts_pid" -n ip link set lo up
    nsenter -t "$hosts_pid" -n ip addr add "$(hosts_address "$1")/24" dev eth0
    nsenter -t "$hosts_pid" -n ip link set eth0 up
}

hosts_wait_net() # until this process has left the machine's network
{
    hosts_tries=0
    while [ "$(readlink "/proc/$1/ns/net")" = "$(readlink /proc/self/ns/net)" ]; do
        hosts_tries=$((hosts_tries + 1))
        [ $hosts_tries -lt 10000 ] || return 1
        sleep 0.01
    done
}

hosts_power_on()
{
    hosts_files "$1"
    rm -f "$hosts_dir/$1/cable"
    eval "hosts_ahead=\${hosts_skew_$1:-0}"
    hosts_time=
    [ "$hosts_ahead" = 0 ] || hosts_time="--time --monotonic $hosts_ahead --boottime $hosts_ahead"
    hosts_hold "$hosts_dir/$1/unshare" unshare -n sh -c \
        'until [ -e "$3/$2/cable" ]; do sleep 0.01; done; exec unshare $5 -m -u -i -p -f --kill-child \
        --mount-proc sh -c "$4" "$@"' sh sh "$1" "$hosts_dir" "$hosts_boot" "$hosts_time"
    hosts_wait_net "$(cat "$hosts_dir/$1/unshare")" && hosts_cable "$1" || return 1
    : >"$hosts_dir/$1/cable"
    hosts_wait "$1"
}

hosts_start()
{
    hosts_dir=$1
    hosts_all=
    mkdir -p "$hosts_dir"
    ssh-keygen -q -t ed25519 -N '' -f "$hosts_dir/key"
    printf '127.0.0.1 localhost\n' >"$hosts_dir/etc-hosts"
    for hosts_i in $(seq "$2"); do
        hosts_all="$hosts_all n$hosts_i"
        echo "198.18.0.$hosts_i n$hosts_i" >>"$hosts_dir/etc-hosts"
        echo "n$hosts_i,198.18.0.$hosts_i $(cut -d' ' -f1,2 "$hosts_dir/key.pub")"
    done >"$hosts_dir/known"
    cat >"$hosts_dir/ssh" <<SSH
#!/bin/sh
exec ssh -F none -i $hosts_dir/key -o UserKnownHostsFile=$hosts_dir/known -o BatchMode=yes \
    -o ConnectTimeout=20 -o LogLevel=ERROR "\$@"
SSH
    chmod +x "$hosts_dir/ssh"
    hosts_hold "$hosts_dir/switch" unshare -n sleep infinity
    hosts_wait_net "$(cat "$hosts_dir/switch")" || return 1
    nsenter -t "$(cat "$hosts_dir/switch")" -n ip link add switch type bridge
    nsenter -t "$(cat "$hosts_dir/switch")" -n ip link set switch up
    for hosts_i in $hosts_all; do
        hosts_power_on "$hosts_i" || return 1
    done
}

hosts_on()
{
    hosts_host=$1
    shift
    eval "hosts_ahead=\${hosts_skew_$hosts_host:-0}"
    hosts_time=
    [ "$hosts_ahead" = 0 ] || hosts_time=-T
    # shellcheck disable=SC2046,SC2086 # words
    nsenter -t "$(hosts_init "$hosts_host")" -n -m -u -i -p $hosts_time -- env -C "$PWD" \
        TMPDIR="$hosts_dir/$hosts_host/tmp" $(hosts_skewed "$hosts_host") "$@"
}

hosts_rate()
{
    nsenter -t "$(cat "$hosts_dir/$1/unshare")" -n \
        tc qdisc replace dev eth0 root tbf rate "$2" burst 256kb latency 200ms
}

hosts_unplug()
{
    nsenter -t "$(cat "$hosts_dir/switch")" -n ip link set "e-$1" down
}

hosts_plug()
{
    nsenter -t "$(cat "$hosts_dir/switch")" -n ip link set "e-$1" up
}

hosts_shape()
{
    hosts_host=$1
    shift
    printf '%s\n' "$@" >"$hosts_dir/$hosts_host/control"
}

hosts_part()
{
    for hosts_i in "$@"; do
        nsenter -t "$(cat "$hosts_dir/switch")" -n bridge link set dev "e-$hosts_i" isolated on
    done
}

hosts_join()
{
    for hosts_i in $hosts_all; do
        nsenter -t "$(cat "$hosts_dir/switch")" -n bridge link set dev "e-$hosts_i" isolated off
    done
}

# kill -1 spares the host's first process.
hosts_freeze()
{
    nsenter -t "$(hosts_init "$1")" -m -p sh -c 'kill -STOP -1'
    kill -STOP "$(hosts_init "$1")"
}

hosts_thaw()
{
    kill -CONT "$(hosts_init "$1")"
    nsenter -t "$(hosts_init "$1")" -m -p sh -c 'kill -CONT -1'
}

hosts_power_off()
{
    hosts_unplug "$1"
    kill -KILL "$(hosts_init "$1")"
    # Else its end of the cable might outlive it.
    nsenter -t "$(cat "$hosts_dir/switch")" -n ip link del "e-$1"
}

hosts_stop()
{
    for hosts_i in $hosts_all; do
        hosts_pid=$(hosts_init "$hosts_i")
        [ -z "$hosts_pid" ] || kill -KILL "$hosts_pid" 2>/dev/null || :
        [ ! -f "$hosts_dir/$hosts_i/unshare" ] ||
            kill -KILL "$(cat "$hosts_dir/$hosts_i/unshare")" 2>/dev/null || :
        [ ! -f "$hosts_dir/$hosts_i/wire" ] ||
            kill -KILL "$(cat "$hosts_dir/$hosts_i/wire")" 2>/dev/null || :
    done
    [ ! -f "$hosts_dir/switch" ] || kill -KILL "$(cat "$hosts_dir/switch")" 2>/dev/null || :
    hosts_all=
}
