/*
 * evidence_data.c - evidence from a run's data: values, labels, duplicates.
 *
 * Samples are taken evenly over a split, at most so many that this takes seconds.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/mem.h"
#include "core/rng.h"
#include "data/data.h"
#include "explain/evidence.h"

#define DATA_MOMENTS 512     /* samples for mean and standard deviation */
#define DATA_LABELS  1000000 /* labels that are counted */
#define DATA_RAW     300000  /* samples of a split that are hashed: stored as pixels, */
#define DATA_ENCODED 5000    /* and to be decoded */
#define DATA_JUDGED  2000    /* samples for class means, and as many to judge them by */
#define DATA_SIDE    8       /* pixels are averaged down to so many a side for them */
#define DATA_CLASSES 1000    /* at most, for class means */

static uint64_t data_stride(uint64_t count, uint64_t most)
{
    return count > most ? (count + most - 1) / most : 1;
}

/* Whether a sample was read; a damaged one that the run skips is left out, and is no error. */
static bool data_has(co_status *st, const co_dataset *data)
{
    const bool has = *st == CO_OK;

    if (co_dataset_skips(data, *st))
        *st = CO_OK;
    return has;
}

/* ---- values ---- */

static co_status data_moments(co_evidence_data *out, const co_dataset *train)
{
    const co_shape *shape = co_dataset_shape(train);
    const size_t plane = (size_t)(co_shape_count(shape) / shape->dim[0]);
    const uint64_t count = co_dataset_count(train), stride = data_stride(count, DATA_MOMENTS);
    float *value = co_calloc((size_t)co_shape_count(shape), sizeof(*value));
    double sum[CO_EVIDENCE_CHANNELS] = {0}, squares[CO_EVIDENCE_CHANNELS] = {0}, n = 0;
    co_status st = value ? CO_OK : CO_E_NOMEM;

    out->channels =
        shape->dim[0] < CO_EVIDENCE_CHANNELS ? (int)shape->dim[0] : CO_EVIDENCE_CHANNELS;
    for (uint64_t i = 0; st == CO_OK && i < count; i += stride) {
        st = co_dataset_read(train, value, i);
        if (!data_has(&st, train))
            continue;
        for (int c = 0; c < out->channels; c++)
            for (size_t k = 0; k < plane; k++) {
                const double v = (double)value[(size_t)c * plane + k];

                sum[c] += v;
                squares[c] += v * v;
            }
        n += (double)plane;
    }
    for (int c = 0; n > 0 && c < out->channels; c++) {
        out->mean[c] = sum[c] / n;
        out->std[c] = sqrt(fmax(squares[c] / n - out->mean[c] * out->mean[c], 0));
    }
    co_free(value);
    return st;
}

/* ---- labels ---- */

static co_status data_count_labels(co_evidence_data *out, const co_dataset *train)
{
    const uint64_t count = co_dataset_count(train), stride = data_stride(count, DATA_LABELS);
    uint64_t *of = co_calloc((size_t)out->classes, sizeof(*of));

    if (!of)
        return CO_E_NOMEM;
    for (uint64_t i = 0; i < count; i += stride) {
        const int32_t label = co_dataset_label(train, i);

        if (label >= 0 && label < out->classes)
            of[label] += stride;
    }
    out->rarest = UINT64_MAX;
    for (int64_t c = 0; c < out->classes; c++) {
        out->absent += of[c] == 0;
        if (of[c] && of[c] < out->rarest)
            out->rarest = of[c];
        if (of[c] > out->commonest)
            out->commonest = of[c];
    }
    co_free(of);
    return CO_OK;
}

/* A sample as a few numbers: means over squares of its pixels. */
static void data_reduce(double *out, const float *value, const co_shape *shape)
{
    const size_t height = (size_t)shape->dim[1], width = (size_t)shape->dim[2];
    double n[DATA_SIDE * DATA_SIDE] = {0};

    for (size_t c = 0; c < (size_t)shape->dim[0]; c++) {
        double *to = out + c * DATA_SIDE * DATA_SIDE;

        memset(to, 0, sizeof(n));
        memset(n, 0, sizeof(n));
        for (size_t y = 0; y < height; y++)
            for (size_t x = 0; x < width; x++) {
                const size_t at = y * DATA_SIDE / height * DATA_SIDE + x * DATA_SIDE / width;

                to[at] += (double)value[(c * height + y) * width + x];
                n[at]++;
            }
        for (size_t k = 0; k < DATA_SIDE * DATA_SIDE; k++)
            to[k] /= n[k] > 0 ? n[k] : 1;
    }
}

typedef struct data_means {
    const co_dataset *train;
    size_t terms;
    int64_t classes;
    float *value;   /* one sample */
    double *sample; /* (terms) */
    double *mean;   /* (classes, terms) */
    uint64_t *n;    /* (classes) */
} data_means;

