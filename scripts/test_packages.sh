#!/bin/sh
# test_packages.sh - what `make deb` and `make dist` have made, on systems made on the spot.
#
# The archive on Debian 12, 13 and testing: trains where nothing is installed, then under that
# release's Open MPI and MPICH; the weights are the same everywhere. The packages on the release that
# they were built on: installed, the demo, a program against the library, each MPI, removed.
#
#   RELEASES="bookworm trixie testing"   those for the archive
#   WORK=DIR     where systems and logs are; default build-packages
set -eu
cd "$(dirname "$0")/.."
. scripts/chroot.sh
why=$(chroot_missing)
[ -z "$why" ] || {
    echo "packages: error: $why" >&2
    exit 1
}
archive=$(ls build-dist/cohort-*.tar.gz)
work=${WORK:-build-packages}
mkdir -p "$work"
work=$(cd "$work" && pwd)
root=$work/root
log=$work/log
trap 'rm -rf "$root"' EXIT
trap 'exit 130' INT TERM
: >"$log"
status=0
want=

# system RELEASE
system()
{
    rm -rf "$root"
    chroot_make "$root" "$1" "$work/packages" >>"$log" 2>&1 || {
        tail -n 3 "$log" >&2
        exit 1
    }
    cp tests/mpiexec.sh "$root/root/"
    cat >"$root/root/job.yaml" <<'END'
model: resnet9
data: {name: synthetic, shape: [3, 32, 32], classes: 10, samples: 512}
epochs: 1
batch: 64
shards: 4
END
}

# check NAME COMMAND: in the system; its last lines where it fails
check()
{
    verdict=ok
    chroot_run "$root" "cd; $2" >"$work/said" 2>&1 || {
        verdict=FAILED
        status=1
        tail -n 10 "$work/said"
    }
    cat "$work/said" >>"$log"
    printf '%-44s %s\n' "$1" "$verdict"
}

# weights NAME COMMAND: likewise, a training whose final weights are those of all others
weights()
{
    rm -rf "$root/root/run"
    check "$1" "$2 --run-dir run -q"
    got=$(sed -n 's/.*"weights_sha256": *"\([0-9a-f]*\)".*/\1/p' "$root/root/run/summary.json") || got=none
    : "${want:=$got}"
    [ "$got" = "$want" ] || {
        echo "$1: weights $got instead of $want"
        status=1
    }
}

over_mpi()
{
    for kind in openmpi mpich; do
        weights "$1, mpiexec.$kind" "./mpiexec.sh mpiexec.$kind -n 2 $2 train job.yaml"
        weights "$1, mpiexec.$kind, a rank per host" \
            "COHORT_RANKS_PER_HOST=1 ./mpiexec.sh mpiexec.$kind -n 2 $2 train job.yaml"
    done
}

for release in ${RELEASES:-bookworm trixie testing}; do
    system $release
    tar -C "$root/opt" -xzf "$archive"
    weights "archive, $release" '/opt/cohort-*/bin/cohort train job.yaml -n 2'
    check "archive, $release: with an MPI" 'apt-get update && apt-get install -y --no-install-recommends openmpi-bin mpich'
    over_mpi "archive, $release" '/opt/cohort-*/bin/cohort'
done

release=$(. /etc/os-release && echo "$VERSION_CODENAME")
system "$release"
mkdir "$root/srv/packages"
cp build-deb/*.deb examples/train.c "$root/srv/packages"
rm -f "$root"/srv/packages/*-dbgsym_*
check "packages, $release: installed" \
    'apt-get update && apt-get install -y --no-install-recommends /srv/packages/*.deb openmpi-bin mpich gcc libc6-dev pkg-config dataset-fashion-mnist'
check "packages, $release: the demo" 'cohort train fashion-mnist -n 2 --set epochs=1 --run-dir demo'
weights "packages, $release: -n 2" 'cohort train job.yaml -n 2'
over_mpi "packages, $release" cohort
check "packages, $release: a program in C" \
    'cc /srv/packages/train.c -o train $(pkg-config --cflags --libs cohort) && ./train 2 1 "{name: synthetic, shape: [1, 28, 28], classes: 10, samples: 256}"'
check "packages, $release: removed" \
    'apt-get purge -y cohort libcohort0 libcohort-dev cohort-mpi-openmpi cohort-mpi-mpich && [ -z "$(find /usr /etc /var/lib/dpkg/info -name "*cohort*")" ]'
exit $status
