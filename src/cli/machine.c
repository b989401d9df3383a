/*
 * machine.c - facts about the machine from /proc, /sys and the C library.
 *
 * Does not know about training; doctor.c interprets the facts.
 */
#include "cli/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/mpi/mpi.h"
#include "core/mem.h"
#include "core/open.h"

/* The text after "key :"; NULL if the line has another key. */
static const char *machine_after_key(const char *line, const char *key)
{
    size_t n = strlen(key);

    if (strncmp(line, key, n) != 0)
        return NULL;
    line += n;
    line += strspn(line, " \t");
    return *line == ':' ? line + 1 + strspn(line + 1, " \t") : NULL;
}

/* The value of the first line "key : value" in a file such as /proc/cpuinfo. */
static bool machine_proc_line(char *out, size_t size, const char *path, const char *key)
{
    FILE *file = co_open_system(path);
    const char *value = NULL;
    char *line = NULL;
    size_t room = 0;

    out[0] = '\0';
    while (file && !value && getline(&line, &room, file) > 0)
        value = machine_after_key(line, key);
    if (value)
        snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
    free(line);
    if (file)
        fclose(file);
    return value != NULL;
}

void machine_cpu_name(char *out, size_t size)
{
    if (!machine_proc_line(out, size, "/proc/cpuinfo", "model name"))
        (void)machine_proc_line(out, size, "/proc/cpuinfo", "Processor");
}

static bool machine_has_word(const char *text, const char *word, size_t n)
{
    for (const char *at = text; (at = strstr(at, word)); at++)
        if ((at == text || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

void machine_cpu_has(char *out, size_t size, const char *wanted)
{
    char flags[8192], word[32];
    size_t used = 0;

    out[0] = '\0';
    if (!machine_proc_line(flags, sizeof(flags), "/proc/cpuinfo", "flags"))
        (void)machine_proc_line(flags, sizeof(flags), "/proc/cpuinfo", "Features");
    for (size_t n; *wanted && used < size; wanted += n + strspn(wanted + n, " ")) {
        n = strcspn(wanted, " ");
        snprintf(word, sizeof(word), "%.*s", (int)n, wanted);
        if (machine_has_word(flags, word, strlen(word)))
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? " " : "", word);
    }
}

int machine_cores(void)
{
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* A file that holds one number; 0: no such file, or "max". */
static uint64_t machine_number(const char *path)
{
    FILE *file = co_open_system(path);
    unsigned long long n = 0;

    if (!file)
        return 0;
    if (fscanf(file, "%llu", &n) != 1)
        n = 0;
    fclose(file);
    return n;
}

uint64_t machine_memory(void)
{
    const uint64_t limit = machine_number("/sys/fs/cgroup/memory.max");
    const uint64_t taken = machine_number("/sys/fs/cgroup/memory.current");
    uint64_t bytes = 0;
    char text[64];

    if (machine_proc_line(text, sizeof(text), "/proc/meminfo", "MemAvailable"))
        bytes = strtoull(text, NULL, 10) * 1024;
    if (limit && limit - (taken < limit ? taken : limit) < bytes)
        bytes = limit - (taken < limit ? taken : limit);
    return bytes;
}

bool machine_disk_free(uint64_t *out, const char *path)
{
    struct statvfs info;

    if (statvfs(path, &info) != 0)
        return false;
    *out = (uint64_t)info.f_bavail * info.f_frsize;
    return true;
}

bool machine_find_program(char *out, size_t size, const char *name)
{
    const char *path = getenv("PATH");

    for (size_t n; path && *path; path += n + (path[n] == ':')) {
        n = strcspn(path, ":");
        if (n && snprintf(out, size, "%.*s/%s", (int)n, path, name) < (int)size &&
            access(out, X_OK) == 0)
            return true;
    }
    out[0] = '\0';
    return false;
}

static void machine_tell_mpi(int to, const char *name)
{
    char text[256];

    setenv("COHORT_MPI", name, 1);
    co_mpi_library(text, sizeof(text));
    _exit(write(to, text, strlen(text)) < 0);
}

void machine_mpi(char *out, size_t size, const char *name)
{
    ssize_t n = 0;
    int ends[2];
    pid_t pid;

    out[0] = '\0';
    if (pipe(ends) != 0)
        return;
    pid = fork();
    if (pid == 0)
        machine_tell_mpi(ends[1], name);
    close(ends[1]);
    if (pid > 0) {
        n = read(ends[0], out, size - 1);
        waitpid(pid, NULL, 0);
    }
    close(ends[0]);
    out[n > 0 ? n : 0] = '\0';
}

bool machine_shares_memory(void)
{
    const size_t size = (size_t)16 << 20;
    volatile char *memory = co_map(size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    bool shared = false;
    pid_t pid;

    if (!memory)
        return false;
    pid = fork();
    if (pid == 0) {
        for (size_t i = 0; i < size; i += 4096)
            memory[i] = 1;
        _exit(0);
    }
    if (pid > 0 && waitpid(pid, NULL, 0) == pid) {
        shared = true;
        for (size_t i = 0; i < size; i += 4096)
            shared = shared && memory[i] == 1;
    }
    munmap((void *)memory, size);
    return shared;
}
