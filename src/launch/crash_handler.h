/* crash_handler.h - records the signal that ends a process. */
#ifndef CO_LAUNCH_CRASH_HANDLER_H
#define CO_LAUNCH_CRASH_HANDLER_H

#include "comm/watch.h"

/* From now on `watch`, of `ranks` ranks, record the signal that ends this process as soon as it
   comes: for signals that dump core, unless they are handled. The dump may take long, and only when
   it is written does the kernel notify anybody. One call in a process; borrowed until the next one:
   NULL removes it, and cannot fail. */
co_status co_crash_handler_install(co_watch *watch, int ranks);

#endif
