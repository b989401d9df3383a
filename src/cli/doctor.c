/*
 * doctor.c - `cohort doctor`: reports what this build and machine offer for training, what will be
 * used, and remedies for what is missing.
 *
 * A table of checks, each printing a line. Changes nothing.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>

#include <cohort/version.h>

#include "backends/backends.h"
#include "cli/cli.h"
#include "cli/machine.h"
#include "comm/mpi/mpi.h"
#include "comm/transports.h"
#include "core/isa.h"
#include "core/plural.h"
#include "core/text.h"
#include "core/thread.h"
#include "data/data.h"
#include "device/cuda/cuda.h"
#include "export/export.h"
#include "live/live.h"
#include "telemetry/format.h"

#define DOCTOR_MPIS       4
#define DOCTOR_LOW_MEMORY ((uint64_t)512 << 20)
#define DOCTOR_LOW_DISK   ((uint64_t)512 << 20)
#define DOCTOR_LOW_SHM    ((uint64_t)64 << 20)
#define DOCTOR_LOW_FILES  256
/* Two ranks share a quarter of that, whatever the network. */
#define DOCTOR_LOW_ADDRESSES ((uint64_t)1 << 30)

typedef enum doctor_level { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_WARN, DOCTOR_FAIL } doctor_level;

typedef struct doctor {
    int count[4]; /* lines printed at each level */
} doctor;

static void doctor_say(doctor *d, doctor_level level, const char *what, const char *fmt, ...)
    CO_PRINTF(4, 5);

static void doctor_say(doctor *d, doctor_level level, const char *what, const char *fmt, ...)
{
    static const char *const names[] = {"ok", "--", "warn", "FAIL"};
    va_list args;

    d->count[level]++;
    printf("%-5s %-14s ", names[level], what);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    putchar('\n');
}

/* Printed below the line that it belongs to. */
static void doctor_remedy(const char *text)
{
    printf("%-5s %-14s -> %s\n", "", "", CO_SHOW(text));
}

static void doctor_check_cpu(doctor *d)
{
    char name[96], has[256];

    machine_cpu_name(name, sizeof(name));
    machine_cpu_has(has, sizeof(has),
                    "sse4_2 avx avx2 fma avx512f avx512bw avx512_vnni avx512_bf16 avx_vnni "
                    "amx_tile amx_bf16 amx_int8 asimd sve sve2 bf16");
    if (strstr(has, "avx2") || strstr(has, "asimd")) {
        doctor_say(d, DOCTOR_OK, "cpu", "%s: %s", name[0] ? name : "unnamed", has);
        if (co_isa_is_limited()) {
            doctor_say(d, DOCTOR_WARN, "instructions", "COHORT_ISA limits them to %s",
                       co_isa_title(co_isa_level()));
            doctor_remedy("unset COHORT_ISA to train at this CPU's full speed");
        }
        return;
    }
    doctor_say(d, DOCTOR_WARN, "cpu", "%s: no vector instructions beyond %s",
               name[0] ? name : "unnamed", has[0] ? has : "the baseline");
    doctor_remedy("training is several times slower; in a virtual machine let the CPU through, "
                  "e.g. -cpu host");
}

static void doctor_check_cores(doctor *d)
{
    const int usable = co_thread_cores(), all = machine_cores();
    char bound[128];

    co_thread_binding(bound, sizeof(bound));
    if (usable >= all) {
        doctor_say(d, DOCTOR_OK, "cores", "%d: ranks share them, e.g. -n %d for one each", usable,
                   usable);
        return;
    }
    doctor_say(d, DOCTOR_NOTE, "cores", "%d of this machine's %d (bound to %s)", usable, all,
               bound);
    doctor_remedy("a binding (taskset, a batch system) or a container's CPU limit holds the rest");
}

static void doctor_check_memory(doctor *d)
{
    const uint64_t bytes = machine_memory();
    char text[32];

    if (!bytes) {
        doctor_say(d, DOCTOR_NOTE, "memory", "the system does not say how much is free");
        return;
    }
    co_format_bytes(text, sizeof(text), bytes);
    if (bytes >= DOCTOR_LOW_MEMORY) {
        doctor_say(d, DOCTOR_OK, "memory", "%s free", text);
        return;
    }
    doctor_say(d, DOCTOR_WARN, "memory", "only %s free", text);
    doctor_remedy("`cohort inspect CONFIG` says what a rank needs; use fewer ranks or a smaller "
                  "batch");
}

