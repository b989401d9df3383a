/*
 * sized.h - structs from programs that were compiled with older or newer headers, passed with their
 * sizes (version.h).
 */
#ifndef CO_CORE_SIZED_H
#define CO_CORE_SIZED_H

#include <stddef.h>

#include <cohort/status.h>

/* Copy the program's struct `in` (`given` bytes) to `out` (`size` bytes); members that it lacks are
   0. CO_E_USAGE if `in` is NULL or of size 0, CO_E_UNSUPPORTED if bytes after `size` are not 0; the
   message names `type`. */
co_status co_sized_read(void *out, size_t size, const void *in, size_t given, const char *type);
/* Copy `in` (`size` bytes) to the program's struct `out` (`given` bytes, may be NULL); bytes that
   `in` lacks are 0. */
void co_sized_write(void *out, size_t given, const void *in, size_t size);

#define CO_SIZED_READ(out, in, given, type) co_sized_read(out, sizeof(type), in, given, #type)

/* Assert that the struct has no padding after its last member. A later member is then at an offset
   that older programs do not pass, and the padding of newer ones is not taken for options. */
#define CO_SIZED_END(type, last)                                                                   \
    _Static_assert(sizeof(type) == offsetof(type, last) + sizeof(((type *)0)->last),               \
                   #type " ends with padding: order its members otherwise")

#endif
