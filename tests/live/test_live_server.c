/*
 * test_live_server.c - the server of `cohort watch` by requests over raw sockets: a stranger,
 * another host name and another origin get nothing of the run; a browser with the token gets what
 * there is and what comes; connections are bounded; it ends when it is asked to.
 */
#include "run_files.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "core/status.h"
#include "live/live.h"
#include "live/server.h"
#include "waits.h"

#define ANSWER             400000
#define SERVER_OWN_SOCKETS 4 /* that listens, and what the test was started with */

static struct {
    pid_t pid;
    int port;
    char token[64], path[128], cookie[128];
} server;
static char answer[ANSWER];

static int server_connect(void)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                        .sin_port = htons((uint16_t)server.port)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* What comes until the other side closes, or until `words` are in it. */
static void server_receive(int fd, const char *words)
{
    const uint64_t start = co_clock_ns();
    size_t n = 0;

    *answer = '\0';
    while (n < ANSWER - 1 && !(words && strstr(answer, words))) {
        struct pollfd in = {.fd = fd, .events = POLLIN};
        ssize_t got;

        if (co_clock_seconds(start, co_clock_ns()) > WAITS_S)
            fail_msg("not answered: %.300s", answer);
        if (poll(&in, 1, 100) <= 0)
            continue;
        got = read(fd, answer + n, ANSWER - 1 - n);
        if (got <= 0)
            return;
        answer[n += (size_t)got] = '\0';
    }
}

/* Request line and headers without Host and the last line end; returns the status. */
static int server_ask(const char *head, const char *host, const char *body)
{
    char text[2048];
    const int fd = server_connect();
    int status = 0;

    snprintf(text, sizeof(text), "%s\r\n%s%s%sConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
             head, host ? "Host: " : "", host ? host : "", host ? "\r\n" : "", strlen(body), body);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    server_receive(fd, NULL);
    close(fd);
    sscanf(answer, "HTTP/1.1 %d", &status);
    return status;
}

static const char *server_host(void)
{
    static char host[32];

    snprintf(host, sizeof(host), "127.0.0.1:%d", server.port);
    return host;
}

/* A request below the secret path, with the cookie. */
static int server_ask_below(const char *name, const char *more)
{
    char head[1024];

    snprintf(head, sizeof(head), "GET %s%s HTTP/1.1\r\nCookie: %s%s", server.path, name,
             server.cookie, more);
    return server_ask(head, server_host(), "");
}

static void server_read_address(FILE *out)
{
    char line[512];

    assert_non_null(fgets(line, sizeof(line), out));
    assert_int_equal(
        sscanf(strstr(line, "http://"), "http://127.0.0.1:%d/#%63s", &server.port, server.token),
        2);
    assert_non_null(fgets(line, sizeof(line), out));
    assert_non_null(strstr(line, "ssh -L"));
}

static void server_login_once(void)
{
    char *cookie, *body;

    assert_int_equal(server_ask("POST /login HTTP/1.1", server_host(), server.token), 200);
    cookie = strstr(answer, "Set-Cookie: ");
    body = strstr(answer, "\r\n\r\n");
    assert_non_null(cookie);
    assert_non_null(body);
    snprintf(server.path, sizeof(server.path), "%s", body + 4);
    assert_int_equal(sscanf(cookie, "Set-Cookie: %127[^;]", server.cookie), 1);
}

static int server_setup(void **state)
{
    const char *folders[1];
    int out[2];
    FILE *stream;

    if (folder_make(state) != 0)
        return -1;
    run_make("a");
    run_add_steps("a", 1, 4, 0.5);
    folders[0] = folder;
    assert_int_equal(pipe(out), 0);
    fflush(stdout);
    server.pid = fork();
    assert_true(server.pid >= 0);
    if (server.pid == 0) {
        const co_live_options options = {.folder = folders, .n = 1, .out = fdopen(out[1], "w")};

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGINT, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        _exit(co_exit_code(co_live_serve(&options)));
    }
    close(out[1]);
    stream = fdopen(out[0], "r");
    server_read_address(stream);
    fclose(stream);
    server_login_once();
    return 0;
}

