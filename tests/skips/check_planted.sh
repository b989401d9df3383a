#!/bin/sh
# check_planted.sh PLANTED SOURCE - the exit status of a test program says whether it passed, failed or
# was skipped, for every number of failures, and scripts/skips.sh lists what was skipped and why.
set -eu
planted=$1 source=$2
folder=$(mktemp -d "${TMPDIR:-/tmp}/cohort-skips-XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP

# expect STATUS SKIPPED PASSED FAILED
expect()
{
    status=0
    "$planted" "$2" "$3" "$4" >"$folder/output" 2>&1 || status=$?
    [ "$status" = "$1" ] || {
        echo "$2 skipped, $3 passed, $4 failed: exit status $status, not $1"
        exit 1
    }
}
expect 0 0 2 0
expect 77 2 0 0
expect 0 1 1 0
expect 1 1 0 1
expect 1 0 1 77
expect 1 0 0 256

# What cmocka prints of tests that all skip for what their setup has said.
cat >"$folder/group" <<'END'
echo 'skipped: no browser here'
for name in page_one page_two; do
    echo "[ RUN      ] $name"
    echo "[  SKIPPED ] $name"
done
exit 77
END
cat >"$folder/CTestTestfile.cmake" <<END
add_test(whole "$planted" 2 0 0)
add_test(part "$planted" 1 1 0)
add_test(none "$planted" 0 1 0)
add_test(group sh "$folder/group")
add_test(script sh -c "echo began; echo; echo 'skipped: no sshd here'; exit 77")
set_tests_properties(whole part none group script PROPERTIES SKIP_RETURN_CODE 77)
END
cd "$folder"
ctest --output-junit "$folder/tests.xml" --test-output-size-passed 1000000 >/dev/null
"$source/scripts/skips.sh" tests.xml >said
cat >expected <<END
3 tests skipped, and parts of 1 more:
  group: no browser here
  part: planted_test_skips: no <device> here
  script: no sshd here
  whole: no <device> here
END
diff expected said
