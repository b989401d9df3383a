/* unpack.h - a tar.gz to a folder, by libarchive; internal to src/fetch. */
#ifndef CO_FETCH_UNPACK_H
#define CO_FETCH_UNPACK_H

#include "fetch/get.h"

/* Files and folders alone, each below `folder` by a name without "..", with plain modes, in all at
   most `max` bytes: CO_E_DATA for an archive with anything else. */
co_status co_unpack(const char *archive, const char *folder, uint64_t max,
                    const co_get_progress *progress);

#endif
