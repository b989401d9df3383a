#!/bin/sh
# check_versions.sh INCLUDE LIBRARY CC [FLAG...] - a program compiled with older or newer headers than
# the library's gives the same results; a member that only newer headers have is refused by name.
set -eu
include=$1
library=$2
cc=$3
shift 3
source=$(cd "$(dirname "$0")" && pwd)/versions.c
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# Structs without their last member, and with one more.
cp -R "$include" same
cp -R "$include" older
cp -R "$include" newer
# cut HEADER STRUCT MEMBER...: they are the last ones
cut()
{
    header=older/cohort/$1
    struct=$2
    shift 2
    for member in "$@"; do
        awk -v end="} $struct;" -v member="$member" '
            { line[NR] = $0 }
            $0 == end { last = NR }
            END {
                for (i = last; i && line[i] !~ "^typedef struct"; i--)
                    if (line[i] ~ "[ *]" member "[;[]") {
                        for (n = i; line[n] ~ /\/\*/ && line[n] !~ /\*\//; n++)
                            line[n] = "-"
                        line[n] = "-"
                        found = 1
                        break
                    }
                for (i = 1; i <= NR; i++)
                    if (line[i] != "-")
                        print line[i]
                exit !found
            }' "$header" >header || { echo "$struct has no member $member"; exit 1; }
        cp header "$header"
    done
}
cut train.h co_model_options seed
cut train.h co_distributed_options batch total_steps
cut train.h co_train_options on_step_arg on_step
cut train.h co_train_summary metric
cut train.h co_eval_summary positions metric n_metric
cut train.h co_bench_summary peak_device_memory_bytes model_flops_utilization model_flops_per_second
cut data.h co_sampler_options dataset
cut data.h co_loader_options queue
cut data.h co_batch bad_message
cut launch.h co_launch_options timeout_ms
for header in train data launch; do
    sed 's/^} co_\([a-z]*_options\|[a-z]*_summary\|batch\);/    uint64_t added;\n&/' \
        "same/cohort/$header.h" >"newer/cohort/$header.h"
done

# build NAME HEADERS FLAG...
build()
{
    to=$1
    headers=$2
    shift 2
    "$cc" "$@" -std=c11 -Wall -Wextra -Werror -I"$headers" "$source" -o "$to" "$library" \
        -Wl,-rpath,"${library%/*}"
    echo "== $to"
    "./$to" "$dir/run-$to" >"$to.said" || { cat "$to.said"; exit 1; }
    cat "$to.said"
}
build with_same same "$@"
build with_older older "$@"
build with_newer newer "$@"
build with_added newer "$@" -DADDED
for to in with_older with_newer with_added; do
    diff with_same.said "$to.said"
done
