/*
 * jpeg_decode.c - how many JPEG files a second libjpeg-turbo's own interface decodes on one core.
 *
 * Does what its tjbench does with each file: decompress all of it from memory to RGB, into one
 * buffer, without fast upsampling or a fast transform. Prints one JSON line; files a second count
 * by processor time, so that a busy machine does not matter.
 *
 *   cc -O2 jpeg_decode.c -o jpeg_decode -lturbojpeg && ./jpeg_decode FILE ...
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <turbojpeg.h>

#define PASSES 3

typedef struct file {
    unsigned char *bytes;
    unsigned long size;
    int width, height;
} file;

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int load(file *out, tjhandle tj, const char *path)
{
    FILE *in = fopen(path, "rb");
    int sampling, colours;
    long size;

    if (!in || fseek(in, 0, SEEK_END) != 0 || (size = ftell(in)) <= 0)
        return -1;
    rewind(in);
    out->size = (unsigned long)size;
    out->bytes = malloc(out->size);
    if (!out->bytes || fread(out->bytes, 1, out->size, in) != out->size)
        return -1;
    fclose(in);
    return tjDecompressHeader3(tj, out->bytes, out->size, &out->width, &out->height, &sampling,
                               &colours);
}

static int decode(unsigned char *out, tjhandle tj, const file *f, const char *path)
{
    if (tjDecompress2(tj, f->bytes, f->size, out, f->width, 0, f->height, TJPF_RGB, 0) == 0)
        return 0;
    fprintf(stderr, "%s: %s\n", path, tjGetErrorStr2(tj));
    return -1;
}

int main(int argc, char **argv)
{
    tjhandle tj = tjInitDecompress();
    file *files = calloc((size_t)argc, sizeof(*files));
    unsigned char *out;
    size_t most = 0;
    double start = 0;
    int n = argc - 1;

    if (!tj || !files || n < 1)
        return 1;
    for (int i = 0; i < n; i++) {
        size_t size;

        if (load(&files[i], tj, argv[i + 1]) != 0) {
            fprintf(stderr, "%s: cannot be read\n", argv[i + 1]);
            return 1;
        }
        size = (size_t)files[i].width * (size_t)files[i].height * 3;
        most = size > most ? size : most;
    }
    out = malloc(most);
    if (!out)
        return 1;
    for (int pass = -1; pass < PASSES; pass++) { /* the first one warms up */
        if (pass == 0)
            start = cpu_seconds();
        for (int i = 0; i < n; i++)
            if (decode(out, tj, &files[i], argv[i + 1]) != 0)
                return 1;
    }
    printf("{\"peer\": \"libjpeg-turbo\", \"files\": %d, \"samples_per_core_second\": %.9g}\n", n,
           (double)n * PASSES / (cpu_seconds() - start));
    return 0;
}
