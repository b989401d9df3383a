/* without.c - for builds without libcurl or libarchive. */
#include "fetch/transfer.h"
#include "fetch/unpack.h"

co_status co_transfer_run(bool *again, const co_transfer *transfer)
{
    *again = false;
    return co_fail(CO_E_UNSUPPORTED,
                   "%s: this build cannot fetch; build it with libcurl and libarchive (Debian: "
                   "libcurl4-openssl-dev libarchive-dev)",
                   transfer->url);
}

co_status co_unpack(const char *archive, const char *folder, uint64_t max,
                    const co_get_progress *progress)
{
    (void)folder;
    (void)max;
    (void)progress;
    return co_fail(CO_E_UNSUPPORTED,
                   "%s: this build cannot unpack; build it with libcurl and libarchive (Debian: "
                   "libcurl4-openssl-dev libarchive-dev)",
                   archive);
}
