#!/bin/sh
# first_walk.sh [RELEASE [archive|packages]] - what a newcomer types, on a bare Debian (default: trixie)
# with the archive of `make dist`, or with the packages that `scripts/deb.sh RELEASE` has built there; for this machine's
# release those of `make deb` will do:
#
#   cohort data get mnist && cohort train configs/mnist-net.yaml -n 2 && cohort report runs/...
#
# The set's own address leads to nginx on the loopback interface of a network of its own, with a
# certificate of an authority that the system knows. Then other mirrors: broken, wrong, hostile. Each ends
# in one error and exit code 3, and leaves no file.
#
#   MIRROR=URL   of Debian; default http://deb.debian.org/debian
#   WORK=DIR     where system and logs are; default build-first
#
# Needs root, debootstrap, nginx, openssl, iproute2, the network for Debian's packages, and MNIST (COHORT_DATA).
set -eu
cd "$(dirname "$0")/.."
. scripts/chroot.sh
inner=${WALK:-}
release=${1:-trixie}
how=${2:-archive}
mkdir -p "${WORK:=build-first}"
WORK=$(cd "$WORK" && pwd)
root=$WORK/root
log=$WORK/log
mnist=$(realpath "${COHORT_DATA:-../shared/data}/mnist" 2>/dev/null || true)
export WORK

fail()
{
    echo "first_walk: failed: $*" >&2
    [ ! -s "$WORK/said" ] || tail -n 10 "$WORK/said" >&2
    exit 1
}

pass()
{
    printf '%-72s ok\n' "$*"
}

# as USER COMMAND: of the shell, in the system; what it says is in $WORK/said and $WORK/errors
as()
{
    printf '%s\n' "$2" >"$root/command"
    result=0
    chroot_run "$root" "su - $1 -c 'LANG=C.UTF-8 sh -eu /command'" >"$WORK/said" 2>"$WORK/errors" || result=$?
    cat "$WORK/said" "$WORK/errors" >>"$log"
}

# refused NAME WORDS COMMAND [CODE]: one error, with these words, that code (3), and nothing is left
refused()
{
    as newcomer "$3"
    cp "$WORK/errors" "$WORK/said"
    [ "$result" = "${4:-3}" ] || fail "$1: exit code $result"
    [ "$(wc -l <"$WORK/errors")" = 1 ] || fail "$1: not one error"
    grep -q "^cohort: error: .*$2" "$WORK/errors" || fail "$1: no '$2'"
    [ -z "$(find "$root/srv/newcomer/.local/share/cohort" -mindepth 1 2>/dev/null)" ] || fail "$1: leaves a file"
    pass "$1"
}

# A system with the program, and a user.
prepare()
{
    for tool in ip openssl nginx; do
        command -v $tool >/dev/null || command -v /usr/sbin/$tool >/dev/null || fail "no $tool here"
    done
    why=$(chroot_missing)
    [ -z "$why" ] || fail "$why"
    [ -n "$mnist" ] || fail "no MNIST here; COHORT_DATA names the folder that has mnist/"
    packages=build-deb-$release
    ls "$packages"/*.deb >/dev/null 2>&1 || [ "$(. /etc/os-release && echo "$VERSION_CODENAME")" != "$release" ] || packages=build-deb
    [ "$how" = archive ] || ls "$packages"/*.deb >/dev/null 2>&1 || fail "no packages for $release: scripts/deb.sh $release"
    : >"$log"
    rm -rf "$root" "$WORK/www"
    chroot_make "$root" "$release" "$WORK/packages" >>"$log" 2>&1 || fail "debootstrap; see $log"
    as root 'useradd -m -d /srv/newcomer -s /bin/sh newcomer; apt-get update'
    [ "$result" = 0 ] || fail "the system; see $log"
    if [ "$how" = packages ]; then
        mkdir "$root/srv/packages"
        cp "$packages"/*.deb "$root/srv/packages"
        rm -f "$root"/srv/packages/*-dbgsym_* "$root"/srv/packages/*-dev_*
        as root 'apt-get install -y /srv/packages/*.deb'
        [ "$result" = 0 ] || fail "the packages cannot be installed; see $log"
        pass "$release: the packages, with what apt recommends"
    else
        tar -C "$root/opt" -xzf build-dist/cohort-*.tar.gz
        ln -s "$(cd "$root" && echo opt/cohort-*/bin/cohort | sed 's|^|/|')" "$root/usr/local/bin/cohort"
        refused "$release: the archive, unpacked; without libcurl it says what to install" \
            "install it (Debian: libcurl4)" 'cohort data get mnist' 1
        as root 'apt-get install -y libcurl4'
        [ "$result" = 0 ] || fail "apt-get install libcurl4; see $log"
    fi
}

# www/mnist: the set as it was published. What is here may have been compressed again: the first of the
# files was made by gzip -6, under this name and at this time.
publish()
{
    mkdir -p "$WORK/www"
    cp -r "$mnist" "$WORK/www/mnist"
    chmod -R u+w "$WORK/www"
    first=$WORK/www/mnist/train-images-idx3-ubyte.gz
    {
        printf '\037\213\010\010\172\202\220\062\000\003train-images.idx3-ubyte\000'
        gzip -dc "$mnist/${first##*/}" | gzip -n -6 -c | tail -c +11
    } >"$first"
    mkdir "$WORK/www/short" "$WORK/www/other" "$WORK/www/huge" "$WORK/www/out" "$WORK/www/slow"
    head -c 4000000 "$first" >"$WORK/www/short/${first##*/}"
    { head -c 5000000 "$first" && echo && tail -c +5000002 "$first"; } >"$WORK/www/other/${first##*/}"
    truncate -s 20G "$WORK/www/huge/${first##*/}"
    ln "$first" "$WORK/www/slow/"
    echo text >"$WORK/www/out/x"
    tar -C "$WORK/www/out" --transform 's|^|../../|' -czPf "$WORK/www/out/cifar-10-python.tar.gz" x
}

