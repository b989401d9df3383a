/*
 * fuzz_manifest.c - the reader of checkpoints' manifests over any bytes.
 *
 * One that it accepts names files of its own folder alone, has an entry for each rank, and numbers
 * that hold together.
 */
#include <stdlib.h>
#include <string.h>

#include "state/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    co_manifest m;

    if (co_manifest_parse(&m, (const char *)data, size, "input", &co_checkpoint_layout) != CO_OK)
        return 0;
    if (!m.point || !m.rank || !m.config || m.ranks < 1 || m.ranks > CO_MANIFEST_MAX_RANKS)
        abort();
    for (int i = 0; i < m.n_file; i++)
        if (strchr(m.file[i].name, '/') || m.file[i].name[0] == '.' || !m.file[i].name[0] ||
            strlen(m.file[i].sha256) != 64)
            abort();
    for (int i = 0; i < m.n_array; i++)
        if (m.array[i].copies != 1 && m.array[i].copies != m.ranks)
            abort();
    co_manifest_free(&m);
    return 0;
}
