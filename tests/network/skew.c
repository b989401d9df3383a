/*
 * skew.c - to be preloaded: the time of day is COHORT_SKEW seconds ahead.
 *
 * Waits that end at a time of day are put back, as the kernel's clock is not ahead; those of other
 * clocks count from the machine's start and are far below. (libfaketime ends waits of condition
 * variables with a monotonic clock at once or never.)
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#define OF_DAY 1000000000 /* seconds since 1970: more than any machine has run */

static time_t skew(void)
{
    static time_t seconds = -1;
    const char *text;

    if (seconds < 0) {
        text = getenv("COHORT_SKEW");
        seconds = text ? atoi(text) : 0;
    }
    return seconds;
}

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

int clock_gettime(clockid_t clock_id, struct timespec *tp)
{
    static int (*real)(clockid_t, struct timespec *);
    int error;

    if (!real)
        *(void **)&real = next("clock_gettime");
    error = real(clock_id, tp);
    if (clock_id == CLOCK_REALTIME || clock_id == CLOCK_REALTIME_COARSE)
        tp->tv_sec += skew();
    return error;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec t;

    (void)tz;
    clock_gettime(CLOCK_REALTIME, &t);
    tv->tv_sec = t.tv_sec;
    tv->tv_usec = t.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *timer)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    if (timer)
        *timer = t.tv_sec;
    return t.tv_sec;
}

static struct timespec back(const struct timespec *end)
{
    return (struct timespec){end->tv_sec - (end->tv_sec > OF_DAY ? skew() : 0), end->tv_nsec};
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict abstime)
{
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    const struct timespec then = back(abstime);

    if (!real)
        *(void **)&real = next("pthread_cond_timedwait");
    return real(cond, mutex, &then);
}

int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict abstime)
{
    static int (*real)(sem_t *, const struct timespec *);
    const struct timespec then = back(abstime);

    if (!real)
        *(void **)&real = next("sem_timedwait");
    return real(sem, &then);
}
