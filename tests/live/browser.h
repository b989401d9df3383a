/*
 * browser.h - a headless Chromium that a test talks to over two pipes, in the DevTools protocol:
 * opens pages, reads back what is in them, and keeps what they write to the console.
 */
#ifndef TESTS_LIVE_BROWSER_H
#define TESTS_LIVE_BROWSER_H

#include <stdbool.h>
#include <sys/types.h>

#include <jansson.h>

typedef struct browser {
    pid_t pid;
    int in, out;   /* to it, from it */
    char *profile; /* its folder */
    char *text;    /* what has come and is no whole message yet */
    size_t n, room;
    char session[128];  /* of the page that is open */
    int id;             /* of the last request */
    char console[4096]; /* messages of pages, one a line */
} browser;

/* false: there is no Chromium here. Fails the test if it does not start. */
bool browser_start(browser *out, const char *folder);
void browser_stop(browser *b);
/* Open an address in a new page, which later calls are about. */
void browser_open(browser *b, const char *url);
/* A request of the protocol; its result, which the caller frees. Takes `params`, or NULL. */
json_t *browser_ask(browser *b, const char *method, json_t *params);
/* The value of an expression, as text; the caller frees it. */
char *browser_value(browser *b, const char *expression);
/* Wait until an expression is true; fails the test with `what` if it stays false. */
void browser_wait(browser *b, const char *expression, const char *what);

#endif
