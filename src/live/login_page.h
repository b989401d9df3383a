/* login_page.h - src/live/page/login.html, as text in the program. */
#ifndef CO_LIVE_LOGIN_PAGE_H
#define CO_LIVE_LOGIN_PAGE_H

#include <stddef.h>

typedef struct co_login_page {
    const char *name, *text;
} co_login_page;

/* Ended by one without a name. */
extern const co_login_page co_login_pages[];

#endif
