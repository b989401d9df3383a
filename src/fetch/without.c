/* without.c - for builds without libcurl or libarchive. */
#include "fetch/range.h"
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

co_status co_range_create(co_range **out, double retry_s)
{
    (void)out;
    (void)retry_s;
    return co_fail(CO_E_UNSUPPORTED, "this build reads no shards of a web server; build it with "
                                     "libcurl and libarchive (Debian: libcurl4-openssl-dev "
                                     "libarchive-dev)");
}

void co_range_destroy(co_range *range)
{
    (void)range;
}

void co_range_rest(co_range *range)
{
    (void)range;
}

co_status co_range_read(uint8_t *out, co_range_answer *answer, co_range *range,
                        const co_range_request *request)
{
    (void)out;
    (void)answer;
    (void)range;
    return co_fail(CO_E_UNSUPPORTED, "%s: this build fetches nothing", request->url);
}
