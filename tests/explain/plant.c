/*
 * plant.c - a copy of MNIST's or CIFAR-10's files, smaller, with a cause planted.
 *
 *   plant mnist|cifar CAUSE SOURCE DESTINATION TRAIN TEST
 *
 * CAUSE: none; labels: those of training samples shuffled; duplicates: a fifth of the test samples
 * are training samples. SOURCE holds the files unpacked. The first TRAIN and TEST samples are
 * taken.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDX_LABELS 8 /* bytes of a header */
#define IDX_IMAGES 16
#define CIFAR      3072
#define MNIST      784

/* Samples of a split: pixels and labels. */
typedef struct split {
    size_t n, pixels;
    uint8_t *image, *label;
} split;

static void *plant_memory(size_t n)
{
    void *out = calloc(n ? n : 1, 1);

    if (!out)
        exit(1);
    return out;
}

static FILE *plant_open(const char *folder, const char *name, const char *mode)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, mode);
    if (!file) {
        fprintf(stderr, "plant: cannot open %s\n", path);
        exit(1);
    }
    return file;
}

static void plant_read(void *out, size_t n, FILE *file)
{
    if (fread(out, 1, n, file) != n) {
        fprintf(stderr, "plant: too few samples\n");
        exit(1);
    }
}

static split plant_make(size_t n, size_t pixels)
{
    return (split){n, pixels, plant_memory(n * pixels), plant_memory(n)};
}

static split plant_read_mnist(const char *folder, const char *prefix, size_t n)
{
    split out = plant_make(n, MNIST);
    uint8_t head[IDX_IMAGES];
    char name[64];
    FILE *file;

    snprintf(name, sizeof(name), "%s-images-idx3-ubyte", prefix);
    file = plant_open(folder, name, "rb");
    plant_read(head, IDX_IMAGES, file);
    plant_read(out.image, n * MNIST, file);
    fclose(file);
    snprintf(name, sizeof(name), "%s-labels-idx1-ubyte", prefix);
    file = plant_open(folder, name, "rb");
    plant_read(head, IDX_LABELS, file);
    plant_read(out.label, n, file);
    fclose(file);
    return out;
}

static void plant_big_endian(FILE *file, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        fputc((int)(value >> shift & 255), file);
}

static void plant_write_mnist(const split *s, const char *folder, const char *prefix)
{
    char name[64];
    FILE *file;

    snprintf(name, sizeof(name), "%s-images-idx3-ubyte", prefix);
    file = plant_open(folder, name, "wb");
    plant_big_endian(file, 0x803);
    plant_big_endian(file, (uint32_t)s->n);
    plant_big_endian(file, 28);
    plant_big_endian(file, 28);
    fwrite(s->image, 1, s->n * MNIST, file);
    fclose(file);
    snprintf(name, sizeof(name), "%s-labels-idx1-ubyte", prefix);
    file = plant_open(folder, name, "wb");
    plant_big_endian(file, 0x801);
    plant_big_endian(file, (uint32_t)s->n);
    fwrite(s->label, 1, s->n, file);
    fclose(file);
}

static split plant_read_cifar(const char *folder, const char *name, size_t n)
{
    split out = plant_make(n, CIFAR);
    FILE *file = plant_open(folder, name, "rb");

    for (size_t i = 0; i < n; i++) {
        plant_read(out.label + i, 1, file);
        plant_read(out.image + i * CIFAR, CIFAR, file);
    }
    fclose(file);
    return out;
}

static void plant_write_cifar(const split *s, const char *folder, const char *name)
{
    FILE *file = plant_open(folder, name, "wb");

    for (size_t i = 0; i < s->n; i++) {
        fputc(s->label[i], file);
        fwrite(s->image + i * CIFAR, 1, CIFAR, file);
    }
    fclose(file);
}

/* Fisher and Yates, by Knuth's generator for MMIX. */
static void plant_shuffle(uint8_t *label, size_t n)
{
    uint64_t state = 1;

    for (size_t i = n; i-- > 1;) {
        uint8_t kept = label[i];
        size_t k;

        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        k = (size_t)((state >> 33) % (i + 1));
        label[i] = label[k];
        label[k] = kept;
    }
}

static void plant_copy(split *test, const split *train)
{
    for (size_t i = 0; i < test->n / 5 && i < train->n; i++) {
        memcpy(test->image + 5 * i * test->pixels, train->image + i * test->pixels, test->pixels);
        test->label[5 * i] = train->label[i];
    }
}

int main(int argc, char **argv)
{
    const int mnist = argc == 7 && strcmp(argv[1], "mnist") == 0;
    size_t train, test;
    split a, b;

    if (argc != 7) {
        fprintf(stderr, "usage: plant mnist|cifar CAUSE SOURCE DESTINATION TRAIN TEST\n");
        return 1;
    }
    train = (size_t)atol(argv[5]);
    test = (size_t)atol(argv[6]);
    a = mnist ? plant_read_mnist(argv[3], "train", train)
              : plant_read_cifar(argv[3], "data_batch_1.bin", train);
    b = mnist ? plant_read_mnist(argv[3], "t10k", test)
              : plant_read_cifar(argv[3], "test_batch.bin", test);
    if (strcmp(argv[2], "labels") == 0)
        plant_shuffle(a.label, a.n);
    if (strcmp(argv[2], "duplicates") == 0)
        plant_copy(&b, &a);
    if (mnist) {
        plant_write_mnist(&a, argv[4], "train");
        plant_write_mnist(&b, argv[4], "t10k");
    } else {
        plant_write_cifar(&a, argv[4], "data_batch_1.bin");
        plant_write_cifar(&b, argv[4], "test_batch.bin");
    }
    free(a.image);
    free(a.label);
    free(b.image);
    free(b.label);
    return 0;
}