static int server_teardown(void **state)
{
    int how;

    kill(server.pid, SIGTERM);
    waitpid(server.pid, &how, 0);
    folder_remove(state);
    return WIFEXITED(how) && WEXITSTATUS(how) == 143 ? 0 : -1;
}

static void assert_nothing_given(int status)
{
    assert_int_equal(status, 403);
    assert_null(strstr(answer, "secret-model"));
    assert_null(strstr(answer, "train_loss"));
    assert_null(strstr(answer, "Set-Cookie"));
    assert_null(strstr(answer, server.path));
}

static void server_with_token_gives_page(void **state)
{
    (void)state;
    assert_int_equal(strncmp(server.path, "/s/", 3), 0);
    assert_int_equal(server_ask("POST /login HTTP/1.1", server_host(), server.token), 200);
    assert_non_null(strstr(answer, "; HttpOnly; SameSite=Strict\r\n"));
    assert_int_equal(server_ask_below("", ""), 200);
    assert_non_null(strstr(answer, "secret-model"));
    assert_non_null(strstr(answer, "connect-src 'self'"));
    assert_non_null(strstr(answer, "Cache-Control: no-store"));
    assert_non_null(strstr(answer, "frame-ancestors 'none'"));
    assert_null(strstr(answer, server.token));
    assert_int_equal(server_ask_below("data", ""), 200);
    assert_non_null(strstr(answer, "\"train_loss\":[0.5,0.5,0.5]"));
    assert_int_equal(server_ask_below("nothing", ""), 404);
    assert_int_equal(server_ask_below("../a/metrics.jsonl", ""), 404);
}

static void server_stranger_gets_nothing(void **state)
{
    static const char *const names[] = {"", "data", "events", "events?after=1", "nothing"};
    char head[512];

    (void)state;
    assert_int_equal(server_ask("GET / HTTP/1.1", server_host(), ""), 200);
    assert_null(strstr(answer, "secret-model"));
    assert_null(strstr(answer, server.token));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(head, sizeof(head), "GET %s%s HTTP/1.1", server.path, names[i]);
        assert_int_equal(server_ask(head, server_host(), ""), 403);
        assert_null(strstr(answer, "secret-model"));
        snprintf(head, sizeof(head), "GET %s%s HTTP/1.1\r\nCookie: cohort=%032d", server.path,
                 names[i], 0);
        assert_int_equal(server_ask(head, server_host(), ""), 403);
        snprintf(head, sizeof(head), "GET /s/%032d/%s HTTP/1.1\r\nCookie: %s", 0, names[i],
                 server.cookie);
        assert_nothing_given(server_ask(head, server_host(), ""));
    }
    /* The token is for the login alone. */
    snprintf(head, sizeof(head), "GET /data?token=%s HTTP/1.1\r\nCookie: cohort=%s", server.token,
             server.token);
    assert_nothing_given(server_ask(head, server_host(), ""));
    assert_nothing_given(server_ask("GET /a/metrics.jsonl HTTP/1.1", server_host(), ""));
}

static void server_wrong_token_is_refused(void **state)
{
    char token[256];

    (void)state;
    assert_nothing_given(server_ask("POST /login HTTP/1.1", server_host(), ""));
    snprintf(token, sizeof(token), "%s", server.token);
    token[31] = token[31] == '0' ? '1' : '0';
    assert_nothing_given(server_ask("POST /login HTTP/1.1", server_host(), token));
    snprintf(token, sizeof(token), "%s%s", server.token, server.token);
    assert_nothing_given(server_ask("POST /login HTTP/1.1", server_host(), token));
    token[20] = '\0';
    assert_nothing_given(server_ask("POST /login HTTP/1.1", server_host(), token));
    assert_nothing_given(server_ask("GET /login HTTP/1.1", server_host(), server.token));
}

