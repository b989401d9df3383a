/*
 * qemu_count.c - a plugin for qemu: how many instructions a program executes. Each process of it
 * writes `totals: N` to the file PREFIX.PID when it exits, as callgrind does.
 *
 *   cc -shared -fPIC -DQEMU_API=N qemu_count.c -o qemu_count.so
 *   qemu-aarch64 -plugin qemu_count.so,out=PREFIX PROGRAM ...
 *
 * Debian has no header of qemu's: what is used of it is declared here. For one thread at a time.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COUNT_EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
typedef uint64_t qemu_plugin_id_t;
typedef void (*count_translated_fn)(qemu_plugin_id_t id, struct qemu_plugin_tb *block);
typedef void (*count_executed_fn)(unsigned cpu, void *data);
typedef void (*count_exit_fn)(qemu_plugin_id_t id, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, count_translated_fn fn);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, count_executed_fn fn,
                                          int flags, void *data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, count_exit_fn fn, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);

COUNT_EXPORT int qemu_plugin_version = QEMU_API;

static uint64_t count_total;
static char count_prefix[4096];

static void count_block(unsigned cpu, void *instructions)
{
    (void)cpu;
    count_total += (uintptr_t)instructions;
}

static void count_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_cb(block, count_block, 0,
                                         (void *)qemu_plugin_tb_n_insns(block));
}

static void count_write(qemu_plugin_id_t id, void *data)
{
    char path[sizeof(count_prefix) + 32];
    FILE *out;

    (void)id;
    (void)data;
    snprintf(path, sizeof(path), "%s.%ld", count_prefix, (long)getpid());
    out = fopen(path, "w");
    if (!out)
        return;
    fprintf(out, "totals: %llu\n", (unsigned long long)count_total);
    fclose(out);
}

COUNT_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
    (void)info;
    if (argc != 1 || strncmp(argv[0], "out=", 4) != 0)
        return -1;
    snprintf(count_prefix, sizeof(count_prefix), "%s", argv[0] + 4);
    qemu_plugin_register_vcpu_tb_trans_cb(id, count_translate);
    qemu_plugin_register_atexit_cb(id, count_write, NULL);
    return 0;
}
