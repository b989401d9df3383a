/*
 * choose.c - which kernel runs a call: the first one that supports it, or the one that the plan's
 * options name for the node.
 *
 * The types of tensors follow the first alone: a kernel that is named instead changes no precision.
 */
#include <stdio.h>
#include <string.h>

#include "graph/plan_internal.h"

#include "core/mem.h"

/* A kernel of the op and its backend, in the order in which they are tried. */
typedef struct choose_pair {
    const co_backend *const *backend; /* ended by NULL */
    const co_kernel *const *kernel;
    int found; /* kernels of the op so far in this backend */
} choose_pair;

static choose_pair choose_first(const co_plan *plan)
{
    const co_backend *const *backend = plan->options.backends;

    return (choose_pair){backend, *backend ? (*backend)->kernels : NULL, 0};
}

/* The next kernel of `op`, past which choose_step moves; NULL at the end of a backend. */
static const co_kernel *choose_look(choose_pair *at, const char *op)
{
    while (*at->kernel && strcmp((*at->kernel)->op, op) != 0)
        at->kernel++;
    at->found += *at->kernel != NULL;
    return *at->kernel;
}

static void choose_step(choose_pair *at)
{
    if (*at->kernel) {
        at->kernel++;
        return;
    }
    at->backend++;
    at->kernel = *at->backend ? (*at->backend)->kernels : NULL;
    at->found = 0;
}

bool plan_kernel_supports(const co_kernel *kernel, const co_call *call, const char **why)
{
    if (call->decode && call->op->along == CO_ALONG_EARLIER && !kernel->decodes) {
        *why = "does not compute position by position";
        return false;
    }
    return !kernel->supports || kernel->supports(call, why);
}

/* The reasons for which kernels refused a call. */
typedef struct choose_refusals {
    char text[1024];
    size_t used;
} choose_refusals;

static void choose_refuse(choose_refusals *all, const co_backend *backend, const co_kernel *kernel,
                          const char *why)
{
    const char *name = kernel && kernel->name ? kernel->name : "";

    if (all->used < sizeof(all->text))
        all->used +=
            (size_t)snprintf(all->text + all->used, sizeof(all->text) - all->used, "%s%s%s%s: %s",
                             all->used ? "; " : "", backend->name, *name ? " " : "", name, why);
}

typedef struct choose_choice {
    const co_backend *backend;
    const co_kernel *kernel;
    bool narrow; /* it takes the call as it is, in half precision */
} choose_choice;

/* The first kernel that takes the call, as it is or, for half-precision tensors, in fp32. A kernel
   that yields is taken in fp32 only if no later one takes the call as it is. */
static choose_choice choose_find(choose_refusals *all, const co_plan *plan, const plan_call *pc)
{
    choose_choice choice = {NULL, NULL, false};
    const char *op = pc->call.op->name;
    size_t before = 0;

    for (choose_pair at = choose_first(plan); *at.backend; choose_step(&at)) {
        const co_kernel *kernel = choose_look(&at, op);
        const char *why = "has no kernel for it";

        if (kernel && plan_kernel_takes(kernel, &pc->call) &&
            plan_kernel_supports(kernel, &pc->call, &why))
            return (choose_choice){*at.backend, kernel, true};
        if (kernel && !choice.kernel && pc->upcast &&
            plan_kernel_supports(kernel, plan_upcast_call(pc->upcast), &why)) {
            choice = (choose_choice){*at.backend, kernel, false};
            before = all->used;
            why = "computes in fp32";
        }
        if (choice.kernel && !choice.kernel->yields_half)
            return choice;
        if (kernel && choice.kernel && !plan_kernel_takes(kernel, &pc->call))
            why = "computes in fp32";
        if (kernel || !at.found)
            choose_refuse(all, *at.backend, kernel, why);
    }
    if (choice.kernel && before < sizeof(all->text)) { /* refusals of later kernels do not count */
        all->text[before] = 0;
        all->used = before;
    }
    return choice;
}

/* Whether this kernel can run the call, as it is or in fp32. */
static bool choose_runs(choose_choice *out, const co_backend *backend, const co_kernel *kernel,
                        const plan_call *pc, const char **why)
{
    *out = (choose_choice){backend, kernel, false};
    if (plan_kernel_takes(kernel, &pc->call))
        out->narrow = plan_kernel_supports(kernel, &pc->call, why);
    return out->narrow ||
           (pc->upcast && plan_kernel_supports(kernel, plan_upcast_call(pc->upcast), why));
}

int plan_list_kernels(co_plan_pick *out, int most, const co_plan *plan, const plan_call *pc)
{
    int n = 0;

    for (choose_pair at = choose_first(plan); *at.backend && n < most; choose_step(&at)) {
        const co_kernel *kernel = choose_look(&at, pc->call.op->name);
        choose_choice found;
        const char *why;

        if (kernel && choose_runs(&found, *at.backend, kernel, pc, &why))
            out[n++] = (co_plan_pick){*at.backend, kernel};
    }
    return n;
}

