/* pickles.c - CIFAR's files for Python, in the format of Python 2's cPickle. */
#include "data/pickles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/cifar.h"

#define BATCH 1000 /* list items that cPickle writes at a time */

void pickle_bytes(pickle_writer *w, const void *from, size_t n)
{
    assert_true(w->n + n <= PICKLE_ROOM);
    memcpy(w->at + w->n, from, n);
    w->n += n;
}

static void little(pickle_writer *w, uint32_t value, size_t n)
{
    const uint8_t all[] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                           (uint8_t)(value >> 24)};

    pickle_bytes(w, all, n);
}

static void put(pickle_writer *w)
{
    const unsigned i = ++w->memo;

    pickle_bytes(w, i < 256 ? "q" : "r", 1);
    little(w, i, i < 256 ? 1 : 4);
}

void pickle_string(pickle_writer *w, const char *text)
{
    PICKLE_TEXT(w, "U");
    little(w, (uint32_t)strlen(text), 1);
    pickle_bytes(w, text, strlen(text));
    put(w);
}

void pickle_number(pickle_writer *w, unsigned value)
{
    pickle_bytes(w, value < 256 ? "K" : value < 65536 ? "M" : "J", 1);
    little(w, value, value < 256 ? 1 : value < 65536 ? 2 : 4);
}

/* A list of n values, written by `item`. */
void pickle_list(pickle_writer *w, size_t first, size_t n, void (*item)(pickle_writer *w, size_t i))
{
    PICKLE_TEXT(w, "]");
    put(w);
    for (size_t done = 0; done < n;) {
        const size_t some = n - done < BATCH ? n - done : BATCH;

        if (some > 1)
            PICKLE_TEXT(w, "(");
        for (size_t i = 0; i < some; i++)
            item(w, first + done + i);
        pickle_bytes(w, some > 1 ? "e" : "a", 1);
        done += some;
    }
}

uint8_t pickle_pixel(size_t record, size_t i)
{
    return (uint8_t)(record * 31 + i * i % 253);
}

void pickle_array(pickle_writer *w, size_t first, size_t n, bool fortran)
{
    PICKLE_TEXT(w, "cnumpy.core.multiarray\n_reconstruct\n");
    put(w);
    PICKLE_TEXT(w, "cnumpy\nndarray\n");
    put(w);
    PICKLE_TEXT(w, "K\0\x85");
    put(w);
    PICKLE_TEXT(w, "U\1b\x87R");
    put(w);
    PICKLE_TEXT(w, "(K\1");
    pickle_number(w, (unsigned)n);
    pickle_number(w, CO_CIFAR_IMAGE);
    PICKLE_TEXT(w, "\x86");
    put(w);
    PICKLE_TEXT(w, "cnumpy\ndtype\n");
    put(w);
    PICKLE_TEXT(w, "U\2u1K\0K\1\x87R");
    put(w);
    PICKLE_TEXT(w, "(K\3U\1|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb");
    pickle_bytes(w, fortran ? "\x88T" : "\x89T", 2);
    little(w, (uint32_t)(n * CO_CIFAR_IMAGE), 4);
    for (size_t k = 0; k < n * CO_CIFAR_IMAGE; k++) {
        const uint8_t byte = fortran ? pickle_pixel(first + k % n, k / n)
                                     : pickle_pixel(first + k / CO_CIFAR_IMAGE, k % CO_CIFAR_IMAGE);

        pickle_bytes(w, &byte, 1);
    }
    PICKLE_TEXT(w, "tb");
    put(w);
}

void pickle_label(pickle_writer *w, size_t i)
{
    pickle_number(w, (unsigned)(i % 10));
}

static void pickle_fine(pickle_writer *w, size_t i)
{
    pickle_number(w, (unsigned)(i % 100));
}

static void pickle_coarse(pickle_writer *w, size_t i)
{
    pickle_number(w, (unsigned)(i % 20));
}

void pickle_file(pickle_writer *w, size_t i)
{
    char name[32];

    snprintf(name, sizeof(name), "picture_s_%06zu.png", i);
    pickle_string(w, name);
}

void pickle_class(pickle_writer *w, size_t i)
{
    char name[16];

    snprintf(name, sizeof(name), "class %zu", i);
    pickle_string(w, name);
}

pickle_writer pickle_begin(void)
{
    pickle_writer w = {.at = malloc(PICKLE_ROOM)};

    assert_non_null(w.at);
    PICKLE_TEXT(&w, PICKLE "}");
    put(&w);
    PICKLE_TEXT(&w, "(");
    return w;
}

/* Samples first .. first + n - 1 in the form of data_batch_1. */
pickle_writer pickle_cifar10(size_t first, size_t n, bool fortran)
{
    pickle_writer w = pickle_begin();

    pickle_string(&w, "batch_label");
    pickle_string(&w, "training batch 1 of 5");
    pickle_string(&w, "labels");
    pickle_list(&w, first, n, pickle_label);
    pickle_string(&w, "data");
    pickle_array(&w, first, n, fortran);
    pickle_string(&w, "filenames");
    pickle_list(&w, first, n, pickle_file);
    PICKLE_TEXT(&w, "u.");
    return w;
}

pickle_writer pickle_cifar100(size_t first, size_t n)
{
    pickle_writer w = pickle_begin();

    pickle_string(&w, "filenames");
    pickle_list(&w, first, n, pickle_file);
    pickle_string(&w, "batch_label");
    pickle_string(&w, "training batch 1 of 1");
    pickle_string(&w, "fine_labels");
    pickle_list(&w, first, n, pickle_fine);
    pickle_string(&w, "coarse_labels");
    pickle_list(&w, first, n, pickle_coarse);
    pickle_string(&w, "data");
    pickle_array(&w, first, n, false);
    PICKLE_TEXT(&w, "u.");
    return w;
}
