#!/bin/sh
# nginx.sh BUILD - training on shards, tar files and packed ones, that nginx serves on the loopback
# interface: the bits of the folder that they were made of, with an empty cache and with a full one,
# from a server that fails one request in ten, over TLS, on any number of ranks, resumed in the middle
# of an epoch, on two hosts made of namespaces where that is possible; what is wrong with a server or a
# shard is said with its address.
# Exit code 77: this machine has no nginx.
set -eu
cohort=$(realpath "$1")/cohort
here=$(cd "$(dirname "$0")" && pwd)
nginx=$(command -v nginx || command -v /usr/sbin/nginx || true)
images=$(realpath "${COHORT_DATA:-$(dirname "$0")/../../../shared/data}/imagenette" 2>/dev/null || true)
[ -n "$nginx" ] && command -v openssl >/dev/null || {
    echo "skipped: nginx or openssl is not here (Debian: nginx-light openssl)"
    exit 77
}
"$cohort" data info '{name: tar, path: "http://127.0.0.1:1"}' 2>&1 | grep -q 'this build' && {
    echo "skipped: a build without libcurl"
    exit 77
}
work=$(mktemp -d "${TMPDIR:-/tmp}/cohort-shards-XXXXXX")
server=
stop()
{
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT TERM
cd "$work"
export XDG_CACHE_HOME="$work/cache" ASAN_OPTIONS=detect_leaks=0
unset CURL_CA_BUNDLE SSL_CERT_FILE SSL_CERT_DIR http_proxy https_proxy all_proxy

fail()
{
    echo "shards: failed: $*" >&2
    [ ! -f log ] || tail -n 20 log >&2
    exit 1
}

pass()
{
    printf '%-68s ok  %s\n' "$1" "${2:-}"
}

# A free port: one that nobody answers on.
port=$((20000 + $$ % 20000))
while "$cohort" data info "{name: tar, path: 'http://127.0.0.1:$port', retry: 0}" 2>&1 |
    grep -vq "connect to server"; do
    port=$((port + 7))
done
tls=$((port + 1))
bad=$((port + 2))
slow=$((port + 3)) # 2 MiB a second of each connection

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem -out cert.pem \
    -addext subjectAltName=IP:127.0.0.1 2>/dev/null
mkdir www tmp
user=
[ "$(id -u)" -ne 0 ] || user="user root;" # else its workers cannot read a private folder
cat >nginx.conf <<CONF
$user
daemon off;
pid $work/nginx.pid;
error_log $work/error.log;
worker_processes 1;
events { worker_connections 256; }
http {
    access_log $work/access.log;
    client_body_temp_path $work/tmp; proxy_temp_path $work/tmp; fastcgi_temp_path $work/tmp;
    uwsgi_temp_path $work/tmp; scgi_temp_path $work/tmp;
    root $work/www;
    split_clients "\$request_id" \$fate { 4% 503; 3% 500; 3% cut; * good; }
    server { listen 127.0.0.1:$port; }
    server { listen 127.0.0.1:$slow; limit_rate 2m; }
    server {
        listen 127.0.0.1:$tls ssl;
        ssl_certificate $work/cert.pem;
        ssl_certificate_key $work/key.pem;
    }
    server {
        listen 127.0.0.1:$bad;
        if (\$fate = 503) { return 503; }
        if (\$fate = 500) { return 500; }
        if (\$fate = cut) { return 444; }
    }
}
CONF
"$nginx" -c "$work/nginx.conf" -p "$work" -e "$work/error.log" &
server=$!

if [ -n "$images" ]; then
    source="{name: imagefolder, path: '$images'}"
else
    source="{name: synthetic, shape: [3, 40, 40], samples: 3000, classes: 10, test_samples: 200}"
fi
common="resize: 40, center_crop: 32, augment: [random-resized-crop, horizontal-flip]"
"$cohort" data shard "$source" www/tar --shards 12 -q || fail "data shard"
"$cohort" data pack "$source" www/pack --shards 12 -q || fail "data pack --shards"
"$cohort" data pack "$source" one.pack -q || fail "data pack"
cat >train.yaml <<YAML
model: {name: mlp, hidden: [16]}
data: ${source%\}}, $common}
batch: 96
epochs: 2
shards: 4
YAML