static co_status choose_fail(const co_plan *plan, const plan_call *pc, const co_plan_pick *pick,
                             const char *why)
{
    co_plan_pick can[CO_PLAN_MAX_PICKS];
    const int n = plan_list_kernels(can, CO_PLAN_MAX_PICKS, plan, pc);
    char asked[CO_PLAN_PICK_TEXT], list[CO_PLAN_MAX_PICKS * CO_PLAN_PICK_TEXT] = "";
    size_t used = 0;

    for (int i = 0; i < n; i++) {
        char name[CO_PLAN_PICK_TEXT];

        co_plan_pick_text(name, &can[i]);
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", name);
    }
    co_plan_pick_text(asked, pick);
    return co_fail(CO_E_UNSUPPORTED,
                   "layer %s: `kernels` names %s, which cannot run it: %s; here it can be %s",
                   pc->call.name, asked, why, n ? list : "none");
}

/* What the options name for the call's node; of calls that are no node's, and where it cannot run
   the call, out->kernel stays NULL. */
static co_status choose_named(choose_choice *out, const co_plan *plan, const plan_call *pc)
{
    const co_plan_options *options = &plan->options;
    const co_call *call = &pc->call;
    const co_plan_pick *pick = options->pick ? &options->pick[call->node] : NULL;
    const char *why = "it computes in another type";

    if (!pick || !pick->kernel || call->op != plan->graph->node[call->node].op)
        return CO_OK;
    if (choose_runs(out, pick->backend, pick->kernel, pc, &why))
        return CO_OK;
    out->kernel = NULL;
    return options->must_pick ? choose_fail(plan, pc, pick, why) : CO_OK;
}

co_status plan_choose_kernel(plan_call *pc, co_plan *plan)
{
    choose_refusals all = {.text = "", .used = 0};
    choose_choice choice = {NULL, NULL, false};

    if (plan_is_half(&pc->call))
        CO_TRY(plan_upcast_prepare(pc, plan));
    CO_TRY(choose_named(&choice, plan, pc));
    if (!choice.kernel)
        choice = choose_find(&all, plan, pc);
    if (!choice.kernel)
        return co_fail(CO_E_UNSUPPORTED, "layer %s: no backend can run %s (%s)", pc->call.name,
                       pc->call.op->name, all.text);
    if (plan->options.list_picks) {
        pc->can = co_arena_alloc(plan->arena, CO_PLAN_MAX_PICKS, sizeof(*pc->can));
        if (!pc->can)
            return CO_E_NOMEM;
        pc->n_can = plan_list_kernels(pc->can, CO_PLAN_MAX_PICKS, plan, pc);
    }
    if (choice.narrow)
        pc->upcast = NULL;
    pc->backend = choice.backend;
    pc->kernel = choice.kernel;
    pc->refusals = all.used ? co_arena_strdup(plan->arena, all.text) : "";
    return pc->refusals ? CO_OK : CO_E_NOMEM;
}

/* Whether the first kernel that takes the node computes in fp32 although a later one does not, or
   prefers fp32 itself, or would if there were others. Then fp32 is the faster choice, as long as
   the node's tensors are not converted to half precision and back. */
bool plan_prefers_wide(const co_plan *plan, const co_call *narrow, const co_call *wide)
{
    bool found = false, preferred = false;

    for (choose_pair at = choose_first(plan); *at.backend; choose_step(&at)) {
        const co_kernel *kernel = choose_look(&at, narrow->op->name);
        const bool prefers = kernel && kernel->prefers_fp32 && kernel->prefers_fp32(narrow);
        const char *why;

        if (!kernel)
            continue;
        if (plan_kernel_takes(kernel, narrow) && plan_kernel_supports(kernel, narrow, &why))
            return found || prefers;
        if (!plan_kernel_supports(kernel, wide, &why))
            continue;
        preferred = preferred || prefers;
        found = found || preferred || !kernel->yields_half;
    }
    return preferred;
}

/* The first kernel that takes the node in fp32; NULL: none. */
static const co_kernel *choose_wide(const co_plan *plan, const co_call *wide)
{
    const char *why;

    for (choose_pair at = choose_first(plan); *at.backend; choose_step(&at)) {
        const co_kernel *kernel = choose_look(&at, wide->op->name);

        if (kernel && plan_kernel_supports(kernel, wide, &why))
            return kernel;
    }
    return NULL;
}

bool plan_takes_half(const co_plan *plan, const co_call *narrow, const co_call *wide)
{
    const co_kernel *kernel = choose_wide(plan, wide);
    const char *why;

    return kernel && plan_kernel_takes(kernel, narrow) &&
           plan_kernel_supports(kernel, narrow, &why);
}

bool plan_rounds(const co_plan *plan, const co_call *wide, co_dtype low)
{
    const co_kernel *kernel = choose_wide(plan, wide);

    return kernel && (kernel->rounds >> low & 1);
}

void co_plan_pick_text(char out[CO_PLAN_PICK_TEXT], const co_plan_pick *pick)
{
    const char *name = pick->kernel->name;

    snprintf(out, CO_PLAN_PICK_TEXT, "%s%s%s", pick->backend->name, name ? "/" : "",
             name ? name : "");
}

co_plan_pick co_plan_picked(const co_plan *plan, int node)
{
    const plan_call *pc = plan->node_call[node];

    return (co_plan_pick){pc->backend, pc->kernel};
}

int co_plan_picks(const co_plan_pick **out, const co_plan *plan, int node)
{
    const plan_call *pc = plan->node_call[node];

    *out = pc->can;
    return pc->call.node == (uint32_t)node ? pc->n_can : 0;
}
