/*
 * faulty.c - `faulty CONFIG RANKS RUN_DIR`: `cohort train` with parts that fail on a signal. The
 * linker wraps product functions (--wrap), so the product has no test code.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cohort/train.h>

#include <jansson.h>

#include "comm/comm_internal.h"
#include "data/data.h"
#include "faults/faulty.h"

static _Atomic int fault;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    if (info->si_value.sival_int == FAULTY_EXIT)
        _exit(1);
    fault = info->si_value.sival_int;
}

void *__real_co_calloc(size_t count, size_t size);
void *__wrap_co_calloc(size_t count, size_t size);
void *__wrap_co_calloc(size_t count, size_t size)
{
    if (fault != FAULTY_NO_MEMORY)
        return __real_co_calloc(count, size);
    co_fail(CO_E_NOMEM, "out of memory (asked for %zu bytes)", count * size);
    return NULL;
}

static void *json_memory(size_t size)
{
    return fault == FAULTY_NO_MEMORY ? NULL : malloc(size);
}

co_coll_descriptor __real_co_comm_descriptor(const co_coll_args *args, uint32_t sequence);
co_coll_descriptor __wrap_co_comm_descriptor(const co_coll_args *args, uint32_t sequence);
co_coll_descriptor __wrap_co_comm_descriptor(const co_coll_args *args, uint32_t sequence)
{
    co_coll_descriptor d = __real_co_comm_descriptor(args, sequence);

    if (fault == FAULTY_SLOW)
        usleep(2000);
    if (fault == FAULTY_MISMATCH)
        d.count++;
    return d;
}

/* How the synthetic data set reads a sample. */
co_status __real_co_dataset_draw(const co_dataset *dataset, float *out, uint64_t i,
                                 const co_augment_place *place, co_data_scratch *scratch);
co_status __wrap_co_dataset_draw(const co_dataset *dataset, float *out, uint64_t i,
                                 const co_augment_place *place, co_data_scratch *scratch);
co_status __wrap_co_dataset_draw(const co_dataset *dataset, float *out, uint64_t i,
                                 const co_augment_place *place, co_data_scratch *scratch)
{
    while (fault == FAULTY_READER)
        pause();
    return __real_co_dataset_draw(dataset, out, i, place, scratch);
}

ssize_t __real_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n)
{
    struct stat about;

    if (fault != FAULTY_READ_ONLY || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || fd < 3)
        return __real_write(fd, bytes, n);
    errno = EROFS;
    return -1;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    co_train_options options = {.quiet = true};
    co_status st;

    if (argc != 4)
        return 2;
    options.config_path = argv[1];
    options.ranks = atoi(argv[2]);
    options.run_dir = argv[3];
    json_set_alloc_funcs(json_memory, free);
    sigaction(SIGUSR1, &action, NULL);
    signal(SIGXFSZ, SIG_IGN);
    st = co_train(NULL, &options);
    if (st != CO_OK)
        fprintf(stderr, "cohort: error: %s\n", co_error_message());
    return co_exit_code(st);
}
