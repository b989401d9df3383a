#!/bin/sh
# check_plugins.sh BUILD SOURCE CC [FLAG...] - the plugins of examples/plugins, built against the
# installed package alone, train; a run directory loads none that is not named again; a file or a
# folder that others may write to, and what was built with other headers, is refused.
set -eu
build=$1
source=$2
cc=$3
shift 3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset DESTDIR
umask 022

cmake --install "$build" --prefix "$dir/prefix" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
cohort=$dir/prefix/bin/cohort
pc=$(find "$dir/prefix" -name cohort.pc)
export PKG_CONFIG_PATH="${pc%/*}"
cd "$dir"
mkdir plugins

# Two with pkg-config, one of them also with headers of another version, and one with CMake.
# plugin SOURCE FILE FLAG...
plugin()
{
    from=$1
    to=$2
    shift 2
    "$cc" "$@" -std=c11 -O2 -Wall -Wextra -Werror -shared -fPIC "$from" -o "$to"
}
examples=$source/examples/plugins
# shellcheck disable=SC2046 # lists of flags
plugin "$examples/lion.c" plugins/lion.so "$@" $(pkg-config --cflags cohort)
# shellcheck disable=SC2046
plugin "$examples/whole.c" plugins/whole.so "$@" $(pkg-config --cflags cohort)
cp -R "$dir/prefix/include" later
abi=$(sed -n 's/^#define CO_PLUGIN_ABI //p' later/cohort/ext/plugin.h)
grep -q "\`CO_PLUGIN_ABI\` (now $abi)" "$source/docs/versions.md" ||
    { echo "docs/versions.md does not say that CO_PLUGIN_ABI is $abi"; exit 1; }
sed 's/\(define CO_PLUGIN_ABI\) .*/\1 1000/' later/cohort/ext/plugin.h >header
cp header later/cohort/ext/plugin.h
plugin "$examples/lion.c" plugins/later.so "$@" -Ilater
echo 'int nothing;' >none.c
plugin none.c plugins/none.so "$@"
mkdir project
cat >project/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.21)
project(stripes LANGUAGES C)
find_package(cohort 0.1 REQUIRED)
add_library(stripes MODULE $examples/stripes.c)
target_link_libraries(stripes PRIVATE cohort::plugin)
set_target_properties(stripes PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY $dir/plugins)
END
{ cmake -S project -B project/build -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$*" \
    -DCMAKE_PREFIX_PATH="$dir/prefix" && cmake --build project/build; } >log 2>&1 || { cat log; exit 1; }

cat >train.yaml <<END
plugins: [plugins/lion.so, plugins/whole.so, plugins/stripes.so]
layers: [flatten, {linear: 16}, relu, {linear: 2}]
data: {name: stripes, samples: 200}
optimizer: {name: lion, lr: 0.003}
strategy: whole
batch: 20
epochs: 6
END
sed '/^plugins/d' train.yaml >bare.yaml

status=0
bad()
{
    printf 'FAILED: %s\n' "$1"
    [ ! -f said ] || cat said
    status=1
}
# good WHAT ARGUMENT...
good()
{
    what=$1
    shift
    "$cohort" "$@" >said 2>&1 || bad "$what"
}
# refused WHAT WORDS ARGUMENT...: exit code 2, and one line that says so
refused()
{
    what=$1
    words=$2
    shift 2
    code=0
    "$cohort" "$@" >said 2>&1 || code=$?
    [ "$code" -eq 2 ] || bad "$what: exit code $code"
    grep '^cohort: error: ' said | grep -qF -- "$words" || bad "$what: not said: $words"
}
# without FILE WHAT WORDS: a config that names it is refused
without()
{
    refused "$2" "$3" train bare.yaml --run-dir no --set "plugins=$1"
}
sha()
{
    sed -n 's/.*"weights_sha256": "\([0-9a-f]*\)".*/\1/p' "$1/summary.json"
}

good 'train' train train.yaml -n 2 --run-dir run
awk -F': ' '/"test_accuracy"/ { exit $2 + 0 < 0.9 }' run/summary.json || bad "not learnt: $(cat run/summary.json)"
good 'sync' train train.yaml -n 2 --run-dir sync --set strategy=sync
[ -n "$(sha run)" ] || bad 'no weights'
[ "$(sha run)" = "$(sha sync)" ] || bad 'another sum than that of sync'
good 'by options' train bare.yaml -n 2 --run-dir options --plugin plugins/lion.so \
    --plugin "$dir/plugins/whole.so" --plugin plugins/../plugins/stripes.so
[ "$(sha run)" = "$(sha options)" ] || bad 'other weights with --plugin'
good 'list' list optimizers --plugin plugins/lion.so --plugin plugins/lion.so
grep -q '^lion ' said || bad 'lion is not in the list'
good 'data' data info '{name: stripes}' --plugin plugins/stripes.so
good 'data of a config' data info train.yaml
good 'partition' data partition train.yaml -n 2
good 'inspect' inspect train.yaml

# A run directory loads nothing by itself.
all="--plugin plugins/lion.so --plugin plugins/whole.so --plugin plugins/stripes.so"
refused 'a run directory' '--plugin plugins/lion.so' eval run
refused 'the second, too' '--plugin plugins/whole.so' eval run --plugin plugins/lion.so
refused 'its config by name' '--plugin plugins/lion.so' train run/config.yaml --run-dir again
refused 'its config elsewhere' '--plugin plugins/lion.so' inspect ./run/config.yaml
refused 'its weights' '--plugin plugins/lion.so' eval run/final.safetensors
refused 'its data' '--plugin plugins/lion.so' data info run/config.yaml
refused 'its partition' '--plugin plugins/lion.so' data partition run/config.yaml
refused 'resume' '--plugin plugins/lion.so' train --resume --run-dir run
# shellcheck disable=SC2086 # a list of options
{
    good 'eval' eval run $all
    good 'resume' train --resume --run-dir run $all
    good 'config of a run' train run/config.yaml --run-dir again $all
}
good 'inspect a run' inspect run

# The launcher of MPI gets them for its ranks.
printf '#!/bin/sh\necho "$@" >"%s/asked"\nexit 1\n' "$dir" >launcher
chmod +x launcher
"$cohort" train bare.yaml -n 2 --run-dir mpi --mpiexec ./launcher --plugin plugins/lion.so >said 2>&1 &&
    bad 'a launcher that fails'
grep -q -- '--plugin plugins/lion.so' asked || bad 'the launcher was not given the plugin'

# What must not be loaded.
without plugins/missing.so 'a file that is not there' 'plugins/missing.so: No such file'
without plugins 'a folder' 'plugins: is a folder'
without train.yaml 'no shared object' 'train.yaml: '
without plugins/none.so 'no plugin' 'has no function cohort_plugin'
without plugins/later.so 'other headers' 'build it again'
without lion.so 'a name to search for' 'lion.so: No such file'
without '[[1]]' 'no list of files' 'expected a file'
without '[]' 'no plugin at all' "unknown optimizer 'lion'"
LD_LIBRARY_PATH=$dir/plugins
export LD_LIBRARY_PATH
without lion.so 'a name in the path of the loader' 'lion.so: No such file'
unset LD_LIBRARY_PATH
chmod o+w plugins/lion.so
without plugins/lion.so 'a file that others may write to' 'plugins/lion.so: others may write to it'
chmod o-w plugins/lion.so
chmod g+w plugins
without plugins/lion.so 'a folder that others may write to' 'plugins: others may write to it'
chmod g-w plugins
[ ! -e no ] || bad 'a refused run has made its directory'
exit $status
