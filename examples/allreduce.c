/*
 * allreduce.c - every rank gives a number and gets the sum of all: allreduce [RANKS]
 * The numbers are 1, 2, 3, ...; the last rank gives what makes the sum 0. The same program joins
 * the world when mpiexec starts it.
 */
#include <stdio.h>
#include <stdlib.h>

#include <cohort.h>

static co_status rank_main(co_comm *world, void *arg)
{
    const int rank = co_comm_rank(world), size = co_comm_size(world);
    const int others = size * (size - 1) / 2;
    float number = (float)(rank + 1);

    (void)arg;
    if (rank == size - 1)
        number = 0.0f - (float)others;
    CO_TRY(co_comm_allreduce(world, &number, &number, 1, CO_F32, CO_SUM));
    printf("Rank %d has tensor([%.0f.])\n", rank, number);
    return CO_OK;
}

int main(int argc, char **argv)
{
    const int ranks = argc > 1 ? atoi(argv[1]) : co_launch_under_mpi() ? 0 : 3;
    co_status st = co_launch(&(co_launch_options){.ranks = ranks}, rank_main, NULL);

    if (st != CO_OK)
        fprintf(stderr, "allreduce: %s\n", co_error_message());
    return co_exit_code(st);
}
