/* cases.c - the list of case tables, and networks built from cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cases.h"

const ops_case *const cases_all[] = {
    cases_conv2d, cases_linear, cases_pool,  cases_batchnorm, cases_pointwise,
    cases_loss,   cases_net,    cases_batch, cases_sequence,  NULL,
};

harness *cases_create(const ops_case *c)
{
    harness *h = NULL;

    if (harness_create(&h, &c->sample, c->batch, c->net) != CO_OK)
        fail_msg("%s: %s", c->name, co_error_message());
    harness_fill(h, 11);
    return h;
}
