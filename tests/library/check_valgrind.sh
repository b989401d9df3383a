#!/bin/sh
# check_valgrind.sh BUILD - valgrind's memcheck finds no error and no leak in the program and in a
# program with the library, in any of their ranks.
set -eu
build=$1
command -v valgrind >/dev/null || {
    echo "skipped: no valgrind here (apt-get install valgrind)"
    exit 77
}
valgrind -q --tool=none "$build/cohort" --version >/dev/null 2>&1 || {
    echo "skipped: valgrind cannot run this build's programs here"
    exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# hwloc 2.15 loses 144 bytes each time that it reads the machine.
cat >known.supp <<'END'
{
   hwloc
   Memcheck:Leak
   match-leak-kinds: definite
   fun:malloc
   obj:*/libhwloc.so.*
   ...
   fun:hwloc_topology_load
}
END

# A rank in which something is found ends with 9, and the program with an error.
checked()
{
    valgrind -q --leak-check=full --errors-for-leak-kinds=definite --suppressions=known.supp \
        --error-exitcode=9 "$@" >log 2>&1 || {
        cat log
        exit 1
    }
}

# Own kernels alone: valgrind does not know all instructions of the code that oneDNN generates.
cat >small.yaml <<'END'
model: mnist-net
data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 64}
batch: 16
epochs: 1
backend: cpu
optimizer: {name: sgd, lr: 0.05}
END
checked "$build/cohort" train small.yaml -n 2 --run-dir run
grep -q '^done: ' log
checked "$build/examples/example_allreduce"
