/* browser.c - the DevTools protocol over --remote-debugging-pipe: JSON, ended by a zero byte. */
#include "browser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "waits.h"

static const char *browser_find(char out[512])
{
    static const char *const names[] = {"chromium", "chromium-browser", "google-chrome"};
    const char *folders = getenv("PATH");

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (const char *at = folders; at && *at; at += strcspn(at, ":"), at += *at == ':') {
            snprintf(out, 512, "%.*s/%s", (int)strcspn(at, ":"), at, names[i]);
            if (access(out, X_OK) == 0)
                return out;
        }
    return NULL;
}

static void browser_exec(const char *program, const char *profile, const int to[2],
                         const int from[2])
{
    char folder[600];
    const int null = open("/dev/null", O_RDWR);

    /* It reads from 3 and writes to 4. */
    const int in = fcntl(to[0], F_DUPFD, 10), out = fcntl(from[1], F_DUPFD, 10);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    snprintf(folder, sizeof(folder), "--user-data-dir=%s", profile);
    dup2(in, 3);
    dup2(out, 4);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execl(program, program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
          "--disable-background-networking", "--remote-debugging-pipe", folder, (char *)NULL);
    _exit(127);
}

bool browser_start(browser *out, const char *folder)
{
    char program[512];
    int to[2], from[2];

    *out = (browser){.pid = -1};
    if (!browser_find(program))
        return false;
    out->profile = malloc(600);
    snprintf(out->profile, 600, "%s/chromium", folder);
    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    out->pid = fork();
    assert_true(out->pid >= 0);
    if (out->pid == 0)
        browser_exec(program, out->profile, to, from);
    close(to[0]);
    close(from[1]);
    out->in = to[1];
    out->out = from[0];
    return true;
}

void browser_stop(browser *b)
{
    if (b->pid < 0)
        return;
    kill(-b->pid, SIGKILL);
    waitpid(b->pid, NULL, 0);
    close(b->in);
    close(b->out);
    free(b->profile);
    free(b->text);
    b->pid = -1;
}

/* The next message, or NULL after `ms` without one. */
static json_t *browser_receive(browser *b, int ms)
{
    for (;;) {
        const char *end = b->n ? memchr(b->text, '\0', b->n) : NULL;
        struct pollfd in = {.fd = b->out, .events = POLLIN};
        ssize_t got;

        if (end) {
            const size_t size = (size_t)(end - b->text) + 1;
            json_t *message = json_loads(b->text, 0, NULL);

            memmove(b->text, b->text + size, b->n -= size);
            assert_non_null(message);
            return message;
        }
        if (poll(&in, 1, ms) <= 0)
            return NULL;
        if (b->room - b->n < 65536)
            b->text = realloc(b->text, b->room = 2 * b->room + 131072);
        got = read(b->out, b->text + b->n, b->room - b->n);
        if (got <= 0)
            fail_msg("the browser has ended");
        b->n += (size_t)got;
    }
}

static void browser_note(browser *b, const char *kind, const char *text)
{
    const size_t used = strlen(b->console);

    snprintf(b->console + used, sizeof(b->console) - used, "%s: %s\n", kind, text ? text : "?");
}

static void browser_listen(browser *b, const json_t *event)
{
    const char *method = json_string_value(json_object_get(event, "method"));
    const json_t *params = json_object_get(event, "params");

    if (!method)
        return;
    if (strcmp(method, "Log.entryAdded") == 0)
        browser_note(b, "log",
                     json_string_value(json_object_get(json_object_get(params, "entry"), "text")));
    if (strcmp(method, "Runtime.consoleAPICalled") == 0)
        browser_note(b, "console",
                     json_string_value(json_object_get(
                         json_array_get(json_object_get(params, "args"), 0), "value")));
    if (strcmp(method, "Runtime.exceptionThrown") == 0)
        browser_note(b, "exception",
                     json_string_value(json_object_get(
                         json_object_get(json_object_get(params, "exceptionDetails"), "exception"),
                         "description")));
}

json_t *browser_ask(browser *b, const char *method, json_t *params)
{
    const uint64_t start = co_clock_ns();
    json_t *request = json_pack("{s:i, s:s, s:o}", "id", ++b->id, "method", method, "params",
                                params ? params : json_object());
    char *text;

    if (*b->session)
        json_object_set_new(request, "sessionId", json_string(b->session));
    text = json_dumps(request, JSON_COMPACT);
    json_decref(request);
    assert_int_equal(write(b->in, text, strlen(text) + 1), strlen(text) + 1);
    free(text);
    for (;;) {
        json_t *answer = browser_receive(b, 100), *result;

        assert_true(waits_more(start));
        if (json_integer_value(json_object_get(answer, "id")) != b->id) {
            browser_listen(b, answer);
            json_decref(answer);
            continue;
        }
        result = json_incref(json_object_get(answer, "result"));
        if (!result)
            fail_msg("%s: %s", method, json_dumps(answer, 0));
        json_decref(answer);
        return result;
    }
}

void browser_open(browser *b, const char *url)
{
    static const char *const wanted[] = {"Page.enable", "Log.enable", "Runtime.enable"};
    json_t *answer;

    *b->session = '\0';
    answer = browser_ask(b, "Target.createTarget", json_pack("{s:s}", "url", "about:blank"));
    json_t *attached = browser_ask(
        b, "Target.attachToTarget",
        json_pack("{s:O, s:b}", "targetId", json_object_get(answer, "targetId"), "flatten", 1));
    json_decref(answer);
    snprintf(b->session, sizeof(b->session), "%s",
             json_string_value(json_object_get(attached, "sessionId")));
    json_decref(attached);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        json_decref(browser_ask(b, wanted[i], NULL));
    json_decref(browser_ask(b, "Page.navigate", json_pack("{s:s}", "url", url)));
}

char *browser_value(browser *b, const char *expression)
{
    json_t *answer =
        browser_ask(b, "Runtime.evaluate",
                    json_pack("{s:s, s:b}", "expression", expression, "returnByValue", 1));
    const json_t *value = json_object_get(json_object_get(answer, "result"), "value");
    char *text = json_is_string(value) ? strdup(json_string_value(value))
                                       : json_dumps(value, JSON_ENCODE_ANY);

    json_decref(answer);
    return text;
}

void browser_wait(browser *b, const char *expression, const char *what)
{
    const uint64_t start = co_clock_ns();

    for (;;) {
        char *text = browser_value(b, expression);
        const bool is_true = text && strcmp(text, "true") == 0;

        free(text);
        if (is_true)
            return;
        if (!waits_more(start))
            fail_msg("never: %s", what);
        co_clock_sleep_us(50000);
    }
}