static void server_other_host_is_refused(void **state)
{
    static const char *const hosts[] = {"example.org", "example.org:80", "127.0.0.1.example.org",
                                        "0.0.0.0"};
    char head[512];

    (void)state;
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        snprintf(head, sizeof(head), "GET %sdata HTTP/1.1\r\nCookie: %s", server.path,
                 server.cookie);
        assert_nothing_given(server_ask(head, hosts[i], ""));
        assert_nothing_given(server_ask("POST /login HTTP/1.1", hosts[i], server.token));
        assert_int_equal(server_ask("GET / HTTP/1.1", hosts[i], ""), 403);
    }
    snprintf(head, sizeof(head), "GET %sdata HTTP/1.0\r\nCookie: %s", server.path, server.cookie);
    assert_nothing_given(server_ask(head, NULL, ""));
    /* `ssh -L` with another port at the other end. */
    snprintf(head, sizeof(head), "GET %sdata HTTP/1.1\r\nCookie: %s", server.path, server.cookie);
    assert_int_equal(server_ask(head, "localhost:12345", ""), 200);
}

static void server_other_origin_is_refused(void **state)
{
    static const char *const origins[] = {"http://example.org", "null", "http://127.0.0.1:1",
                                          "https://127.0.0.1"};
    char more[256];

    (void)state;
    for (size_t i = 0; i < sizeof(origins) / sizeof(origins[0]); i++) {
        snprintf(more, sizeof(more), "\r\nOrigin: %s", origins[i]);
        assert_int_equal(server_ask_below("data", more), 403);
        assert_null(strstr(answer, "secret-model"));
        snprintf(more, sizeof(more), "POST /login HTTP/1.1\r\nOrigin: %s", origins[i]);
        assert_nothing_given(server_ask(more, server_host(), server.token));
    }
    assert_int_equal(server_ask_below("data", "\r\nSec-Fetch-Site: cross-site"), 403);
    assert_int_equal(server_ask_below("data", "\r\nSec-Fetch-Site: same-site"), 403);
    snprintf(more, sizeof(more), "\r\nOrigin: http://%s\r\nSec-Fetch-Site: same-origin",
             server_host());
    assert_int_equal(server_ask_below("data", more), 200);
    assert_null(strstr(answer, "Access-Control-Allow"));
}

static void server_writing_is_refused(void **state)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "PATCH", "OPTIONS"};
    char head[512];

    (void)state;
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        snprintf(head, sizeof(head), "%s %sdata HTTP/1.1\r\nCookie: %s", methods[i], server.path,
                 server.cookie);
        assert_int_equal(server_ask(head, server_host(), ""), 405);
        assert_null(strstr(answer, "secret-model"));
    }
}

static int server_follow(void)
{
    char text[512];
    const int fd = server_connect();

    snprintf(text, sizeof(text), "GET %sevents?after=1 HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n",
             server.path, server_host(), server.cookie);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    return fd;
}

static void server_growing_run_is_sent(void **state)
{
    int fd[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        fd[i] = server_follow();
        server_receive(fd[i], "\n:\n"); /* the first chunk */
    }
    run_add_steps("a", 4, 6, 0.25);
    for (int i = 0; i < 3; i++) {
        server_receive(fd[i], "\n\n");
        assert_non_null(strstr(answer, "\"train_loss\":[0.25,0.25]"));
        close(fd[i]);
    }
}

static void server_followers_are_bounded(void **state)
{
    int fd[CO_SERVER_STREAMS + 1], taken = 0;

    (void)state;
    /* Those of other tests may not have been found gone yet. */
    for (int i = 0; i <= CO_SERVER_STREAMS; i++) {
        fd[i] = server_follow();
        server_receive(fd[i], "\r\n\r\n");
        taken += strstr(answer, "200 OK") != NULL;
    }
    assert_non_null(strstr(answer, "503 "));
    assert_int_in_range(taken, 1, CO_SERVER_STREAMS);
    assert_int_equal(server_ask_below("events", ""), 503);
    assert_int_equal(server_ask_below("data", ""), 200);
    for (int i = 0; i <= CO_SERVER_STREAMS; i++)
        close(fd[i]);
}

