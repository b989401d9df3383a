/*
 * make_arrays.c - data of two kinds for the data set `arrays`: make_arrays DIR
 * DIR/energy.safetensors: the weather of an hour, and what a building uses for heating and light.
 * DIR/faults.safetensors: what sensors of a machine read, and which of four faults it has.
 * To be linked with the mathematical functions, too: -lm.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include <cohort.h>

#define TRAIN  4000
#define TEST   1000
#define HOURS  (TRAIN + TEST)
#define INPUTS 8

/* From 0 to 1. */
static float draw(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return (float)(*state >> 8) / 16777216.0f;
}

/* Inputs lie near -1 to 1, as a network likes them; kWh are divided by 100. */
static void make_hour(float in[INPUTS], float use[2], uint32_t *state)
{
    const float hour = floorf(24 * draw(state)), day = 365 * draw(state), turn = 6.2831853f;
    const float weekend = draw(state) < 2.0f / 7 ? 1 : 0, wind = 15 * draw(state);
    const float season = -cosf(turn * day / 365), noon = -cosf(turn * hour / 24);
    const float outside = 10 + 10 * season + 4 * noon + 6 * (draw(state) - 0.5f);
    const float sun = fmaxf(0, noon + 0.4f * season) * draw(state);
    const float people = hour > 6 && hour < 19 ? 1 - 0.8f * weekend : 0.1f;
    const float heating = fmaxf(0, 20 - outside) * (4 + 0.2f * wind) - 15 * sun - 8 * people;
    const float values[INPUTS] = {sinf(turn * hour / 24), noon,      season, weekend,
                                  outside / 20,           wind / 15, sun,    people};

    for (int k = 0; k < INPUTS; k++)
        in[k] = values[k];
    use[0] = (fmaxf(0, heating) + 4 * draw(state)) / 100;
    use[1] = (5 + 40 * people * (1.2f - fminf(1, sun)) + 2 * draw(state)) / 100;
}

/* Bearing, imbalance, leak, heat: each shows in some readings, several may be there at once. */
static void make_machine(float in[INPUTS], uint8_t fault[4], uint32_t *state)
{
    static const float shows[4][INPUTS] = {{1.2f, 0.9f, 0, 0, 0.4f, 0, 0, 0.2f},
                                           {0.2f, 1.1f, 1.3f, 0, 0, 0, 0, 0},
                                           {0, 0, 0, -1.4f, -0.7f, 0.8f, 0, 0},
                                           {0.3f, 0, 0, 0.2f, 0, 0.9f, 1.5f, 0}};

    for (int k = 0; k < INPUTS; k++)
        in[k] = draw(state) + draw(state) - 1;
    for (int f = 0; f < 4; f++) {
        fault[f] = draw(state) < 0.3f;
        for (int k = 0; k < INPUTS; k++)
            in[k] += fault[f] * shows[f][k] * (0.7f + 0.6f * draw(state));
    }
}

/* The first TRAIN rows are the training split. */
static co_status write_splits(const char *dir, const char *name, float (*in)[INPUTS],
                              const void *target, co_dtype dtype, int64_t outputs)
{
    const size_t row = (size_t)outputs * co_dtype_size(dtype);
    const char *rest = (const char *)target + TRAIN * row;
    const co_named_tensor tensors[] = {
        {"train.input", CO_F32, {2, {TRAIN, INPUTS}}, in, TRAIN * sizeof(*in)},
        {"train.target", dtype, {2, {TRAIN, outputs}}, target, TRAIN * row},
        {"test.input", CO_F32, {2, {TEST, INPUTS}}, in[TRAIN], TEST * sizeof(*in)},
        {"test.target", dtype, {2, {TEST, outputs}}, rest, TEST * row},
    };
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return co_safetensors_write(path, tensors, 4, NULL);
}

int main(int argc, char **argv)
{
    static float in[HOURS][INPUTS], use[HOURS][2];
    static uint8_t fault[HOURS][4];
    uint32_t state = 2026;
    co_status st;

    if (argc != 2) {
        fprintf(stderr, "make_arrays: takes the folder to write to\n");
        return co_exit_code(CO_E_USAGE);
    }
    for (int i = 0; i < HOURS; i++)
        make_hour(in[i], use[i], &state);
    st = write_splits(argv[1], "energy.safetensors", in, use, CO_F32, 2);
    for (int i = 0; i < HOURS; i++)
        make_machine(in[i], fault[i], &state);
    if (st == CO_OK)
        st = write_splits(argv[1], "faults.safetensors", in, fault, CO_U8, 4);
    if (st != CO_OK)
        fprintf(stderr, "make_arrays: %s\n", co_error_message());
    else
        printf("energy.safetensors, faults.safetensors: %d training, %d test samples each\n", TRAIN,
               TEST);
    return co_exit_code(st);
}
