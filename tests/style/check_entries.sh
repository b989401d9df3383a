#!/bin/sh
# check_entries.sh BUILD SECONDS - what every entry of ctest has: SECONDS or more, as with less it
# would fail on a busy machine, and 77 as the exit status of a skipped test.
set -eu
ctest --test-dir "$1" --show-only=json-v1 | awk -v least="$2" '
    function end_entry()
    {
        if (name && timeout < least)
            fault("TIMEOUT " (timeout + 0) ", less than " least)
        if (name && !skips)
            fault("no SKIP_RETURN_CODE 77")
        name = timeout = skips = ""
    }
    function fault(text)
    {
        printf "%s: %s: add it by co_add_test() (cmake/CohortModule.cmake)\n", name, text
        bad = 1
    }
    /^      "name" : / { name = $3; gsub(/[",]/, "", name); seen++ }
    /"name" : / { property = $3; gsub(/[",]/, "", property) }
    property == "TIMEOUT" && /"value" : / { timeout = $3 + 0 }
    property == "SKIP_RETURN_CODE" && /"value" : / { skips = $3 + 0 == 77 }
    /^    }/ { end_entry() }
    END {
        print seen + 0, "tests"
        exit bad || !seen
    }'
