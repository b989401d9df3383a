/* shards.h - a folder of shards as a command writes it: both splits, complete or not there. */
#ifndef CO_CLI_SHARDS_H
#define CO_CLI_SHARDS_H

#include "cli/cli.h"
#include "data/shard_write.h"

typedef struct cli_shards {
    const char *target;           /* the folder; must not be there */
    co_dataset *const *data;      /* by co_split; NULL: split is left out */
    uint32_t shards;              /* of each split */
    bool packed;                  /* packed files; else tar files */
    co_pack_options options;      /* what becomes of samples */
    co_status (*tick)(void *arg); /* after each sample; an error ends it, and leaves nothing */
    void *arg;
    uint64_t bytes_in, bytes_out; /* set: what was read of samples, and of the files written */
} cli_shards;

/* CO_E_USAGE: something of that name is there. */
co_status cli_shards_check(const char *target);
co_status cli_shards_write(cli_shards *shards);

#endif