# A web server with the set's first address, one with an authority that nobody knows, and others.
configure()
{
    host=$(cat "$WORK/host")
    ec="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    cd "$WORK/www"
    # shellcheck disable=SC2086 # a list of options
    {
        openssl req -x509 $ec -days 2 -subj "/CN=A mirror" -keyout ../ca.key -out ../ca.pem
        openssl req $ec -subj "/CN=$host" -keyout ../key.pem -out ../request.pem
        echo "subjectAltName=DNS:$host,IP:127.0.0.1" >../names
        openssl x509 -req -in ../request.pem -CA ../ca.pem -CAkey ../ca.key -CAcreateserial -days 2 \
            -extfile ../names -out ../cert.pem
        openssl req -x509 $ec -days 2 -subj "/CN=unknown" -addext subjectAltName=IP:127.0.0.1 \
            -keyout ../unknown.key -out ../unknown.pem
    } >>"$log" 2>&1 || fail "openssl; see $log"
    cd - >/dev/null
    cp "$WORK/ca.pem" "$root/usr/local/share/ca-certificates/mirror.crt"
    as root update-ca-certificates
    [ "$result" = 0 ] || fail "update-ca-certificates; see $log"
    echo "127.0.0.1 localhost $host" >"$root/etc/hosts"
    mkdir -p "$WORK/tmp"
    cat >"$WORK/nginx.conf" <<END
user root;
daemon off;
master_process off;
pid $WORK/nginx.pid;
error_log $WORK/nginx.log;
events { worker_connections 64; }
http {
    access_log $WORK/access.log;
    client_body_temp_path $WORK/tmp; proxy_temp_path $WORK/tmp; fastcgi_temp_path $WORK/tmp;
    uwsgi_temp_path $WORK/tmp; scgi_temp_path $WORK/tmp;
    root $WORK/www;
    ssl_certificate $WORK/cert.pem;
    ssl_certificate_key $WORK/key.pem;
    server { listen 127.0.0.1:443 ssl; }
    server {
        listen 127.0.0.1:444 ssl;
        ssl_certificate $WORK/unknown.pem;
        ssl_certificate_key $WORK/unknown.key;
    }
    server {
        listen 127.0.0.1:80;
        location /slow/ { limit_rate 400k; }
        location /drops/ { return 444; }
        location /away/ { return 302 file:///etc/passwd; }
    }
}
END
}

start()
{
    rm -f "$WORK/nginx.pid"
    "$(command -v nginx || echo /usr/sbin/nginx)" -c "$WORK/nginx.conf" -p "$WORK" -e "$WORK/nginx.log" &
    server=$!
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ ! -s "$WORK/nginx.pid" ] || return 0
        sleep 0.2
    done
    fail "nginx does not start: $(tail -n 1 "$WORK/nginx.log")"
}

# mirror NAME PATH WORDS [SET]
mirror()
{
    refused "$1" "$3" "cohort data get ${4:-mnist} --from $2"
}

walk()
{
    trap '[ -z "${server:-}" ] || kill -9 "$server" 2>/dev/null || true' EXIT
    trap 'exit 130' INT TERM
    configure
    ip link set lo up
    start
    mirror "a mirror that drops every connection" http://127.0.0.1/drops '/drops/.*mpty reply'
    mirror "one that has nothing" http://127.0.0.1/none 'the server answers 404'
    mirror "one that cuts files short" http://127.0.0.1/short 'its MD5 is .*, not the published'
    mirror "one with a changed byte" http://127.0.0.1/other 'its MD5 is .*, not the published'
    mirror "one with a file of 20 GB" http://127.0.0.1/huge 'sends more than'
    mirror "one that leads to a file of this machine" http://127.0.0.1/away '[Pp]rotocol'
    mirror "one with an archive that leads out of its folder" http://127.0.0.1/out 'not the published' cifar10
    mirror "one that no authority vouches for" https://127.0.0.1:444/mnist 'certificate is refused'
    [ -z "$(find "$root/srv" "$root/tmp" -name x)" ] || fail "an archive has left its folder"
    { sleep 4 && kill -9 $server; } &
    mirror "one that is gone in the middle of a file" http://127.0.0.1/slow 'connect'
    start
    as newcomer 'cohort data get mnist && cohort train configs/mnist-net.yaml -n 2 && cohort report runs/*'
    cat "$WORK/said" "$WORK/errors"
    [ "$result" = 0 ] || fail "the walk: exit code $result"
    [ "$(grep -c '" 200 .*"cohort"' "$WORK/access.log")" -ge 4 ] || fail "the set came from elsewhere"
    grep -q '"test_accuracy": *0\.9[789]' "$root"/srv/newcomer/runs/*/summary.json || fail "the accuracy"
    grep -q '</html>' "$root/srv/newcomer/report.html" || fail "the report"
    pass "data get, train, report: nothing else typed"
}

if [ -z "$inner" ]; then
    trap 'rm -rf "$root" "$WORK/www"' EXIT
    trap 'exit 130' INT TERM
    prepare
    as newcomer 'cohort data get --list'
    sed -n '/^mnist /,/checksums/s|.*from https://\([^/]*\)/.*|\1|p' "$WORK/said" >"$WORK/host"
    publish
    WALK=1 unshare --net "$0" "$@"
else
    walk
fi
