#!/bin/sh
# check_modules.sh BUILD CC KIND=LAUNCHER... - an installed Cohort over each MPI that this build has a
# module for: the folder is moved first, since modules are found by where the program is. Then with
# the module gone, damaged, with the launcher of another MPI, and with calls of MPI that hang.
set -eu
build=$1
cc=$2
shift 2
tests=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset DESTDIR LD_LIBRARY_PATH COHORT_MPI
export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0
[ $# -gt 0 ] || {
    echo "skipped: no module for an MPI in this build"
    exit 77
}
cmake --install "$build" --prefix "$dir/first" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
mv "$dir/first" "$dir/moved"
modules=$(dirname "$(find "$dir/moved" -name 'cohort-mpi-*.so' | head -n 1)")
cat >"$dir/job.yaml" <<'END'
model: lenet5
data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 64}
epochs: 1
batch: 32
END

echo '#include <unistd.h>
int MPI_Finalize(void);
int MPI_Finalize(void) { for (;;) pause(); }' >"$dir/hang.c"
"$cc" -shared -fPIC "$dir/hang.c" -o "$dir/hang.so"
sed 's/MPI_Finalize/MPI_Comm_dup/g' "$dir/hang.c" >"$dir/begin.c"
"$cc" -shared -fPIC "$dir/begin.c" -o "$dir/begin.so"

status=0
bad()
{
    printf 'FAILED: %s\n' "$1"
    cat "$dir/said"
    status=1
}
# train LAUNCHER RANKS
train()
{
    rm -rf "$dir/run"
    # shellcheck disable=SC2086 # a command
    timeout 120 $1 -n "$2" "$dir/moved/bin/cohort" train "$dir/job.yaml" --run-dir "$dir/run" >"$dir/said" 2>&1
}
# refused WHAT TEXT LAUNCHER
refused()
{
    ! train "$3" 2 || bad "$1: it runs"
    grep -q -- "$2" "$dir/said" || bad "$1: it does not say: $2"
}

for pair in "$@"; do
    kind=${pair%%=*} launcher="$tests/mpiexec.sh ${pair#*=}"
    train "$launcher" 2 || bad "$kind"
    grep -q '2 ranks' "$dir/said" || bad "$kind: not on 2 ranks"
    train "env LD_PRELOAD=$dir/hang.so $launcher" 2 || :
    # The launcher stops the other ranks once one has ended without MPI_Finalize.
    grep -q 'waited 10 s for MPI to return from MPI_Finalize' "$dir/said" || bad "$kind: finalizing hangs"
    [ -s "$dir/run/final.safetensors" ] || bad "$kind: finalizing hangs, and the weights are lost"
    echo 'timeout: 1' >>"$dir/job.yaml"
    refused "$kind, a start that hangs" 'waited 1 s for MPI to return from making a communicator' \
        "env LD_PRELOAD=$dir/begin.so $launcher"
    sed -i '/^timeout/d' "$dir/job.yaml"
    module=$modules/cohort-mpi-$kind.so
    mv "$module" "$dir/kept"
    refused "$kind, no module" "Cohort's module for" "$launcher"
    echo "no library" >"$module"
    refused "$kind, a damaged module" "Cohort's module for" "$launcher"
    mv "$dir/kept" "$module"
    COHORT_MPI=elan && export COHORT_MPI
    refused "$kind, no such MPI" "COHORT_MPI: 'elan'; give openmpi or mpich" "$launcher"
    unset COHORT_MPI
    for other in "$@"; do
        [ "$other" = "$pair" ] || {
            COHORT_MPI=${other%%=*} && export COHORT_MPI
            refused "$kind's mpiexec, $COHORT_MPI" "not of one kind" "$launcher"
            unset COHORT_MPI
        }
    done
done
exit $status
