/* shard_layout.h - the layout of an index of shards; all numbers are little-endian. */
#ifndef CO_DATA_SHARD_LAYOUT_H
#define CO_DATA_SHARD_LAYOUT_H

#define SHARD_MAGIC         ((const uint8_t[]){0x89, 'C', 'O', 'S', 'H', 'R', 'D', '\n'})
#define SHARD_VERSION       1 /* of tar files */
#define SHARD_OF_PACKS      2 /* version of those of packed files */
#define SHARD_AT_VERSION    8 /* u32 */
#define SHARD_AT_SHARDS     12
#define SHARD_AT_CLASSES    16
#define SHARD_AT_FLAGS      20
#define SHARD_AT_SAMPLES    24  /* u64 */
#define SHARD_AT_NAMES      32  /* u64 each: bytes of the names of shards, of classes, of samples */
#define SHARD_AT_SIZE       56  /* u64: of the file */
#define SHARD_AT_RECORDS    64  /* u32, of packed files: 1 files of images, 0 pixels */
#define SHARD_AT_SHAPE      68  /* u32 each: C, H, W */
#define SHARD_AT_CHECK      120 /* of all that follows the header */
#define SHARD_AT_HEAD_CHECK 124 /* of the bytes before it */

#define SHARD_FLAG_CHECKSUMS   1u
#define SHARD_FLAG_CLASS_NAMES 2u

#define SHARD_ROW   40 /* of a shard: size (8), tag (32) */
#define SHARD_ENTRY 24 /* of a sample: offset (8); 4 each: size, label, checksum, shard */

#endif
