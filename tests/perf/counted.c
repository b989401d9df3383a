/*
 * counted.c - the programs whose instructions counts.sh counts, and the key of a count.
 *
 *   counted key                    "gcc-12.2.0 cpu-AVX2 oneDNN-2.6.3-AVX2", as one word
 *   counted allreduce BYTES TIMES  two ranks of shared memory in one thread, each in its turn
 *   counted alone BYTES TIMES      one rank of shared memory, which waits for each of its own
 *
 * Between processes a rank would wait by looking again and again, as often as the other takes; here
 * each moves on as far as it can and hands over, so that a run has the same instructions always.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backends.h"
#include "comm/shm/shm.h"
#include "core/mem.h"

#define COUNTED_RANKS 2

static void counted_word(const char *text)
{
    for (; *text; text++)
        putchar(*text == ' ' || *text == ',' ? '-' : *text);
}

static int counted_key(void)
{
#if defined(__clang__)
    printf("clang-%d.%d", __clang_major__, __clang_minor__);
#else
    printf("gcc-%d.%d", __GNUC__, __GNUC_MINOR__);
#endif
    for (const co_backend *const *b = co_backends; *b; b++) {
        char text[128] = "";

        if (!(*b)->describe)
            continue;
        (*b)->describe(text, sizeof(text));
        printf("/");
        counted_word(text);
    }
    printf("\n");
    return 0;
}

/* Both ranks post; then they alternate until both are done. */
static co_status counted_turn(co_comm **rank, float **data, size_t count)
{
    co_request *request[COUNTED_RANKS] = {NULL};
    bool done[COUNTED_RANKS] = {false};
    int left = COUNTED_RANKS;

    for (int r = 0; r < COUNTED_RANKS; r++)
        CO_TRY(co_comm_iallreduce(&request[r], rank[r], data[r], data[r], count, CO_F32, CO_SUM));
    while (left > 0) {
        left = 0;
        for (int r = 0; r < COUNTED_RANKS; r++) {
            CO_TRY(co_request_test(&done[r], request[r]));
            left += !done[r];
        }
    }
    for (int r = 0; r < COUNTED_RANKS; r++)
        co_request_destroy(request[r]);
    return CO_OK;
}

static co_status counted_allreduce(size_t bytes, long times)
{
    const size_t count = bytes / sizeof(float);
    co_comm *rank[COUNTED_RANKS] = {NULL};
    float *data[COUNTED_RANKS] = {NULL};
    co_shm *shm = NULL;
    co_status st = co_shm_create(&shm, COUNTED_RANKS);

    for (int r = 0; r < COUNTED_RANKS && st == CO_OK; r++) {
        data[r] = co_calloc_aligned(count, sizeof(float));
        st = data[r] ? co_shm_attach(&rank[r], shm, r) : CO_E_NOMEM;
    }
    for (long i = 0; i < times && st == CO_OK; i++)
        st = counted_turn(rank, data, count);
    for (int r = 0; r < COUNTED_RANKS; r++) {
        co_comm_destroy(rank[r]);
        co_free(data[r]);
    }
    co_shm_destroy(shm);
    return st;
}

static co_status counted_alone(size_t bytes, long times)
{
    const size_t count = bytes / sizeof(float);
    co_comm *rank = NULL;
    co_shm *shm = NULL;
    float *data = co_calloc_aligned(count, sizeof(float));
    co_status st = data ? co_shm_create(&shm, 1) : CO_E_NOMEM;

    if (st == CO_OK)
        st = co_shm_attach(&rank, shm, 0);
    for (long i = 0; i < times && st == CO_OK; i++)
        st = co_comm_allreduce(rank, data, data, count, CO_F32, CO_SUM);
    co_comm_destroy(rank);
    co_shm_destroy(shm);
    co_free(data);
    return st;
}

int main(int argc, char **argv)
{
    const bool alone = argc == 4 && strcmp(argv[1], "alone") == 0;

    if (argc == 2 && strcmp(argv[1], "key") == 0)
        return counted_key();
    if (argc != 4 || !(alone || strcmp(argv[1], "allreduce") == 0)) {
        fprintf(stderr, "usage: counted key | counted allreduce|alone BYTES TIMES\n");
        return 2;
    }
    if ((alone ? counted_alone : counted_allreduce)((size_t)strtoull(argv[2], NULL, 10),
                                                    atol(argv[3])) == CO_OK)
        return 0;
    fprintf(stderr, "%s\n", co_error_message());
    return 1;
}