# train DIR RANKS DATA [OPTION...]: two epochs
train()
{
    train_dir=$1
    train_ranks=$2
    train_data=$3
    shift 3
    rm -rf "$train_dir"
    timeout 100     "$cohort" train train.yaml -n "$train_ranks" --run-dir "$train_dir" \
        ${train_data:+--set "data=$train_data"} "$@" >log 2>&1
}

figures()
{
    grep -E '"(weights_sha256|train_loss|test_loss|test_accuracy|steps)"' "$1/summary.json" ||
        fail "$1 is not complete"
}

seconds()
{
    sed -n 's/^ *"train_seconds": *\([0-9]*\.[0-9][0-9]\).*/\1/p' "$1/summary.json"
}

same()
{
    [ "$(figures "$2")" = "$(figures folder)" ] || fail "$1: $2 is not folder"
    pass "$1" "$(seconds "$2") s"
}

requests()
{
    wc -l <access.log
}

# Answers that were failures on purpose.
failures()
{
    grep -cE '" (503|500|444) ' access.log || true
}

# at PLACE [KEYS]: the data value of shards of the kind that is checked
at()
{
    echo "{name: $kind, path: '$1', $common${2:+, $2}}"
}

train folder 1 '' || fail "the folder"
# check KIND END: shards of a kind, whose files are called *.END, have the bits of the folder.
check()
{
    kind=$1
    url=http://127.0.0.1:$port/$kind
    rm -rf cache
    train shards 2 "$(at "$work/www/$kind")" || fail "local shards"
    same "$kind: shards in a folder, 2 ranks: as the folder of files" shards
    before=$(grep -c '" 206 ' access.log || true)
    train cold 2 "$(at "$url")" || fail "cold"
    same "$kind: over HTTP, empty cache, 2 ranks" cold
    [ $(($(grep -c '" 206 ' access.log) - before)) -gt 12 ] || fail "no requests for ranges"
    before=$(requests)
    train warm 1 "$(at "$url")" || fail "warm"
    same "$kind: over HTTP, full cache, 1 rank" warm
    [ $(($(requests) - before)) -le 4 ] || fail "a full cache made $(($(requests) - before)) requests"
    pass "$kind: a full cache asks for the head of each index alone"
    [ -z "$(find cache/cohort -perm /077 2>/dev/null)" ] || fail "the cache is open to others"
    pass "$kind: what is kept is its owner's alone"

    rm -rf cache
    before=$(failures)
    train broken 2 "$(at "http://127.0.0.1:$bad/$kind")" || fail "a server that fails"
    same "$kind: a server that fails one request in ten, 2 ranks" broken
    [ "$(failures)" -gt "$before" ] || fail "the server did not fail"
    rm -rf cache
    train broken 2 "$(at "http://127.0.0.1:$bad/$kind" "prefetch: 0")" || fail "nothing ahead"
    same "$kind: the same, nothing fetched ahead" broken
    grep -q "asking again" log || fail "no warning of it"

    for ahead in 0 8; do
        rm -rf cache
        train slow-$ahead 1 "$(at "http://127.0.0.1:$slow/$kind" "prefetch: $ahead")" ||
            fail "a slow server"
        same "$kind: 2 MiB/s of each connection, $ahead requests ahead" slow-$ahead
    done
    awk -v none="$(seconds slow-0)" -v some="$(seconds slow-8)" 'BEGIN { exit !(some < 0.7 * none) }' ||
        fail "fetching ahead gains nothing"

    rm -rf cache resumed
    train resumed 2 "$(at "$url")" --set max_steps=27 || fail "a part of a run"
    rm -rf cache
    "$cohort" train --resume --run-dir resumed -n 3 --set max_steps=0 >log 2>&1 || fail "resume"
    same "$kind: resumed in the middle of an epoch on 3 ranks, empty cache" resumed

    # What is wrong is named.
    rm -rf cache
    shard=$kind/train/train-000003.$2
    mv "www/$shard" aside
    train gone 2 "$(at "$url")" && fail "a missing shard"
    tail -n 1 log | grep -q "error: .*/$shard: the server answers 404" || fail "404"
    pass "$kind: a missing shard: its address, and 404"
    head -c 100000 aside >"www/$shard"
    train gone 2 "$(at "$url")" && fail "a short shard"
    tail -n 1 log | grep -q "error: .*/$shard: \(is shorter\|has 100000 bytes\)" || fail "a short shard"
    pass "$kind: a shard that was cut short: its address"
    tr 'a-m' 'n-z' <aside >"www/$shard"
    train gone 2 "$(at "$url")" && fail "a changed shard"
    tail -n 1 log | grep -q "error: .*/$shard: .*its checksum" || fail "a changed shard"
    pass "$kind: a shard with other bytes: its address and the sample"
    mv aside "www/$shard"
    train none 1 "$(at "http://127.0.0.1:$port/no")" && fail "no set"
    tail -n 1 log | grep -q "no/train/shards.index: the server answers 404; shards of a web.*\`cohort data $3\`" ||
        fail "no index"
    pass "$kind: no index: what writes one"
}

