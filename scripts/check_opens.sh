#!/bin/sh
# Files are opened by src/core/open.c, which takes regular files alone, of a size that the caller
# names, and makes none through a link. Prints each line elsewhere that opens by itself.
# A folder is opened with O_DIRECTORY, which nothing else passes.
set -eu
cd "$(dirname "$0")/.."

# Where and what else, and why.
allowed='
src/core/open.c: the place itself
src/core/fs.c: O_EXCL: a new file under a name that nobody has
src/core/fs.c: fs_is_stream: a device or a pipe that the user names
src/cli/main.c: "/dev/null": in place of a standard stream that is closed
src/launch/child.c: "/dev/null": between fork and exec
src/launch/hosts.c: "/dev/null": what a probe says is not read
src/comm/shm/join.c: O_RDWR: memory of another rank under /proc, checked by device and inode
src/comm/mpi/end_mpiexec.c: errors: in a fork of a process with threads, where calls of a signal handler alone are safe
'

find src -name "*.c" | sort | xargs awk -v allowed="$allowed" '
BEGIN {
    n = split(allowed, line, "\n")
    for (i = 1; i <= n; i++) {
        if (split(line[i], part, ": ") < 2)
            continue
        many++
        file[many] = part[1]
        with[many] = part[3] == "" ? "" : part[2]
    }
}
function may(at) {
    for (at = 1; at <= many; at++)
        if (FILENAME == file[at] && (with[at] == "" || index($0, with[at])))
            return 1
    return 0
}
/(^|[^A-Za-z0-9_>.])(open|openat|openat2|creat|fopen|fopen64|freopen|mkstemp|mkostemp|json_load_file|json_dump_file)\(/ {
    if ($0 ~ /^[ \t]*(\/?\*|\/\/)/ || index($0, "O_DIRECTORY") || may())
        next
    printf "%s:%d: opens a file by itself; src/core/open.h has the call for it: %s\n", FILENAME, FNR, $0
    bad = 1
}
END { exit bad }
'
