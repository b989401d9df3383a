/* crash_handler.h - records the signal that ends a process. */
#ifndef CO_LAUNCH_CRASH_HANDLER_H
#define CO_LAUNCH_CRASH_HANDLER_H

#include "comm/watch.h"

/* From now on record in `watch`, an array of `ranks`, the signal that kills this process, before
   the kernel writes a core dump, which may take long. Covers signals that dump core and are not
   handled. One call per process; `watch` is borrowed until the next call. NULL removes it and
   cannot fail. */
co_status co_crash_handler_install(co_watch *watch, int ranks);

#endif
