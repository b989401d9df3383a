/*
 * point_to_point.c - rank 0 sends two numbers to rank 1: point_to_point [RANKS]
 * The same program joins the world when mpiexec starts it.
 */
#include <stdio.h>
#include <stdlib.h>

#include <cohort.h>

static co_status rank_main(co_comm *world, void *arg)
{
    const int rank = co_comm_rank(world);
    float holder[2] = {0, 0};

    (void)arg;
    if (rank == 0) {
        holder[0] = 1;
        holder[1] = -1;
        printf("Rank-0 has sent the following tensor to Rank-1\ntensor([%2.0f., %2.0f.])\n",
               holder[0], holder[1]);
        fflush(stdout); /* before rank 1 can print */
        CO_TRY(co_comm_send(world, holder, 2, CO_F32, 1));
    } else if (rank == 1) {
        CO_TRY(co_comm_recv(world, holder, 2, CO_F32, 0));
        printf("Rank-1 has recieved the following tensor from Rank-0\ntensor([%2.0f., %2.0f.])\n",
               holder[0], holder[1]);
    }
    return CO_OK;
}

int main(int argc, char **argv)
{
    const int ranks = argc > 1 ? atoi(argv[1]) : co_launch_under_mpi() ? 0 : 2;
    co_status st;

    if (ranks == 1) {
        fprintf(stderr, "point_to_point: needs 2 ranks or more\n");
        return co_exit_code(CO_E_USAGE);
    }
    st = co_launch(&(co_launch_options){.ranks = ranks}, rank_main, NULL);

    if (st != CO_OK)
        fprintf(stderr, "point_to_point: %s\n", co_error_message());
    return co_exit_code(st);
}
