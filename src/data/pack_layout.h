/* pack_layout.h - the layout of a packed file; all numbers are little-endian. */
#ifndef CO_DATA_PACK_LAYOUT_H
#define CO_DATA_PACK_LAYOUT_H

#define PACK_MAGIC       ((const uint8_t[]){0x89, 'C', 'O', 'P', 'A', 'C', 'K', '\n'})
#define PACK_HEAD        128 /* bytes; records follow */
#define PACK_ENTRY       24
#define PACK_VERSION     8 /* u32 */
#define PACK_ENCODED     12
#define PACK_CHANNELS    16
#define PACK_HEIGHT      20
#define PACK_WIDTH       24
#define PACK_CLASSES     28
#define PACK_COUNT       32 /* u64: training, test */
#define PACK_INDEX       48 /* u64: offset of the index; class names follow it */
#define PACK_NAMES       56 /* u64: bytes of the names, each with its NUL; 0 if there are none */
#define PACK_SIZE        64 /* u64: of the file */
#define PACK_INDEX_CHECK 120
#define PACK_HEAD_CHECK  124 /* of the bytes before it */

#define PACK_ENTRY_SIZE  8
#define PACK_ENTRY_LABEL 12
#define PACK_ENTRY_CHECK 16

#define PACK_MAX_CLASSES 1000000
#define PACK_MAX_SIDE    65535

#endif
