/* shard_write.h - writes a split of a data set of images as shards, tar files or packed files,
   and their index. */
#ifndef CO_DATA_SHARD_WRITE_H
#define CO_DATA_SHARD_WRITE_H

#include "data/pack_convert.h"

typedef struct co_shard_writing {
    const co_dataset *data;
    const char *folder;           /* made by the caller, and empty */
    const char *prefix;           /* of the names of shards: PREFIX-000000.tar */
    uint32_t shards;              /* with fewer samples, as many as those */
    bool packed;                  /* packed files, PREFIX-000000.pack; else tar files */
    co_split split;               /* of packed files: which one their samples are */
    co_pack_options options;      /* of tar files: decode is 0 */
    co_status (*tick)(void *arg); /* after each sample; an error ends it */
    void *arg;
    uint64_t bytes_in, bytes_out; /* set: what was read of samples, and of the files written */
} co_shard_writing;

/* Sample i of n is in shard i * shards / n; in a tar file as NUMBER.jpg or .png and NUMBER.cls,
   where pixels become PNG files. The index comes last. CO_E_USAGE: these samples are no images. */
co_status co_shard_write(co_shard_writing *w);

#endif
