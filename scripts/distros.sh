#!/bin/sh
# distros.sh [RELEASE ...] - from a bare Debian to a trained network and tests that have passed, in
# chroots made on the spot (default: bookworm trixie testing): once as root, once as a user without
# rights, for whom the packages come by the very command that he is shown.
#
#   MIRROR=URL   of Debian; default http://deb.debian.org/debian
#   WHO="root user"   GOALS="demo test"   what is run: goals of make
#   WORK=DIR     where chroots, packages and logs are; default build-distros
#   KEEP=yes     the last chroot stays, as WORK/root, to look at what failed
#   CCACHE=DIR   compilations are looked up there and kept there, by ccache
#
# Needs root, debootstrap, the network and some 4 GB. Hours: everything is compiled six times.
set -eu
cd "$(dirname "$0")/.."
tree=$PWD
WHO=${WHO:-root user}
GOALS=${GOALS:-demo test}
work=${WORK:-build-distros}
data=${COHORT_DATA:-../shared/data}
[ $# -gt 0 ] || set -- bookworm trixie testing

fail()
{
    printf 'distros: error: %s\n' "$1" >&2
    exit 1
}

. scripts/chroot.sh
why=$(chroot_missing)
[ -z "$why" ] || fail "$why"
command -v git >/dev/null || fail 'no git here'
mkdir -p "$work/packages"
work=$(cd "$work" && pwd)
results=$work/results
: >"$results"
root=$work/root
trap '[ -n "${KEEP:-}" ] || rm -rf "$root"' EXIT
trap 'exit 130' INT TERM

# inside USER COMMAND: a shell's command in the chroot.
inside()
{
    printf '%s\n' "$2" >"$root/command"
    chroot_run "$root" "su $1 -c 'cd; export COHORT_DATA=/srv/data CCACHE_DIR=/srv/ccache CCACHE_NOHASHDIR=1
        export CCACHE_BASEDIR=\$PWD; sh -eu /command'" >>"$log" 2>&1
}

# A fresh system, with make and nothing else, and a copy of the tree in the user's home.
prepare()
{
    rm -rf "$root"
    chroot_make "$root" "$1" "$work/packages" >>"$log" 2>&1 || return 1
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/distros" # a chroot that is thrown away
    inside root 'apt-get update && apt-get install -y --no-install-recommends make
        id user || useradd -m -s /bin/sh user' || return 1
    home=/root
    [ "$2" = root ] || home=/home/$2
    mkdir "$root$home/cohort"
    git -C "$tree" ls-files -z --cached --others --exclude-standard |
        tar -C "$tree" --null -T - -cf - --ignore-failed-read 2>>"$log" |
        tar -C "$root$home/cohort" -xf -
    [ ! -d "$data/mnist" ] || { mkdir "$root/srv/data" && cp -r "$data/mnist" "$root/srv/data/"; }
    inside root "chown -R $2: $home/cohort"
    [ -z "${CCACHE:-}" ] || {
        mkdir -p "$CCACHE"
        cp -r "$CCACHE" "$root/srv/ccache"
        inside root "apt-get install -y --no-install-recommends ccache; chown -R $2: /srv/ccache"
    }
}

# make GOAL as that user. Where he cannot install what is missing, as root by the command that he is
# given for that.
goal()
{
    before=$(wc -c <"$log")
    ! inside "$1" "cd cohort && make $2" || return 0
    [ "$1" != root ] || return 1
    line=$(tail -c "+$((before + 1))" "$log" | sed -n '/ask who administers this machine/{n;s/^ *//p}')
    [ -n "$line" ] || return 1
    inside root "$line" && inside "$1" "cd cohort && make $2"
}

# The last words of a log on what its goals have shown.
figures()
{
    sed -n 's/^done: .* \([0-9,]* samples\/s\).*/demo \1/p' "$log" | tail -n 1
    sed -n 's/.*tests passed, \([0-9]* tests\{0,1\} failed out of [0-9]*\).*/\1/p' "$log" | tail -n 1
    sed -n 's/^ok *onednn *\(oneDNN [0-9.]*\).*/\1/p' "$log" | tail -n 1
}

# one RELEASE USER
one()
{
    log=$work/$1-$2.log
    : >"$log"
    state=ok
    prepare "$1" "$2" || state='no system'
    for goal in $GOALS; do
        [ "$state" != ok ] || goal "$2" "$goal" || state="make $goal failed, see $log"
    done
    [ "$state" != ok ] || inside "$2" 'cohort/build/cohort doctor' || state='doctor failed'
    printf '%-9s %-5s %s: %s\n' "$1" "$2" "$state" "$(figures | paste -s -d ';' | sed 's/;/; /g')" |
        tee -a "$results"
    [ ! -d "$root/srv/ccache" ] || cp -ru "$root/srv/ccache/." "$CCACHE"
}

for release; do
    for who in $WHO; do
        one "$release" "$who"
    done
done
! grep -qv '^[a-z]* *[a-z]* *ok:' "$results"
