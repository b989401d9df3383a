/* init_look.h - what `cohort init` finds out about data that a user names. */
#ifndef CO_CLI_INIT_LOOK_H
#define CO_CLI_INIT_LOOK_H

#include "cli/cli.h"
#include "data/data.h"

#define INIT_CHANNELS 4
#define INIT_CONTEXT  64
#define INIT_VALUE    8192 /* bytes of a config's `data` */

/* A data set, and how a config names it. */
typedef struct init_data {
    char format[32]; /* "imagefolder" */
    char path[CLI_MAX_PATH];
    char extra[128];             /* further keys, ", resize: 73"; or "" */
    bool images, tokens, arrays; /* one of them */
    bool targets, binary;        /* of arrays: values to learn instead of labels; all 0 or 1 */
    uint64_t train, test;        /* samples */
    int64_t classes;             /* or values to learn */
    co_shape sample;
    uint64_t rarest, commonest; /* training samples of a class */
    char names[160];            /* of the first classes; "": they have none */
    /* Over `measured` training samples: of images per channel, of values from 0 to 1; of arrays
       [0], of all inputs. */
    double mean[INIT_CHANNELS], std[INIT_CHANNELS];
    uint64_t measured;
} init_data;

/* Recognize what `path` holds, open it and measure it. `size`: of the images, 0: as they are, or
   chosen where they differ. `context`: of text. CO_E_DATA: not one of the kinds that are known, or
   damaged. */
co_status init_look(init_data *out, const char *path, int64_t size, int64_t context);
/* Recognize it only: its value of `data`, nothing measured. */
co_status init_look_value(char out[INIT_VALUE], const char *path);
/* Whether `path` is data, and no config: a folder, or a file that is none by its name or contents.
 */
bool init_look_is_data(const char *path);
/* The value of `data` for a config, with the measured normalisation; `augment` may be "". */
void init_value(char out[INIT_VALUE], const init_data *data, const char *augment);

#endif
