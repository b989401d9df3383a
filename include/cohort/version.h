/*
 * version.h - the version of the headers and of the library, and which of them work together.
 *
 * A program works with every library of the same soname, older or newer than the headers that it
 * was compiled with. Structs that may get new members, always at the end, are passed with their
 * size: co_train is an inline function that calls co_train_sized in the library, with the sizes of
 * co_train_options and co_train_summary in the program's headers. (Other languages call
 * co_train_sized.) If the sizes differ:
 *
 *   - Members that an older program's struct lacks are 0, which always means the same as before the
 *     member was added.
 *   - Bytes that a newer program's struct has in addition must be 0, else CO_E_UNSUPPORTED names
 * the struct. In returned structs they are set to 0; co_step_info has a member `size` instead.
 *
 * Therefore, initialise these structs to 0, as designated initialisers do. Structs that are passed
 * without a size do not change (co_shape, co_field, co_named_tensor, co_result, co_parameter,
 * co_confusion); for the structs of ext/ see CO_PLUGIN_ABI.
 */
#ifndef COHORT_VERSION_H
#define COHORT_VERSION_H

#include <cohort/status.h>

#define CO_VERSION_MAJOR 0
#define CO_VERSION_MINOR 1
#define CO_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/** "0.1.0": version of the library that was linked. Static. */
CO_API const char *co_version(void);

#ifdef __cplusplus
}
#endif
#endif
