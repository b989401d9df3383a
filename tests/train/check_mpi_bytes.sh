#!/bin/sh
# Two ranks over shared memory and two under mpiexec end with the same bytes.
#   check_mpi_bytes.sh PROGRAM MPIEXEC
set -eu
program=$1 mpiexec=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_MCA_plm_rsh_agent=/bin/false # stays on this machine

cat > "$folder/config.yaml" <<'CONFIG'
model: {name: mnist-net, batch_norm: true}
data: {name: synthetic, samples: 300}
batch: 64
epochs: 3
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
threads: 1
CONFIG

digest() {
    sed -n 's/.*"weights_sha256": "\([0-9a-f]*\)".*/\1/p' "$folder/$1/summary.json"
}

"$program" train "$folder/config.yaml" -n 2 --run-dir "$folder/shm"
"$mpiexec" --oversubscribe --allow-run-as-root -n 2 \
    "$program" train "$folder/config.yaml" --run-dir "$folder/mpi"

grep -q '"transport": "shm"' "$folder/shm/summary.json"
grep -q '"transport": "mpi"' "$folder/mpi/summary.json"
echo "shm $(digest shm)"
echo "mpi $(digest mpi)"
[ -n "$(digest shm)" ] && [ "$(digest shm)" = "$(digest mpi)" ]
