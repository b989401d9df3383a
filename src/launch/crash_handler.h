/* crash_handler.h - the last word of a process that a signal ends. */
#ifndef CO_LAUNCH_CRASH_HANDLER_H
#define CO_LAUNCH_CRASH_HANDLER_H

#include "comm/watch.h"

/* From now on `watch`, `ranks` of them, say which signal ends this process, as soon as it comes:
   of those that dump core, where they would do that. The dump may take long, and only when it is
   written does the kernel notify anybody. One call in a process; borrowed until the next one: NULL
   takes it back, and cannot fail. */
co_status co_crash_handler_install(co_watch *watch, int ranks);

#endif
