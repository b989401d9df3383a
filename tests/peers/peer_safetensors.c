/*
 * peer_safetensors.c - Cohort's side of peer_safetensors.py: writes a file that the script checks,
 * or prints the contents of a file that it wrote.
 */
#include <stdio.h>
#include <string.h>

#include <cohort/safetensors.h>

/* Element i of each tensor is i * 3 - 4, exact in every type but U8, which wraps. */
static co_status peer_write(const char *path)
{
    static const char *const metadata[] = {"format", "pt", NULL};
    float f32[12];
    double f64[5];
    int32_t i32[1];
    int64_t i64[4];
    uint8_t u8[3];

    for (int i = 0; i < 12; i++) {
        int value = i * 3 - 4;

        f32[i] = (float)value;
        if (i < 5)
            f64[i] = value;
        if (i < 1)
            i32[i] = value;
        if (i < 4)
            i64[i] = value;
        if (i < 3)
            u8[i] = (uint8_t)value;
    }
    const co_named_tensor tensors[] = {
        {"conv1.weight", CO_F32, {4, {2, 1, 3, 2}}, f32, sizeof(f32)},
        {"b\xc3\xa9ta \"5\"", CO_F64, {1, {5}}, f64, sizeof(f64)},
        {"scalar", CO_I32, {0, {0}}, i32, sizeof(i32)},
        {"num_batches", CO_I64, {2, {2, 2}}, i64, sizeof(i64)},
        {"bytes", CO_U8, {2, {1, 3}}, u8, sizeof(u8)},
        {"empty", CO_F32, {2, {0, 7}}, NULL, 0},
    };

    return co_safetensors_write(path, tensors, sizeof(tensors) / sizeof(tensors[0]), metadata);
}

/* A line per tensor: name, dtype, shape, SHA-256 of its bytes; then the metadata's format. */
static co_status peer_read(const char *path)
{
    co_safetensors *file = NULL;
    const char *format;

    CO_TRY(co_safetensors_open(&file, path));
    for (size_t i = 0; i < co_safetensors_count(file); i++) {
        const co_named_tensor *tensor = co_safetensors_tensor(file, i);
        char shape[64], hash[65];

        co_safetensors_sha256(hash, tensor, 1);
        printf("%s|%s|%s|%s\n", tensor->name, co_dtype_name(tensor->dtype),
               co_shape_format(shape, sizeof(shape), &tensor->shape), hash);
    }
    format = co_safetensors_metadata(file, "format");
    printf("format|%s\n", format ? format : "");
    co_safetensors_close(file);
    return CO_OK;
}

int main(int argc, char **argv)
{
    co_status st = CO_E_USAGE;

    if (argc == 3 && strcmp(argv[1], "write") == 0)
        st = peer_write(argv[2]);
    else if (argc == 3 && strcmp(argv[1], "read") == 0)
        st = peer_read(argv[2]);
    if (st != CO_OK)
        fprintf(stderr, "%s\n", co_error_message());
    return co_exit_code(st);
}
