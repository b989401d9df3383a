/*
 * tensorboard_message.c - a record is: length (8 bytes), its checksum (4), an Event, its checksum
 * (4). Checksums are CRC-32C, rotated and shifted so that records may contain records; numbers are
 * little-endian.
 */
#include "telemetry/tensorboard_message.h"

#include <string.h>
#include <time.h>

#include "core/mem.h"

#define BOARD_FIRST_ROOM 1024

enum { BOARD_VARINT = 0, BOARD_EIGHT = 1, BOARD_BYTES = 2, BOARD_FOUR = 5 };

void board_free(board_message *m)
{
    co_free(m->byte);
    *m = (board_message){0};
}

void board_clear(board_message *m)
{
    m->size = 0;
    m->failed = false;
}

static void board_put(board_message *m, const void *byte, size_t size)
{
    if (!m->failed && size > m->room - m->size) {
        size_t room = m->room ? m->room : BOARD_FIRST_ROOM;
        uint8_t *grown;

        while (room - m->size < size)
            room *= 2;
        grown = co_realloc(m->byte, room, 1);
        m->failed = !grown;
        if (grown) {
            m->byte = grown;
            m->room = room;
        }
    }
    if (m->failed || size == 0)
        return;
    memcpy(m->byte + m->size, byte, size);
    m->size += size;
}

static void board_little(board_message *m, uint64_t value, size_t size)
{
    uint8_t byte[8];

    for (size_t i = 0; i < size; i++)
        byte[i] = (uint8_t)(value >> 8 * i);
    board_put(m, byte, size);
}

static void board_varint(board_message *m, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        board_little(m, value | 0x80, 1);
    board_little(m, value, 1);
}

static void board_tag(board_message *m, unsigned field, unsigned type)
{
    board_varint(m, field << 3 | type);
}

void board_int(board_message *m, unsigned field, uint64_t value)
{
    board_tag(m, field, BOARD_VARINT);
    board_varint(m, value);
}

void board_float(board_message *m, unsigned field, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    board_tag(m, field, BOARD_FOUR);
    board_little(m, bits, 4);
}

void board_double(board_message *m, unsigned field, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    board_tag(m, field, BOARD_EIGHT);
    board_little(m, bits, 8);
}

void board_bytes(board_message *m, unsigned field, const void *byte, size_t size)
{
    board_tag(m, field, BOARD_BYTES);
    board_varint(m, size);
    board_put(m, byte, size);
}

void board_text(board_message *m, unsigned field, const char *text)
{
    board_bytes(m, field, text, strlen(text));
}

void board_nest(board_message *m, unsigned field, const board_message *inner)
{
    board_bytes(m, field, inner->byte, inner->size);
    m->failed |= inner->failed;
}

void board_begin(board_message *m, uint64_t step)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    board_clear(m);
    board_double(m, 1, (double)now.tv_sec + (double)now.tv_nsec * 1e-9);
    board_int(m, 2, step);
}

static uint32_t board_checksum(const uint8_t *byte, size_t size)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < size; i++) {
        crc ^= byte[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

co_status board_record(const co_append *file, const board_message *event, board_message *scratch)
{
    board_clear(scratch);
    board_little(scratch, event->size, 8);
    if (!scratch->failed)
        board_little(scratch, board_checksum(scratch->byte, 8), 4);
    board_put(scratch, event->byte, event->size);
    if (!event->failed)
        board_little(scratch, board_checksum(event->byte, event->size), 4);
    if (event->failed || scratch->failed)
        return CO_E_NOMEM;
    return co_append_record(file, scratch->byte, scratch->size);
}
