/*
 * rules.h - what several ops ask of their attributes and input shapes, and how they say no.
 *
 * Every failure is CO_E_USAGE and speaks of one layer; the graph puts its name in front.
 */
#ifndef CO_OPS_RULES_H
#define CO_OPS_RULES_H

#include "ops/ops.h"

/* Bounds of what a config may ask for, so that no product of them overflows. */
#define RULES_MAX_CHANNELS (1 << 20)
#define RULES_MAX_EXTENT   (1 << 16)

/* (h, w) from a config list of one number or two; `fallback` (h, w) when the list is absent. */
co_status rules_pair(int64_t out[2], const co_ints *list, const char *key, const int64_t *fallback);

/* The input is images (N, C, H, W) / rows (N, F) / rows or sequences of rows (N, T, F). */
co_status rules_need_image(const co_shape *in);
co_status rules_need_matrix(const co_shape *in);
co_status rules_need_rows(const co_shape *in);

/* Receptive fields (co_op.receptive): where each result depends on the element at its place; of
   windows. */
co_extent rules_same_extent(co_extent out, const void *attr);
co_extent rules_pool_extent(co_extent out, const void *attr);

/* A tensor is small enough for every later size to be computed without overflow. */
co_status rules_need_size(const co_shape *shape, const char *what);

/* Number of places of a window along one axis ('h' or 'w'):
   (in + 2 padding - dilation (kernel - 1) - 1) / stride + 1. */
typedef struct rules_window {
    int64_t kernel, stride, padding, dilation;
} rules_window;
co_status rules_count_windows(int64_t *out, int64_t in, const rules_window *window, char axis);

/* maxpool and avgpool: the same keys but for what padding counts as, one rule for attributes and
   shapes. */
#define RULES_POOL_WINDOW_KEYS                                                                     \
    {.name = "kernel",                                                                             \
     .type = CO_KEY_INTS,                                                                          \
     .offset = offsetof(co_pool_attr, kernel),                                                     \
     .min = 1,                                                                                     \
     .max = RULES_MAX_EXTENT,                                                                      \
     .help = "size of the window in pixels: one number or [height, width]"},                       \
    {                                                                                              \
        .name = "stride", .type = CO_KEY_INTS, .offset = offsetof(co_pool_attr, stride),           \
        .fallback = "~", .min = 1, .max = RULES_MAX_EXTENT,                                        \
        .help = "pixels from one window to the next (default: the kernel)"                         \
    }
co_status rules_check_pool(void *attr);
co_status rules_shape_pool(co_shape *out, const co_shape *in, const void *attr);

/* How weights and biases start: the keys `init` and `bias_init` of conv2d and linear, for an
   attribute struct with a co_init_attr `init`; and what they say, for a weight (out, in, ...). */
#define RULES_INIT_KEYS(attr)                                                                      \
    {.name = "init",                                                                               \
     .type = CO_KEY_CHOICE,                                                                        \
     .offset = offsetof(attr, init.weight),                                                        \
     .fallback = "default",                                                                        \
     .choices = rules_weight_inits,                                                                \
     .help = "initial weights: default U(+-1/sqrt(fan_in)), kaiming_normal N(0, 2/fan_out), "      \
             "kaiming_uniform U(+-sqrt(6/fan_in)), normal N(0, init_std^2), xavier_uniform "       \
             "U(+-sqrt(6/(fan_in + fan_out)))"},                                                   \
        {.name = "init_std",                                                                       \
         .type = CO_KEY_REAL,                                                                      \
         .offset = offsetof(attr, init.std),                                                       \
         .fallback = "0.01",                                                                       \
         .min = 0,                                                                                 \
         .max = 1e3,                                                                               \
         .help = "standard deviation of the initial weights with init: normal"},                   \
    {                                                                                              \
        .name = "bias_init", .type = CO_KEY_CHOICE, .offset = offsetof(attr, init.bias),           \
        .fallback = "default", .choices = rules_bias_inits,                                        \
        .help = "initial biases: default U(+-1/sqrt(fan_in)), zero, kaiming_uniform "              \
                "U(+-sqrt(6/out))"                                                                 \
    }
extern const char *const rules_weight_inits[], *const rules_bias_inits[];
int rules_init_params(co_param_spec *out, const co_shape *weight, bool bias,
                      const co_init_attr *init);

/* The key `init_std` of embedding and positions. */
#define RULES_INIT_STD_KEY(attr)                                                                   \
    {                                                                                              \
        .name = "init_std", .type = CO_KEY_REAL, .offset = offsetof(attr, init_std),               \
        .fallback = "0.02", .min = 0, .max = 1e3,                                                  \
        .help = "initial weights: normal, with this standard deviation"                            \
    }

/* The key `eps` of layers that divide by the root of a variance or a mean of squares. */
#define RULES_EPS_KEY(attr)                                                                        \
    {                                                                                              \
        .name = "eps", .type = CO_KEY_REAL, .offset = offsetof(attr, eps), .fallback = "1e-5",     \
        .min = 1e-12, .max = 1, .help = "added to what the root is of"                             \
    }

/* ONNX: set the window of the last node, each (h, w); add a scalar constant and return its name. */
void rules_onnx_window(co_onnx *to, const int64_t *kernel, const int64_t *stride,
                       const int64_t *padding);
const char *rules_onnx_number(co_onnx *to, const char *part, double v);
/* x / sqrt(mean of x^2 over the last dimension + eps); the result's name. */
const char *rules_onnx_root_mean(co_onnx *to, const char *x, double eps);

/* Losses: predictions (N, C), labels (N) -> (N). */
co_status rules_shape_loss(co_shape *out, const co_shape *in, const void *attr);
/* Losses: predictions (N, ...), targets of the same shape -> (N). */
co_status rules_shape_values_loss(co_shape *out, const co_shape *in, const void *attr);

/* Ops that change values but not the shape. */
co_status rules_shape_same(co_shape *out, const co_shape *in, const void *attr);
/* The same, and they work on rows. */
co_status rules_shape_rows(co_shape *out, const co_shape *in, const void *attr);

/* "(N, 3, 32, 32)": a shape whose dimension 0 is the batch. Writes to `out`, returns it. */
#define RULES_SHAPE_TEXT 128
char *rules_format(char out[RULES_SHAPE_TEXT], const co_shape *shape);

#endif
