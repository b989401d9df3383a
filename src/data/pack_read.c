/*
 * pack_read.c - reader for packed files. Untrusted input.
 *
 * Opening a file checks all of its header and index, so finding a record needs no checks.
 */
#include <errno.h>
#include <libdeflate.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/open.h"
#include "data/pack_format.h"
#include "data/pack_layout.h"

static uint32_t pack_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t pack_u64(const uint8_t *at)
{
    return pack_u32(at) | (uint64_t)pack_u32(at + 4) << 32;
}

static co_status pack_check_head(const uint8_t *bytes, size_t size, const char *name)
{
    uint32_t version;

    if (size < PACK_HEAD || memcmp(bytes, PACK_MAGIC, 8) != 0)
        return co_fail(CO_E_DATA, "%s: not a packed data set; `cohort data pack` makes one", name);
    version = pack_u32(bytes + PACK_VERSION);
    if (version != CO_PACK_VERSION)
        return co_fail(CO_E_DATA,
                       "%s: a packed data set of version %u, this program reads %d; pack it again "
                       "or use a newer program",
                       name, version, CO_PACK_VERSION);
    if (libdeflate_crc32(0, bytes, PACK_HEAD_CHECK) != pack_u32(bytes + PACK_HEAD_CHECK))
        return co_fail(CO_E_DATA, "%s: the checksum of its header is wrong; pack it again", name);
    if (pack_u64(bytes + PACK_SIZE) != size)
        return co_fail(CO_E_DATA, "%s: %s: %zu bytes, its header says %llu; pack it again", name,
                       size < pack_u64(bytes + PACK_SIZE) ? "cut short" : "too long", size,
                       (unsigned long long)pack_u64(bytes + PACK_SIZE));
    return CO_OK;
}

static co_status pack_invalid(const char *name, const char *what)
{
    return co_fail(CO_E_DATA, "%s: %s cannot be; pack it again", name, what);
}

static co_status pack_read_head(co_pack_head *head, const uint8_t *bytes, const char *name)
{
    const uint32_t encoded = pack_u32(bytes + PACK_ENCODED);

    head->encoded = encoded == 1;
    head->channels = pack_u32(bytes + PACK_CHANNELS);
    head->height = pack_u32(bytes + PACK_HEIGHT);
    head->width = pack_u32(bytes + PACK_WIDTH);
    head->classes = pack_u32(bytes + PACK_CLASSES);
    for (size_t s = 0; s < CO_PACK_SPLITS; s++)
        head->count[s] = pack_u64(bytes + PACK_COUNT + 8 * s);
    if (encoded > 1)
        return pack_invalid(name, "the kind of its records");
    if (head->classes < 1 || head->classes > PACK_MAX_CLASSES)
        return pack_invalid(name, "the number of its classes");
    if (head->encoded && (head->channels == 1 || head->channels == 3) && !head->height &&
        !head->width)
        return CO_OK;
    if (head->encoded || head->channels < 1 || head->channels > PACK_MAX_SIDE || head->height < 1 ||
        head->height > PACK_MAX_SIDE || head->width < 1 || head->width > PACK_MAX_SIDE)
        return pack_invalid(name, "the shape of its records");
    return CO_OK;
}

/* Index and names must fill the rest of the file exactly. */
static co_status pack_find_index(co_pack *pack, size_t size)
{
    const uint64_t *count = pack->head.count;
    const uint64_t index = pack_u64(pack->bytes + PACK_INDEX);
    const uint64_t names = pack_u64(pack->bytes + PACK_NAMES);

    if (count[0] > UINT32_MAX || count[1] > UINT32_MAX || index < PACK_HEAD || index > size ||
        names > size - index || size - index - names != (count[0] + count[1]) * PACK_ENTRY)
        return pack_invalid(pack->name, "the size of its index");
    pack->index = pack->bytes + index;
    if (libdeflate_crc32(0, pack->index, size - index) != pack_u32(pack->bytes + PACK_INDEX_CHECK))
        return co_fail(CO_E_DATA, "%s: the checksum of its index is wrong; pack it again",
                       pack->name);
    return CO_OK;
}

static co_pack_entry pack_entry(const co_pack *pack, uint64_t i)
{
    const uint8_t *at = pack->index + i * PACK_ENTRY;

    return (co_pack_entry){pack_u64(at), pack_u32(at + PACK_ENTRY_SIZE),
                           pack_u32(at + PACK_ENTRY_LABEL), pack_u32(at + PACK_ENTRY_CHECK)};
}

