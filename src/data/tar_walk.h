/* tar_walk.h - the samples of a tar file as WebDataset writes it: members that follow each other
   and have the same name up to the first dot, KEY.jpg and KEY.cls. */
#ifndef CO_DATA_TAR_WALK_H
#define CO_DATA_TAR_WALK_H

#include "data/shard_index.h"
#include "data/tar_read.h"

/* Append the samples of shard `shard`, in the order of the file. Their image is KEY.jpg, KEY.jpeg
   or KEY.png, their class the number in KEY.cls, or where there is none the member `label` of the
   object in KEY.json; other members are passed over. With `checksums` each image is read.
   CO_E_DATA names the file and the key. */
co_status co_tar_walk(co_shard_builder *builder, const co_tar_source *source, uint32_t shard,
                      const char *label, bool checksums);

#endif
