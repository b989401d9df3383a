#!/bin/sh
# check_timeouts.sh BUILD SECONDS - no test has less time than that: it would fail on a busy machine.
set -eu
ctest --test-dir "$1" --show-only=json-v1 | awk -v least="$2" '
    /^      "name" : / { name = $3; gsub(/[",]/, "", name) }
    /"name" : "TIMEOUT"/ { next_is_it = 1; next }
    next_is_it { timeout = $3 + 0; next_is_it = 0 }
    /^      ]/ && name {
        if (timeout < least) {
            printf "%s: TIMEOUT %d, less than %d (cmake/CohortModule.cmake)\n", name, timeout, least
            bad = 1
        }
        seen++
        name = timeout = ""
    }
    END {
        print seen + 0, "tests"
        exit bad || !seen
    }'