static void doctor_check_limits(doctor *d)
{
    struct rlimit files, size, addresses;
    bool low = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < DOCTOR_LOW_FILES;
    bool capped = getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_cur != RLIM_INFINITY;
    bool narrow = getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY;
    char text[32];

    if (!low && !capped && !narrow)
        doctor_say(d, DOCTOR_OK, "limits",
                   "open files, file sizes and addresses are not in the way");
    if (narrow) {
        const bool tight = addresses.rlim_cur < DOCTOR_LOW_ADDRESSES;

        doctor_say(d, tight ? DOCTOR_WARN : DOCTOR_NOTE, "limits",
                   "a process has no more than %s of addresses%s",
                   co_format_bytes(text, sizeof(text), addresses.rlim_cur),
                   tight ? ": training may not start" : "");
        doctor_remedy("ulimit -v unlimited; else a rank has a quarter of them for memory that all "
                      "share, and exchanges the rest by copies");
    }
    if (low) {
        doctor_say(d, DOCTOR_WARN, "limits", "only %" PRIu64 " open files allowed",
                   (uint64_t)files.rlim_cur);
        doctor_remedy("ulimit -n 1024");
    }
    if (capped) {
        doctor_say(d, DOCTOR_WARN, "limits", "files may not grow beyond %s",
                   co_format_bytes(text, sizeof(text), size.rlim_cur));
        doctor_remedy("ulimit -f unlimited, or weights that are larger cannot be saved");
    }
}

static void doctor_check_disk(doctor *d)
{
    uint64_t bytes;
    char text[32];

    if (!machine_disk_free(&bytes, "."))
        return;
    co_format_bytes(text, sizeof(text), bytes);
    if (bytes >= DOCTOR_LOW_DISK) {
        doctor_say(d, DOCTOR_OK, "disk", "%s free here, where runs/ goes", text);
        return;
    }
    doctor_say(d, DOCTOR_WARN, "disk", "only %s free here, where runs/ goes", text);
    doctor_remedy("give `cohort train` a --run-dir elsewhere");
}

/* What `precision` brings on this machine. */
static void doctor_check_half(doctor *d)
{
    unsigned half = 0;

    for (const co_backend *const *b = co_backends; *b; b++)
        half |= (*b)->half ? (*b)->half() : 0;
    for (int type = CO_BF16; type <= CO_F16; type++)
        doctor_say(d, DOCTOR_NOTE, type == CO_BF16 ? "bf16" : "fp16", "%s",
                   !(half >> type & 1) ? "computed in fp32 and rounded: right, and slower than fp32"
                   : co_isa_has(CO_ISA_AMX) || co_isa_multiplies_bf16()
                       ? "kernels compute with it: `precision: bf16` is fastest for large networks"
                       : "tensors of half the size; products in fp32, which this CPU makes faster");
}

/* In the order in which a plan asks them. */
static void doctor_check_backends(doctor *d)
{
    bool fast = false;

    for (const co_backend *const *b = co_backends; *b; b++) {
        char text[160] = "";

        if ((*b)->describe)
            (*b)->describe(text, sizeof(text));
        else
            snprintf(text, sizeof(text), "%s", (*b)->summary);
        doctor_say(d, DOCTOR_OK, (*b)->name, "%s", text);
        fast = fast || strcmp((*b)->name, "onednn") == 0;
    }
    if (!fast)
        doctor_say(d, DOCTOR_NOTE, "onednn",
                   "not in this build: convolutions in groups run on slow loops");
    doctor_check_half(d);
}

/* Which pairs of GPUs exchange without the host's memory. */
static void doctor_check_peers(doctor *d, const co_cuda_machine *cuda)
{
    char apart[128] = "";
    int n = 0;

    for (int i = 0; i < cuda->n; i++)
        for (int k = i + 1; k < cuda->n; k++)
            if (!(cuda->peers[i] >> k & 1 && cuda->peers[k] >> i & 1) && n++ < 8)
                snprintf(apart + strlen(apart), sizeof(apart) - strlen(apart), "%s%d-%d",
                         n > 1 ? ", " : "", i, k);
    if (cuda->n < 2)
        return;
    if (n == 0) {
        doctor_say(d, DOCTOR_OK, "peer access",
                   "each GPU reads and writes the memory of the others");
        return;
    }
    doctor_say(d, DOCTOR_NOTE, "peer access", "not between GPUs %s%s: NCCL goes through the host",
               apart, n > 8 ? ", ..." : "");
    doctor_remedy("`nvidia-smi topo -m` shows how they are connected; an IOMMU, ACS or a virtual "
                  "machine may be in the way");
}