check tar tar shard
train file 2 "{name: pack, path: '$work/one.pack', $common}" || fail "one packed file"
same "pack: one packed file, 2 ranks: as the folder of files" file
check pack pack "pack --shards"

rm -rf cache
train secret 1 "$(at "https://127.0.0.1:$tls/pack")" && fail "a certificate that nobody signed is taken"
tail -n 1 log | grep -q "error: https://127.0.0.1:$tls/pack/train/shards.index: .*\(certificate\|CA\)" ||
    fail "the message about the certificate"
export SSL_CERT_FILE="$work/cert.pem"
train secret 1 "$(at "https://127.0.0.1:$tls/pack")" || fail "TLS"
unset SSL_CERT_FILE
same "over TLS, with its certificate; without, it is refused" secret

# Two hosts, each with a cache of its own, and the server on a third.
. "$here/../../scripts/hosts.sh"
why=$(hosts_missing)
[ -n "$why" ] || "$cohort" doctor | grep -q "^ok *openmpi " || why="Open MPI is not here"
[ -z "$why" ] || {
    echo "two hosts: left out: $why"
    exit 0
}
trap 'hosts_stop; stop' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
hosts_start "$work/hosts" 3
sed "s/listen 127.0.0.1:/listen /" nginx.conf >hosts.conf
(hosts_on n3 "$nginx" -c "$work/hosts.conf" -p "$work" -e "$work/error.log" >/dev/null 2>&1 &) # ends with the host
for kind in tar pack; do
    cat >rank.sh <<RANK
XDG_CACHE_HOME=$work/cache-\$(hostname) exec $cohort train train.yaml --run-dir hosts-run \
    --set "data=$(at "http://198.18.0.3:$bad/$kind")"
RANK
    rm -rf cache-n1 cache-n2
    for cache in empty full; do
        rm -rf hosts-run
        hosts_on n1 timeout 300 "$(command -v mpiexec.openmpi || echo mpiexec)" \
            --mca plm_rsh_agent "$work/hosts/ssh" --host n1:1,n2:1 -n 2 sh rank.sh >log 2>&1 ||
            fail "two hosts"
        same "$kind: two hosts, failing server, $cache caches of their own" hosts-run
    done
    for host in n1 n2; do
        [ -n "$(find "cache-$host" -name '*.blocks')" ] || fail "no cache on $host"
    done
done
