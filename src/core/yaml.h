/* yaml.h - the YAML parser of config.c. */
#ifndef CO_CORE_YAML_H
#define CO_CORE_YAML_H

#include "core/config.h"

/* Longest stretch of what libfyaml needs the square of its length for; a longer one is refused. A
   directive of 45 KB took 12 s, so one of 1 MiB would take more than an hour. */
#define CO_YAML_MAX_SLOW 1024

/* One document of `text` as a tree in `arena`; an empty text is a null value. `source` is kept. */
co_status co_yaml_parse(co_value **out, co_arena *arena, const char *text, size_t size,
                        const char *source);

#endif
