#!/bin/sh
# Includes go downward only: a file of src/<module> may include headers of the modules in its
# row, of its own folder, and the public headers. Prints each line that breaks this.
set -eu
cd "$(dirname "$0")/.."

# module: what it may include besides itself
rules='
core:
metrics: core
device: kernels core
tensor: device core
graph: tensor device core
ops: graph tensor core
kernels: core
backends: kernels ops graph tensor device core
models: ops graph tensor core
optim: kernels tensor device core
comm: device core
launch: comm core
strategy: comm tensor device core
image: kernels core
text: core
data: image text fetch checkpoint device tensor core
checkpoint: tensor core
fetch: checkpoint core
export: checkpoint ops graph tensor core
telemetry: metrics core
report: telemetry metrics core
live: report launch telemetry core
plan: strategy comm telemetry core
tune: core
profile: telemetry data comm graph device core
model: profile backends models ops optim comm graph tensor device metrics core
generate: model text core
step: model profile strategy optim comm tensor device core
state: step model checkpoint telemetry data comm graph tensor device metrics core
control: state step model launch telemetry data comm core
train: control state step model profile launch telemetry checkpoint data strategy optim models backends ops comm graph tensor device metrics core
explain: plan train model data image telemetry graph tensor metrics core
cli: explain tune plan fetch generate text train control state step model profile report live export launch telemetry checkpoint data image strategy optim models backends ops comm graph tensor device metrics core
'

find src include -name "*.[ch]" -o -name "*.cu" | sort | xargs awk -v rules="$rules" '
BEGIN {
    n = split(rules, line, "\n")
    for (i = 1; i <= n; i++) {
        if (split(line[i], part, ":") < 2)
            continue
        known[part[1]] = 1
        m = split(part[2], below, " ")
        for (j = 1; j <= m; j++)
            may[part[1], below[j]] = 1
    }
}
FNR == 1 {
    split(FILENAME, dir, "/")
    module = dir[1] == "src" ? dir[2] : ""
    if (module != "" && !(module in known)) {
        printf "%s: module \"%s\" has no row in scripts/check_layers.sh\n", FILENAME, module
        bad = 1
    }
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, quoted, "\"")
    slash = index(quoted[2], "/")
    if (module == "") {
        printf "%s:%d: a public header includes only <cohort/...>: %s\n", FILENAME, FNR, quoted[2]
        bad = 1
        next
    }
    to = slash ? substr(quoted[2], 1, slash - 1) : module
    if (to in known && to != module && !((module, to) in may)) {
        printf "%s:%d: %s may not include %s\n", FILENAME, FNR, module, quoted[2]
        bad = 1
    }
}
END { exit bad }
'