static int64_t data_nearest(const data_means *m)
{
    double least = INFINITY;
    int64_t best = -1;

    for (int64_t c = 0; c < m->classes; c++) {
        const double *mean = m->mean + (size_t)c * m->terms;
        double distance = 0;

        if (m->n[c] == 0)
            continue;
        for (size_t k = 0; k < m->terms; k++)
            distance += (m->sample[k] - mean[k]) * (m->sample[k] - mean[k]);
        if (distance < least) {
            least = distance;
            best = c;
        }
    }
    return best;
}

static co_status data_take(int32_t *label, const data_means *m, uint64_t i)
{
    CO_TRY(co_dataset_take_label(label, m->train, i));
    CO_TRY(co_dataset_read(m->train, m->value, i));
    data_reduce(m->sample, m->value, co_dataset_shape(m->train));
    return CO_OK;
}

/* One of the samples [*i, *i + stride), drawn, as labels may be in an order that repeats; and
   whether means are made from it, or judged by it. */
static bool data_draw(uint64_t *i, uint64_t stride, uint64_t count)
{
    const co_rng rng = {.stream = CO_RNG_EXPLAIN};
    const uint32_t word = co_rng_word(&rng, *i / stride);
    const uint64_t span = count - *i < stride ? count - *i : stride;

    *i += (word >> 1) % span;
    return word & 1;
}

/* Means of classes from half of the samples that are looked at, judged by the others. */
static co_status data_judge(co_evidence_data *out, data_means *m)
{
    const uint64_t count = co_dataset_count(m->train),
                   stride = data_stride(count, 2 * (uint64_t)DATA_JUDGED);
    uint64_t hits = 0, *seen = co_calloc((size_t)m->classes, sizeof(*seen)), most = 0;
    co_status st = seen ? CO_OK : CO_E_NOMEM;

    for (uint64_t begin = 0; st == CO_OK && begin < count; begin += stride) {
        uint64_t i = begin;
        int32_t label = 0;

        if (!data_draw(&i, stride, count))
            continue;
        st = data_take(&label, m, i);
        if (!data_has(&st, m->train))
            continue;
        for (size_t k = 0; k < m->terms; k++)
            m->mean[(size_t)label * m->terms + k] += m->sample[k];
        m->n[label]++;
    }
    for (int64_t c = 0; c < m->classes; c++)
        for (size_t k = 0; k < m->terms; k++)
            m->mean[(size_t)c * m->terms + k] /= m->n[c] ? (double)m->n[c] : 1;
    for (uint64_t begin = 0; st == CO_OK && begin < count; begin += stride) {
        uint64_t i = begin;
        int32_t label = 0;

        if (data_draw(&i, stride, count))
            continue;
        st = data_take(&label, m, i);
        if (!data_has(&st, m->train))
            continue;
        hits += data_nearest(m) == label;
        most = ++seen[label] > most ? seen[label] : most;
        out->judged++;
    }
    if (out->judged) {
        out->nearest = (double)hits / (double)out->judged;
        out->guess = (double)most / (double)out->judged;
    }
    co_free(seen);
    return st;
}

static co_status data_class_means(co_evidence_data *out, const co_dataset *train)
{
    const co_shape *shape = co_dataset_shape(train);
    data_means m = {.train = train, .classes = out->classes};
    co_status st = CO_E_NOMEM;

    if (out->classes > DATA_CLASSES || out->classes < 2 || shape->dim[1] < 2 || shape->dim[2] < 2)
        return CO_OK;
    m.terms = (size_t)shape->dim[0] * DATA_SIDE * DATA_SIDE;
    m.value = co_calloc((size_t)co_shape_count(shape), sizeof(*m.value));
    m.sample = co_calloc(m.terms, sizeof(*m.sample));
    m.mean = co_calloc((size_t)m.classes * m.terms, sizeof(*m.mean));
    m.n = co_calloc((size_t)m.classes, sizeof(*m.n));
    if (m.value && m.sample && m.mean && m.n)
        st = data_judge(out, &m);
    co_free(m.value);
    co_free(m.sample);
    co_free(m.mean);
    co_free(m.n);
    return st;
}

/* ---- duplicates ---- */

typedef struct data_hash {
    uint64_t hash, sample;
} data_hash;

static int data_compare(const void *a, const void *b)
{
    const data_hash *x = a, *y = b;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->sample > y->sample) - (x->sample < y->sample);
}

