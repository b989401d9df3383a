#!/bin/sh
# gpu_sanitizer.sh - the kernels of GPUs under CUDA's compute-sanitizer, on this machine's GPU.
#
#   scripts/gpu_sanitizer.sh BUILD [TOOL...]     tools: memcheck synccheck initcheck racecheck
#
# A line for each tool and test; what it found is in BUILD/sanitizer. Exit status: how many failed.
# Under these tools kernels take ten to a hundred times as long.
set -eu
build=$1
shift
[ $# -gt 0 ] || set -- memcheck synccheck initcheck racecheck
command -v compute-sanitizer >/dev/null || {
    echo "compute-sanitizer is missing (CUDA's repository: cuda-sanitizer-13-0)" >&2
    exit 1
}
mkdir -p "$build/sanitizer"
failed=0
for tool; do
    for test in device_cuda device_cuda_vector device_cuda_optim device_cuda_count \
        device_cuda_images device_cuda_ops device_cuda_last; do
        log=$build/sanitizer/$tool-$test
        # without a GPU the test says so, and skips
        if compute-sanitizer --tool "$tool" --error-exitcode 9 "$build/tests/device/test_$test" \
            >"$log" 2>&1; then
            grep -q '^skipped:' "$log" && result=skipped || result=clean
        else
            result=failed failed=$((failed + 1))
        fi
        printf '%-10s %-20s %s\n' "$tool" "$test" "$result"
    done
done
exit "$failed"
