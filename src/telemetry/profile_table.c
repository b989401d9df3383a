/*
 * profile_table.c - a profile as a table of 100 columns for people, longest first.
 */
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/plural.h"
#include "telemetry/profile.h"

#define TABLE_BAR 6
#define TABLE_MIN 0.5e-6 /* seconds: less is printed as 0.000 ms */

static int table_compare(const void *a, const void *b)
{
    const co_profile_row *x = *(const co_profile_row *const *)a,
                         *y = *(const co_profile_row *const *)b;

    if ((x->kind == CO_PROFILE_OTHER) != (y->kind == CO_PROFILE_OTHER))
        return x->kind == CO_PROFILE_OTHER ? 1 : -1;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

/* "########  "; `full` seconds fill it. */
static char *table_bar(char out[TABLE_BAR + 1], double seconds, double full)
{
    int n = full > 0 ? (int)(seconds / full * TABLE_BAR + 0.5) : 0;

    n = n > TABLE_BAR ? TABLE_BAR : n;
    memset(out, ' ', TABLE_BAR);
    memset(out, '#', (size_t)n);
    out[TABLE_BAR] = '\0';
    return out;
}

/* About three digits: "0.012", "1.23", "12.3", "123". */
static char *table_number(char out[16], double x)
{
    snprintf(out, 16, x < 0.1 ? "%.3f" : x < 10 ? "%.2f" : x < 100 ? "%.1f" : "%.0f", x);
    return out;
}

/* Seconds that are 100 %, and seconds that fill a bar. */
typedef struct table_scale {
    double whole, longest;
} table_scale;

/* "1.92  63.6% ########## ", the start of each row. */
static void table_start(FILE *out, double seconds, const table_scale *scale)
{
    char bar[TABLE_BAR + 1], ms[16];

    fprintf(out, "%8s %5.1f%% %s ", table_number(ms, seconds * 1e3),
            scale->whole > 0 ? 100 * seconds / scale->whole : 0.0,
            table_bar(bar, seconds, scale->longest));
}

/* A row that only has a time and a name. */
static void table_line(FILE *out, const char *name, double seconds, const table_scale *scale)
{
    table_start(out, seconds, scale);
    fprintf(out, "%s\n", name);
}

/* The kernel's name without the instruction sets after a colon, "2r" for two reorders; the
   backend's if it has none. */
static char *table_kernel_name(char out[32], const co_profile_row *row)
{
    size_t n = 0;

    for (const char *at = row->kernel; *at && n < 31; at++) {
        if (*at == ':')
            at += strcspn(at, "+") - 1;
        else if (strncmp(at, "reorder", 7) == 0)
            at += 6, out[n++] = 'r';
        else
            out[n++] = *at;
    }
    out[n] = '\0';
    if (n == 0)
        snprintf(out, 32, "%s", row->backend);
    return out;
}

static void table_kernel(FILE *out, const co_profile *profile, const co_profile_row *row,
                         const table_scale *scale)
{
    char gflops[16], gbytes[16], kernel[32];
    const char *bound;
    const double reached = co_profile_reached(&bound, profile, row);
    const double seconds = row->seconds > 0 ? row->seconds : 1e-12;

    table_start(out, row->seconds, scale);
    fprintf(out, "%-20.20s %-11.11s %s %-12.12s %8s %6s %4.0f%% %s\n", row->name, row->op,
            row->kind == CO_PROFILE_FORWARD ? "fwd" : "bwd", table_kernel_name(kernel, row),
            table_number(gflops, row->flops / seconds * 1e-9),
            table_number(gbytes, row->bytes / seconds * 1e-9), 100 * reached, bound);
}

static void table_roof(FILE *out, const co_roof *roof)
{
    char number[16];

    if (roof->threads)
        fprintf(out, "roof of %d thread%s", roof->threads, co_plural((uint64_t)roof->threads));
    else
        fprintf(out, "roof of %s", roof->gpu);
    fprintf(out, ": %s GFLOP/s", table_number(number, roof->flops_per_second * 1e-9));
    if (roof->tf32_flops_per_second > 0)
        fprintf(out, ", tf32 %s%s", table_number(number, roof->tf32_flops_per_second * 1e-9),
                roof->tf32 ? "" : " (off)");
    if (roof->bf16_flops_per_second > 0)
        fprintf(out, ", bf16 %s", table_number(number, roof->bf16_flops_per_second * 1e-9));
    if (roof->f16_flops_per_second > 0)
        fprintf(out, ", fp16 %s", table_number(number, roof->f16_flops_per_second * 1e-9));
    for (int i = 0; i < CO_ROOF_LEVELS && *roof->level[i].name; i++)
        fprintf(out, ", %s %s GB/s", roof->level[i].name,
                table_number(number, roof->level[i].bytes_per_second * 1e-9));
}

static void table_head(FILE *out, const co_profile *profile)
{
    char number[16];

    fprintf(out, "%s: %s ms a step", profile->title,
            table_number(number, profile->step_seconds * 1e3));
    if (profile->step_seconds > 0)
        fprintf(out, ", %s GFLOP/s, %.0f%% of the roof",
                table_number(number, co_profile_flops(profile) / profile->step_seconds * 1e-9),
                100 * co_profile_step_reached(profile));
    fputc('\n', out);
    table_roof(out, &profile->roof);
    fprintf(out, "\n\n%8s %6s %-*s %-20s %-11s %-3s %-12s %8s %6s %5s %s\n", "ms", "share",
            TABLE_BAR, "", "layer", "op", "", "kernel", "GFLOP/s", "GB/s", "roof", "by");
}

/* One row for the kernels that the table leaves out. */
static void table_rest(FILE *out, const co_profile_row *const *row, size_t n,
                       const table_scale *scale)
{
    char name[48];
    double seconds = 0;

    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        seconds += row[i]->seconds;
    snprintf(name, sizeof(name), "%zu more kernels", n);
    table_line(out, name, seconds, scale);
}

static void table_print(FILE *out, const co_profile *profile, const co_profile_row *const *row,
                        size_t n_row, size_t most)
{
    const double kernels = co_profile_kernel_seconds(profile);
    const table_scale scale = {profile->alone ? kernels : profile->step_seconds,
                               n_row ? row[0]->seconds : 0};
    const table_scale total = {scale.whole, 0}; /* sums have no bar */
    size_t n = 0;

    while (n < n_row && row[n]->kind != CO_PROFILE_OTHER)
        n++;
    table_head(out, profile);
    for (size_t i = 0; i < n && (!most || i < most); i++)
        table_kernel(out, profile, row[i], &scale);
    if (most && n > most)
        table_rest(out, row + most, n - most, &scale);
    table_line(out, profile->alone ? "sum of kernels" : "in kernels", kernels, &total);
    if (n == n_row)
        return;
    fputc('\n', out);
    for (size_t i = n; i < n_row; i++)
        if (row[i]->seconds >= TABLE_MIN)
            table_line(out, row[i]->name, row[i]->seconds, &scale);
    table_line(out, "not in any kernel", profile->step_seconds - kernels, &total);
}

co_status co_profile_print(FILE *out, const co_profile *profile, size_t most)
{
    const co_profile_row **row = co_calloc(profile->n_row + 1, sizeof(const co_profile_row *));
    size_t n = 0;

    if (!row)
        return CO_E_NOMEM;
    for (size_t i = 0; i < profile->n_row; i++)
        if (profile->row[i].calls > 0)
            row[n++] = &profile->row[i];
    qsort(row, n, sizeof(const co_profile_row *), table_compare);
    table_print(out, profile, row, n, most);
    co_free(row);
    return fflush(out) == 0 ? CO_OK : co_fail(CO_E_IO, "cannot write the profile");
}

co_status co_profile_print_rank(FILE *out, const co_profile *profile)
{
    const double kernels = co_profile_kernel_seconds(profile);
    const double whole = profile->step_seconds > 0 ? profile->step_seconds : 1e-12;
    const co_profile_row *most = NULL;
    char number[16];

    for (size_t i = 0; i < profile->n_row; i++)
        if (profile->row[i].kind == CO_PROFILE_OTHER &&
            (!most || profile->row[i].seconds > most->seconds))
            most = &profile->row[i];
    fprintf(out, "rank %d: %s ms a step, %.1f%% in kernels", profile->rank,
            table_number(number, profile->step_seconds * 1e3), 100 * kernels / whole);
    if (most)
        fprintf(out, ", %s %.1f%%", most->name, 100 * most->seconds / whole);
    fputc('\n', out);
    return ferror(out) ? co_fail(CO_E_IO, "cannot write the profile") : CO_OK;
}