static co_status pack_check_entries(const co_pack *pack)
{
    const co_pack_head *head = &pack->head;
    const uint64_t end = (uint64_t)(pack->index - pack->bytes);
    const uint64_t raw = (uint64_t)head->channels * head->height * head->width;

    for (uint64_t i = 0; i < head->count[0] + head->count[1]; i++) {
        const co_pack_entry entry = pack_entry(pack, i);

        if (entry.offset < PACK_HEAD || entry.offset > end || entry.size > end - entry.offset)
            return pack_invalid(pack->name, "the place of a record");
        if (entry.size == 0 || (!head->encoded && entry.size != raw))
            return pack_invalid(pack->name, "the size of a record");
        if (entry.label >= head->classes)
            return pack_invalid(pack->name, "the label of a record");
    }
    return CO_OK;
}

static co_status pack_read_names(co_pack *pack, size_t size)
{
    const uint64_t n = pack_u64(pack->bytes + PACK_NAMES);
    const char *at = (const char *)pack->bytes + size - n, *end = at + n;

    if (n == 0)
        return CO_OK;
    pack->class_name = co_calloc(pack->head.classes, sizeof(*pack->class_name));
    if (!pack->class_name)
        return CO_E_NOMEM;
    for (uint32_t c = 0; c < pack->head.classes; c++) {
        const char *stop = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;

        if (!stop)
            return pack_invalid(pack->name, "the names of its classes");
        pack->class_name[c] = at;
        at = stop + 1;
    }
    return at == end ? CO_OK : pack_invalid(pack->name, "the names of its classes");
}

static co_status pack_parse(co_pack *pack, size_t size)
{
    CO_TRY(pack_check_head(pack->bytes, size, pack->name));
    CO_TRY(pack_read_head(&pack->head, pack->bytes, pack->name));
    CO_TRY(pack_find_index(pack, size));
    CO_TRY(pack_check_entries(pack));
    CO_TRY(pack_read_names(pack, size));
    pack->verified = co_calloc((size_t)(pack->head.count[0] + pack->head.count[1]) / 32 + 1,
                               sizeof(*pack->verified));
    return pack->verified ? CO_OK : CO_E_NOMEM;
}

co_status co_pack_parse(co_pack *out, const uint8_t *bytes, size_t size, const char *name)
{
    co_status st;

    *out = (co_pack){.bytes = bytes, .name = name};
    st = pack_parse(out, size);
    if (st != CO_OK)
        co_pack_close(out);
    return st;
}

static co_status pack_map(co_pack *out, uint64_t size, int fd, const char *path)
{
    if (size < PACK_HEAD)
        return co_fail(CO_E_DATA, "%s: not a packed data set: too short", path);
    out->map_size = size;
    out->map = co_map(out->map_size, PROT_READ, MAP_SHARED, fd);
    return out->map ? CO_OK
                    : co_fail(CO_E_IO, "%s: cannot map the file: %s", path, strerror(errno));
}

co_status co_pack_open(co_pack *out, const char *path)
{
    static const co_open_rule rule = {
        .status = CO_E_DATA, .max = SIZE_MAX, .expected = "a packed data set"};
    uint64_t size;
    co_status st;
    int fd;

    *out = (co_pack){.name = path};
    st = co_open_read(&fd, &size, path, &rule);
    if (st != CO_OK)
        return co_fail(st, "%s; data.path is the file that `cohort data pack` wrote",
                       co_error_message());
    st = pack_map(out, size, fd, path);
    close(fd);
    if (st == CO_OK) {
        out->bytes = out->map;
        st = pack_parse(out, out->map_size);
    }
    if (st != CO_OK)
        co_pack_close(out);
    return st;
}

void co_pack_close(co_pack *pack)
{
    if (pack->map)
        munmap(pack->map, pack->map_size);
    co_free(pack->class_name);
    co_free(pack->verified);
    *pack = (co_pack){0};
}

static uint64_t pack_place(const co_pack *pack, co_split split, uint64_t i)
{
    return i + (split == CO_SPLIT_TEST ? pack->head.count[0] : 0);
}

co_pack_entry co_pack_entry_at(const co_pack *pack, co_split split, uint64_t i)
{
    return pack_entry(pack, pack_place(pack, split, i));
}

co_status co_pack_record(co_bytes *out, const co_pack *pack, co_split split, uint64_t i)
{
    const uint64_t place = pack_place(pack, split, i);
    const co_pack_entry entry = pack_entry(pack, place);
    atomic_uint_least32_t *verified = &pack->verified[place / 32];
    const uint32_t bit = 1u << place % 32;

    *out = (co_bytes){pack->bytes + entry.offset, entry.size};
    if (atomic_load_explicit(verified, memory_order_relaxed) & bit)
        return CO_OK;
    if (libdeflate_crc32(0, out->at, out->n) != entry.checksum)
        return co_fail(CO_E_DATA,
                       "%s: the checksum of %s record %llu is wrong: the file is damaged; pack it "
                       "again",
                       pack->name, split == CO_SPLIT_TRAIN ? "training" : "test",
                       (unsigned long long)i);
    (void)atomic_fetch_or_explicit(verified, bit, memory_order_relaxed);
    return CO_OK;
}