static void doctor_check_gpus(doctor *d)
{
    static const struct {
        co_status (*version)(char *out, size_t size);
        const char *name, *does, *without;
    } libraries[] = {
        {co_cuda_compiler, "nvrtc", "compiles Cohort's kernels for these GPUs", ""},
        {co_cuda_blas, "cublaslt", "multiplies the matrices of linear layers",
         ": linear layers run on our own kernels"},
        {co_cuda_dnn, "cudnn", "computes convolutions", ": convolutions run on our own kernels"},
        {co_cuda_nccl, "nccl", "moves data between the GPUs of several ranks",
         ": they exchange through the host's memory"},
    };
    co_cuda_machine cuda;
    char text[64];

    if (co_cuda_probe(&cuda) != CO_OK) {
        doctor_say(d, DOCTOR_NOTE, "gpu", "none; %s", CO_SHOW(co_error_message()));
        return;
    }
    doctor_say(d, DOCTOR_OK, "driver", "%s", CO_SHOW(cuda.driver));
    for (int i = 0; i < cuda.n; i++) {
        const co_cuda_gpu *gpu = &cuda.gpu[i];

        co_format_bytes(text, sizeof(text), gpu->memory);
        doctor_say(d, DOCTOR_OK, "gpu", "%d: %s, compute capability %d.%d, %s", i,
                   CO_SHOW(gpu->name), gpu->major, gpu->minor, text);
    }
    doctor_check_peers(d, &cuda);
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        if (libraries[i].version(text, sizeof(text)) == CO_OK) {
            doctor_say(d, DOCTOR_OK, libraries[i].name, "%s %s", text, libraries[i].does);
        } else {
            doctor_say(d, DOCTOR_NOTE, libraries[i].name, "not usable%s", libraries[i].without);
            doctor_remedy(co_error_message());
        }
    }
    doctor_say(d, DOCTOR_NOTE, "gpu", "training has not been tried on a GPU yet: `device: cuda`");
}

static void doctor_check_transports(doctor *d)
{
    char version[DOCTOR_MPIS][256] = {""};

    for (int i = 0; i < DOCTOR_MPIS && co_mpi_name(i); i++) /* before this process opens one */
        machine_mpi(version[i], sizeof(version[i]), co_mpi_name(i));
    for (const co_comm_ops *const *t = co_transports; *t; t++) {
        const char *why = NULL;

        if (!(*t)->probe || (*t)->probe(&why)) {
            doctor_say(d, DOCTOR_OK, (*t)->name, "%s", (*t)->summary);
            continue;
        }
        doctor_say(d, DOCTOR_WARN, (*t)->name, "not usable");
        doctor_remedy(why ? why : "this build or machine cannot use it");
    }
    for (int i = 0; i < DOCTOR_MPIS && co_mpi_name(i); i++)
        if (*version[i])
            doctor_say(d, DOCTOR_OK, co_mpi_name(i), "%s", version[i]);
}

static void doctor_check_sharing(doctor *d)
{
    if (machine_shares_memory()) {
        doctor_say(d, DOCTOR_OK, "shared memory", "ranks started with -n can share memory");
        return;
    }
    doctor_say(d, DOCTOR_FAIL, "shared memory", "processes cannot share memory: -n 2 cannot work");
    doctor_remedy("the memory limit of this shell or container is too tight; raise it");
}

/* Only MPI uses /dev/shm; -n needs no file system. */
static void doctor_check_mpiexec(doctor *d)
{
    uint64_t bytes;
    char path[512], text[32];

    if (machine_find_program(path, sizeof(path), "mpiexec")) {
        doctor_say(d, DOCTOR_OK, "mpiexec", "%s", path);
    } else {
        doctor_say(d, DOCTOR_WARN, "mpiexec", "not found: no runs over several machines");
        doctor_remedy("install MPI (Debian: openmpi-bin) or load your cluster's module; -n works "
                      "without");
    }
    if (!machine_disk_free(&bytes, "/dev/shm"))
        return;
    co_format_bytes(text, sizeof(text), bytes);
    if (bytes >= DOCTOR_LOW_SHM) {
        doctor_say(d, DOCTOR_OK, "/dev/shm", "%s free; MPI alone uses it", text);
        return;
    }
    doctor_say(d, DOCTOR_WARN, "/dev/shm", "only %s free; -n does not mind, MPI may", text);
    doctor_remedy("in a container: --shm-size=1g");
}

