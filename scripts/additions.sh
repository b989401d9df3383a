#!/bin/sh
# A strategy and a command are added to a copy of the tree (tests/additions), built and run.
set -eu
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

tests/additions/check.sh
cp -r CMakeLists.txt CMakePresets.json LICENSE bench cmake configs docs include scripts src "$copy"
cd "$copy"
for patch in "$OLDPWD"/tests/additions/*.patch; do
    patch -p1 -s <"$patch"
done
cmake --preset release -DCOHORT_TESTS=OFF >cmake.log || {
    cat cmake.log
    exit 1
}
cmake --build build -j "$jobs" --target cohort >build.log || {
    tail -n 30 build.log
    exit 1
}
cat >run.yaml <<'Y'
layers: [{conv2d: {out: 8, kernel: 3}}, relu, flatten, {linear: 10}]
data: {name: synthetic, shape: [1, 12, 12], classes: 10, samples: 500}
batch: 20
epochs: 2
optimizer: {name: sgd, lr: 0.02, momentum: 0.9}
Y

# summary FOLDER: the weights' SHA-256 as the run has it.
summary() { sed -n 's/.*"weights_sha256": "\([0-9a-f]*\)".*/\1/p' "$1/summary.json"; }

# Two ranks sum two gradients, in the one order that there is.
build/cohort train run.yaml -n 2 --quiet --run-dir sync
build/cohort train run.yaml -n 2 --quiet --run-dir blocking --set strategy=blocking
[ "$(summary sync)" = "$(summary blocking)" ] || {
    echo "strategy blocking: other weights than sync"
    exit 1
}
build/cohort hash sync/final.safetensors | grep -q "^$(summary sync) " || {
    echo "cohort hash: not what summary.json says"
    exit 1
}
echo "the strategy and the command of tests/additions build and run"
