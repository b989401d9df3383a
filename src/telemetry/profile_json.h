/* profile_json.h - rows and roof as JSON objects; NULL if out of memory. */
#ifndef CO_TELEMETRY_PROFILE_JSON_H
#define CO_TELEMETRY_PROFILE_JSON_H

#include <stdlib.h>

#include "telemetry/json.h"
#include "telemetry/profile.h"

json_t *co_profile_row_json(const co_profile *profile, const co_profile_row *row);
json_t *co_profile_roof_json(const co_roof *roof);

#endif