/* Which data sets can be opened by name alone. */
static void doctor_check_data(doctor *d)
{
    for (const co_dataset_ops *const *f = co_dataset_formats; *f; f++) {
        co_dataset *data = NULL;
        char text[32];
        co_status st = co_dataset_open(&data, (*f)->name, CO_SPLIT_TEST);

        if (st == CO_OK) {
            doctor_say(d, DOCTOR_OK, (*f)->name, "ready: %s test samples",
                       co_format_count(text, sizeof(text), co_dataset_count(data)));
            co_dataset_destroy(data);
        } else if (st == CO_E_DATA) {
            doctor_say(d, DOCTOR_NOTE, (*f)->name, "not found by its name alone");
            doctor_remedy(co_error_message());
        } else {
            doctor_say(d, DOCTOR_NOTE, (*f)->name, "a config names its folder: data.path");
        }
    }
}

static void doctor_check_gnuplot(doctor *d)
{
    char path[512];

    if (machine_find_program(path, sizeof(path), "gnuplot")) {
        doctor_say(d, DOCTOR_OK, "gnuplot", "%s", path);
        return;
    }
    doctor_say(d, DOCTOR_NOTE, "gnuplot", "not found: tables without plots");
    doctor_remedy("install it (Debian: gnuplot-nox)");
}

static void doctor_check_watch(doctor *d)
{
    char version[64];

    if (co_live_server_version(version, sizeof(version)) == CO_OK) {
        doctor_say(d, DOCTOR_OK, "watch", "pages by libmicrohttpd %s", version);
        return;
    }
    doctor_say(d, DOCTOR_NOTE, "watch", "no live pages");
    doctor_remedy(co_error_message());
}

static void doctor_check_onnx(doctor *d)
{
    if (co_export_has_onnx()) {
        doctor_say(d, DOCTOR_OK, "onnx", "`cohort export` writes opset %d", CO_EXPORT_OPSET);
        return;
    }
    doctor_say(d, DOCTOR_NOTE, "onnx", "not in this build: no export to ONNX");
    doctor_remedy(
        "install libonnx-dev, protobuf-c-compiler and libprotobuf-c-dev, and build again");
}

static const struct {
    const char *title;
    void (*check)(doctor *d);
} doctor_checks[] = {
    {"Machine", doctor_check_cpu},
    {NULL, doctor_check_cores},
    {NULL, doctor_check_memory},
    {NULL, doctor_check_limits},
    {NULL, doctor_check_disk},
    {"Computing (each layer: the first that can)", doctor_check_backends},
    {"GPUs", doctor_check_gpus},
    {"Ranks", doctor_check_transports},
    {NULL, doctor_check_sharing},
    {NULL, doctor_check_mpiexec},
    {"Data", doctor_check_data},
    {"Reports", doctor_check_gnuplot},
    {NULL, doctor_check_watch},
    {"Export", doctor_check_onnx},
};

static co_status doctor_run(const void *options, int n, const char *const *argument)
{
    doctor d = {{0}};

    (void)options;
    (void)n;
    (void)argument;
    printf("cohort %s, compiler %s\n", co_version(), __VERSION__);
    for (size_t i = 0; i < sizeof(doctor_checks) / sizeof(doctor_checks[0]); i++) {
        if (doctor_checks[i].title)
            printf("\n%s\n", doctor_checks[i].title);
        doctor_checks[i].check(&d);
    }
    printf("\n%d ok, %d to know, %d warning%s, %d failure%s\n", d.count[DOCTOR_OK],
           d.count[DOCTOR_NOTE], d.count[DOCTOR_WARN], co_plural((uint64_t)d.count[DOCTOR_WARN]),
           d.count[DOCTOR_FAIL], co_plural((uint64_t)d.count[DOCTOR_FAIL]));
    if (d.count[DOCTOR_FAIL])
        return co_fail(CO_E_UNSUPPORTED, "training with several ranks will not work here; see the "
                                         "lines marked FAIL");
    return CO_OK;
}

const co_command co_command_doctor = {
    .name = "doctor",
    .summary = "what this build and this machine offer, and what is missing",
    .about =
        "Checks the machine (instructions, cores, memory, limits, disk), the compute backends,\n"
        "the transports between ranks and the data sets that are found by name. One line a\n"
        "check: ok, -- (good to know), warn or FAIL, with a remedy after `->`.\n"
        "Fails (exit code 1) only if training cannot work.",
    .example = "  cohort doctor",
    .run = doctor_run,
};