/* A file is decoded at its own size; the same picture in another file has the same pixels. */
static co_status data_decode(uint64_t *hash, const co_bytes *bytes, const co_dataset *data,
                             uint64_t i, co_buffer *pixels, co_image_scratch *scratch)
{
    const int64_t channels = co_dataset_stored(data)->shape.dim[0];
    co_image_want want = {.channels = channels};
    co_image_info info;
    uint8_t *out;
    char name[256];
    size_t n;

    co_dataset_sample_name(data, name, sizeof(name), i);
    CO_TRY(co_image_probe(&info, bytes->at, bytes->n, name));
    want.height = info.height;
    want.width = info.width;
    want.box = (co_image_box){.width = info.width, .height = info.height};
    n = (size_t)channels * info.width * info.height;
    CO_TRY(co_buffer_reserve(&out, pixels, n));
    CO_TRY(co_image_decode(out, &want, scratch, bytes->at, bytes->n, name));
    *hash = co_hash(co_hash(CO_HASH, &info.width, sizeof(info.width)), out, n);
    return CO_OK;
}

/* A sample that cannot be decoded is not hashed. */
static co_status data_hash_all(data_hash **out, uint64_t *n, const co_dataset *data)
{
    const bool encoded = co_dataset_stored(data)->encoded;
    const uint64_t count = co_dataset_count(data),
                   stride = data_stride(count, encoded ? DATA_ENCODED : DATA_RAW);
    co_image_scratch *scratch = NULL;
    co_buffer stored = {NULL}, pixels = {NULL};
    co_status st = CO_OK;

    *n = 0;
    *out = co_calloc((size_t)(count / stride) + 1, sizeof(**out));
    if (!*out)
        return CO_E_NOMEM;
    if (encoded)
        st = co_image_scratch_create(&scratch);
    for (uint64_t i = 0; st == CO_OK && i < count; i += stride) {
        co_bytes bytes;
        uint64_t hash = 0;

        st = co_dataset_stored_sample(&bytes, data, &stored, i);
        if (st == CO_OK && encoded)
            st = data_decode(&hash, &bytes, data, i, &pixels, scratch);
        else if (st == CO_OK)
            hash = co_hash(CO_HASH, bytes.at, bytes.n);
        if (st == CO_OK)
            (*out)[(*n)++] = (data_hash){hash, i};
        st = st == CO_E_DATA ? CO_OK : st;
    }
    co_image_scratch_destroy(scratch);
    co_buffer_free(&stored);
    co_buffer_free(&pixels);
    qsort(*out, (size_t)*n, sizeof(**out), data_compare);
    return st;
}

static void data_match(co_evidence_data *out, const data_hash *train, const data_hash *test,
                       const co_dataset *in)
{
    uint64_t k = 0;

    for (uint64_t i = 0; i < out->test_hashed; i++) {
        const bool repeated = i > 0 && test[i].hash == test[i - 1].hash;

        while (k < out->train_hashed && train[k].hash < test[i].hash)
            k++;
        out->repeated += repeated;
        if (k < out->train_hashed && train[k].hash == test[i].hash)
            out->in_train++;
        else if (!repeated)
            continue;
        if (!out->example[0])
            co_dataset_sample_name(in, out->example, sizeof(out->example), test[i].sample);
    }
}

static co_status data_duplicates(co_evidence_data *out, const co_dataset *train,
                                 const co_dataset *test)
{
    data_hash *of_train = NULL, *of_test = NULL;
    co_status st = data_hash_all(&of_train, &out->train_hashed, train);

    if (st == CO_OK)
        st = data_hash_all(&of_test, &out->test_hashed, test);
    if (st == CO_OK)
        data_match(out, of_train, of_test, test);
    co_free(of_train);
    co_free(of_test);
    return st;
}

/* ---- all of it ---- */

static co_status data_read(co_evidence_data *out, const co_dataset *train, const co_dataset *test)
{
    out->images = co_dataset_has_images(train);
    out->labels = co_dataset_has_labels(train);
    out->classes = co_dataset_classes(train);
    out->train_count = co_dataset_count(train);
    out->test_count = test ? co_dataset_count(test) : 0;
    if (out->labels && out->classes > 0)
        CO_TRY(data_count_labels(out, train));
    if (!out->images)
        return CO_OK;
    CO_TRY(data_moments(out, train));
    CO_TRY(data_class_means(out, train));
    return test ? data_duplicates(out, train, test) : CO_OK;
}

co_status co_evidence_read_data(co_evidence_data *out, const co_spec *spec)
{
    co_dataset *train = NULL, *test = NULL;
    co_status st;

    CO_TRY(co_dataset_open_value(&train, spec->data, spec->config, CO_SPLIT_TRAIN));
    st = co_dataset_open_value(&test, spec->data, spec->config, CO_SPLIT_TEST);
    if (st == CO_E_DATA) /* there may be none */
        st = CO_OK;
    if (st == CO_OK)
        st = data_read(out, train, test);
    out->known = st == CO_OK;
    co_dataset_destroy(test);
    co_dataset_destroy(train);
    return st;
}
