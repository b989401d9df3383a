/*
 * std.h - what kernels use of math.h, stdbool.h, stddef.h, stdint.h and string.h, whose place it
 * takes where NVRTC compiles: it has the functions, and no headers.
 */
#ifndef CO_KERNELS_CUDA_STD_H
#define CO_KERNELS_CUDA_STD_H

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long uintptr_t;

#define UINT32_MAX  0xffffffffu
#define UINT64_C(c) c##ul

#define INFINITY __int_as_float(0x7f800000)
#define NAN      __int_as_float(0x7fffffff)

#endif
