/*
 * load.c - chooses the MPI of this process and opens its library, then the module for it.
 *
 * The choice is, in this order: the one named by COHORT_MPI, one that the program has linked or
 * opened itself, the one whose launcher started this process, the first that is installed.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/mpi/internal.h"
#include "comm/mpi/mpi.h"

#define LOAD_ENV  "COHORT_MPI"
#define LOAD_MAX  4 /* libraries, variables */
#define LOAD_TEXT 512

/* A binary interface (ABI), which several implementations may share. */
typedef struct mpi_abi {
    const char *name, *title;
    const char *module;
    const char *library[LOAD_MAX];  /* any of them; NULL-terminated */
    const char *variable[LOAD_MAX]; /* its launcher sets one of them; NULL-terminated */
    bool alone;                     /* and no other one does, such as Slurm's srun */
    const char *package;            /* Debian's, with the library and mpiexec */
} mpi_abi;

static const mpi_abi load_abi[] = {
    {
        .name = "openmpi",
        .title = "Open MPI",
        .module = "cohort-mpi-openmpi.so",
        .library = {"libmpi.so.40"},
        .variable = {"OMPI_COMM_WORLD_SIZE"},
        .alone = true,
        .package = "openmpi-bin",
    },
    {
        .name = "mpich",
        .title = "MPICH",
        .module = "cohort-mpi-mpich.so",
        .library = {"libmpich.so.12", "libmpi.so.12"}, /* the second: Intel MPI, MVAPICH */
        .variable = {"PMI_SIZE", "PMI_FD", "MPI_LOCALNRANKS"},
        .package = "mpich",
    },
};

#define LOAD_ABIS (sizeof(load_abi) / sizeof(load_abi[0]))

const co_mpi_calls *co_mpi;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static co_mpi_calls load_calls;
static char load_why[LOAD_TEXT];

/* ---- opening ---- */

/* Returns a handle or NULL. `how`: RTLD_NOLOAD finds only what the process has loaded already. */
static void *load_library(const mpi_abi *abi, int how)
{
    void *library = NULL;

    for (int i = 0; !library && abi->library[i]; i++)
        library = dlopen(abi->library[i], RTLD_NOW | how);
    return library;
}

/* Searches the RUNPATH of this program or library, then the installation folder. */
static void *load_module(const mpi_abi *abi)
{
    char path[LOAD_TEXT];
    void *module = dlopen(abi->module, RTLD_NOW | RTLD_LOCAL);

    if (module)
        return module;
    snprintf(path, sizeof(path), "%s/%s", CO_MODULE_DIR, abi->module);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Sets load_why on failure. The library is opened with RTLD_GLOBAL, because the module and MPI's
   own plugins need its symbols. */
static bool load_open(const mpi_abi *abi)
{
    co_mpi_module_fn *fill;
    void *module;

    if (!load_library(abi, RTLD_GLOBAL)) {
        snprintf(load_why, sizeof(load_why),
                 "%s is not here (%s); install it (Debian: %s), or load your cluster's module",
                 abi->title, abi->library[0], abi->package);
        return false;
    }
    module = load_module(abi);
    if (!module) {
        snprintf(load_why, sizeof(load_why),
                 "Cohort's module for %s cannot be opened (%s); build it where the headers of %s "
                 "are installed, or install its package",
                 abi->title, dlerror(), abi->title);
        return false;
    }
    *(void **)&fill = dlsym(module, CO_MPI_MODULE_SYMBOL);
    if (!fill || !fill(CO_MPI_CALLS_VERSION, &load_calls)) {
        snprintf(load_why, sizeof(load_why),
                 "%s is of another version of Cohort; install this one's", abi->module);
        return false;
    }
    co_mpi = &load_calls;
    return true;
}

/* ---- choice ---- */

static bool load_started(const mpi_abi *abi)
{
    for (int i = 0; abi->variable[i]; i++)
        if (getenv(abi->variable[i]))
            return true;
    return false;
}

static const mpi_abi *load_choose(void)
{
    for (size_t i = 0; i < LOAD_ABIS; i++)
        if (load_library(&load_abi[i], RTLD_NOLOAD))
            return &load_abi[i];
    for (size_t i = 0; i < LOAD_ABIS; i++)
        if (load_started(&load_abi[i]))
            return &load_abi[i];
    return NULL;
}

static const mpi_abi *load_find(const char *name)
{
    for (size_t i = 0; i < LOAD_ABIS; i++)
        if (strcmp(name, load_abi[i].name) == 0)
            return &load_abi[i];
    return NULL;
}

static co_status load_named(const char *name)
{
    const mpi_abi *named = load_find(name);

    if (!named)
        return co_fail(CO_E_USAGE, LOAD_ENV ": '%s'; give openmpi or mpich, or leave it unset",
                       name);
    for (const mpi_abi *abi = load_abi; abi < load_abi + LOAD_ABIS; abi++)
        if (abi != named && abi->alone && load_started(abi))
            return co_fail(CO_E_USAGE,
                           LOAD_ENV ": '%s', and mpiexec of %s has started this process: they are "
                                    "not of one kind; set it to %s, or leave it unset",
                           name, abi->title, abi->name);
    return load_open(named) ? CO_OK : co_fail(CO_E_UNSUPPORTED, "%s", load_why);
}

/* The error is about the first kind: one is enough. */
static co_status load_any(void)
{
    char first[LOAD_TEXT];

    for (size_t i = 0; i < LOAD_ABIS; i++) {
        if (load_open(&load_abi[i]))
            return CO_OK;
        if (i == 0)
            memcpy(first, load_why, sizeof(first));
    }
    return co_fail(CO_E_UNSUPPORTED, "%s", first);
}

static co_status load(void)
{
    const char *name = getenv(LOAD_ENV);
    const mpi_abi *abi;

    if (co_mpi)
        return CO_OK;
    if (name)
        return load_named(name);
    abi = load_choose();
    if (!abi)
        return load_any();
    return load_open(abi) ? CO_OK : co_fail(CO_E_UNSUPPORTED, "%s", load_why);
}

co_status co_mpi_load(void)
{
    co_status st;

    pthread_mutex_lock(&load_lock);
    st = load();
    pthread_mutex_unlock(&load_lock);
    return st;
}

bool co_mpi_available(const char **why)
{
    static char text[LOAD_TEXT];

    if (co_mpi_load() == CO_OK)
        return true;
    pthread_mutex_lock(&load_lock);
    snprintf(text, sizeof(text), "%s", co_error_message());
    pthread_mutex_unlock(&load_lock);
    *why = text;
    return false;
}

/* ---- queries ---- */

const char *co_mpi_name(int i)
{
    return i < (int)LOAD_ABIS ? load_abi[i].name : NULL;
}

/* Shortens a text to name and version: "Open MPI v4.1.4, package: ...",
   "MPICH Version:\t4.0.2\n...". */
static void load_shorten(char *out, size_t size, char *text)
{
    char *version = strstr(text, " Version:");

    text[strcspn(text, ",\n")] = '\0';
    if (!version) {
        snprintf(out, size, "%s", text);
        return;
    }
    *version = '\0';
    version += strlen(" Version:");
    snprintf(out, size, "%s %s", text, version + strspn(version, " \t"));
}

char *co_mpi_library(char *out, size_t size)
{
    char text[LOAD_TEXT * 8] = "";

    if (co_mpi_load() == CO_OK)
        (void)co_mpi->library_version(text, sizeof(text));
    load_shorten(out, size, text);
    return out;
}