/* Sockets of the server: the one that listens, and connections. */
static int server_count_sockets(void)
{
    char path[64], name[400], to[64];
    const struct dirent *entry;
    DIR *open;
    int n = 0;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)server.pid);
    open = opendir(path);
    assert_non_null(open);
    while ((entry = readdir(open)) != NULL) {
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        n += readlink(name, to, sizeof(to)) > 7 && strncmp(to, "socket:", 7) == 0;
    }
    closedir(open);
    return n;
}

/* Those that are too many wait in the system's queue, or are closed. */
static void server_connections_are_bounded(void **state)
{
    enum { MANY = CO_SERVER_CONNECTIONS + 8 };
    const uint64_t start = co_clock_ns();
    int fd[MANY];

    (void)state;
    for (int i = 0; i < MANY; i++)
        fd[i] = server_connect();
    while (server_count_sockets() < CO_SERVER_CONNECTIONS / 2)
        assert_true(waits_more(start));
    co_clock_sleep_us(20000);
    assert_int_in_range(server_count_sockets(), 1, CO_SERVER_CONNECTIONS + SERVER_OWN_SOCKETS);
    for (int i = 0; i < MANY; i++)
        close(fd[i]);
    while (server_ask_below("data", "") != 200)
        assert_true(waits_more(start));
}

static void server_large_requests_are_refused(void **state)
{
    char *head = malloc(70000);
    const int fd = server_connect();
    char large[1500];
    int status = 0;

    (void)state;
    sprintf(head, "GET / HTTP/1.1\r\nHost: %s\r\nX: ", server_host());
    memset(head + strlen(head), 'x', 60000);
    (void)!write(fd, head, 60000);
    server_receive(fd, NULL);
    sscanf(answer, "HTTP/1.1 %d", &status);
    assert_true(status == 431 || status == 413 || status == 400);
    close(fd);
    free(head);
    memset(large, 'a', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    assert_nothing_given(server_ask("POST /login HTTP/1.1", server_host(), large));
    assert_int_equal(server_ask_below("data", ""), 200);
}

static void server_listens_on_loopback_alone(void **state)
{
    FILE *file = fopen("/proc/net/tcp", "r");
    char line[512];
    int found = 0;

    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        unsigned address, port, other, state_of;

        if (sscanf(line, " %*d: %x:%x %*x:%x %x", &address, &port, &other, &state_of) == 4 &&
            state_of == 10 && (int)port == server.port) {
            assert_int_equal(address, htonl(INADDR_LOOPBACK));
            found++;
        }
    }
    fclose(file);
    assert_int_equal(found, 1);
}

static void server_port_in_use_is_named(void **state)
{
    const char *folders[] = {folder};
    const co_live_options options = {.folder = folders, .n = 1, .port = server.port, .out = stdout};

    (void)state;
    assert_int_equal(co_live_serve(&options), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "give another --port"));
}

static void server_asked_to_end_ends(void **state)
{
    static const struct {
        int signal, code;
    } ends[] = {{SIGINT, 0}, {SIGHUP, 143}, {SIGTERM, 143}};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const int fd = server_follow();
        int how;

        server_receive(fd, "\n:\n");
        kill(server.pid, ends[i].signal);
        assert_int_equal(waitpid(server.pid, &how, 0), server.pid);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == ends[i].code);
        close(fd);
        folder_remove(state);
        assert_int_equal(server_setup(state), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_with_token_gives_page),
        cmocka_unit_test(server_stranger_gets_nothing),
        cmocka_unit_test(server_wrong_token_is_refused),
        cmocka_unit_test(server_other_host_is_refused),
        cmocka_unit_test(server_other_origin_is_refused),
        cmocka_unit_test(server_writing_is_refused),
        cmocka_unit_test(server_growing_run_is_sent),
        cmocka_unit_test(server_followers_are_bounded),
        cmocka_unit_test(server_connections_are_bounded),
        cmocka_unit_test(server_large_requests_are_refused),
        cmocka_unit_test(server_listens_on_loopback_alone),
        cmocka_unit_test(server_port_in_use_is_named),
        cmocka_unit_test(server_asked_to_end_ends),
    };

    return cmocka_run_group_tests(tests, server_setup, server_teardown);
}
