/*
 * test_tls.c - fetching a set over TLS and by way of a proxy: openssl's server with a certificate
 * of an authority made on the spot, and a proxy that knows requests and tunnels.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "folder.h"
#include "loopback.h"
#include "server.h"
#include "set.h"
#include "shell.h"

/* An authority, and what it has signed: a key of two names; another authority. */
#define CERTIFICATES                                                                               \
    "exec 2>log; new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'; set -e;"           \
    "openssl req -x509 $new -days 2 -subj /CN=authority -keyout ca.key -out ca.pem;"               \
    "openssl req -x509 $new -days 2 -subj /CN=other -keyout other.key -out other.pem;"             \
    "openssl req $new -subj /CN=mirror -keyout key.pem -out request.pem;"                          \
    "echo subjectAltName=DNS:mirror.example,IP:127.0.0.1 >names;"                                  \
    "openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "          \
    "-extfile names -out cert.pem;"                                                                \
    "mkdir known; cp ca.pem known; openssl rehash known"

static const char *const variables[] = {
    "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "http_proxy", "https_proxy",
    "all_proxy",     "no_proxy",     "HTTPS_PROXY",    "ALL_PROXY",  "NO_PROXY"};
static pid_t tls; /* openssl's server; 0: there is no openssl */
static int tls_port;
static char tls_url[64];

static void forget(void)
{
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        unsetenv(variables[i]);
}

/* A whole answer of a server, as openssl's sends it. */
static void write_answer(const char *path, const char *head, const uint8_t *bytes, size_t n)
{
    FILE *out = fopen(path, "wb");

    assert_non_null(out);
    fputs(head, out);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    assert_int_equal(fclose(out), 0);
}

/* Serves this folder, with what `path` has as the whole answer. */
static void tls_start(void)
{
    int ends[2];
    char line[256];
    FILE *said;

    assert_int_equal(pipe(ends), 0);
    tls = fork();
    assert_true(tls >= 0);
    if (tls == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], 1);
        dup2(open("log", O_WRONLY | O_CREAT, 0600), 2);
        execlp("openssl", "openssl", "s_server", "-accept", "127.0.0.1:0", "-HTTP", "-key",
               "key.pem", "-cert", "cert.pem", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    said = fdopen(ends[0], "r");
    assert_non_null(said);
    while (tls_port == 0 && fgets(line, sizeof(line), said))
        if (strncmp(line, "ACCEPT", 6) == 0)
            tls_port = atoi(strrchr(line, ':') + 1);
    assert_true(tls_port > 0); /* the pipe stays open, for what else it says */
    snprintf(tls_url, sizeof(tls_url), "https://127.0.0.1:%d/", tls_port);
}

static int tls_setup(void **state)
{
    set_make();
    if (folder_make(state) || chdir(folder))
        return -1;
    forget();
    if (shell_run("openssl version >log 2>&1") != 0)
        return 0;
    if (shell_run("%s", CERTIFICATES) != 0)
        return -1;
    write_answer("set.bin", "HTTP/1.0 200 OK\r\n\r\n", set_content, SET_SIZE);
    tls_start();
    return 0;
}

static int tls_teardown(void **state)
{
    if (tls > 0)
        loopback_stop(tls);
    return chdir("/") || folder_remove(state);
}

static void need_tls(void)
{
    forget();
    if (tls)
        return;
    print_message("skipped: no openssl here (Debian: openssl)\n");
    skip();
}

static void assert_fetched(const char *from)
{
    if (set_fetch(from) != CO_OK)
        fail_msg("%s: %s", from, co_error_message());
    set_assert_whole();
}

static void tls_known_authority_is_trusted(void **state)
{
    (void)state;
    need_tls();
    setenv("SSL_CERT_FILE", "ca.pem", 1);
    assert_fetched(tls_url);
    setenv("SSL_CERT_FILE", "other.pem", 1);
    setenv("SSL_CERT_DIR", "known", 1); /* besides the file */
    assert_fetched(tls_url);
    unsetenv("SSL_CERT_DIR");
    setenv("CURL_CA_BUNDLE", "ca.pem", 1); /* before the other */
    assert_fetched(tls_url);
}

static void tls_unknown_authority_is_refused(void **state)
{
    char url[64];

    (void)state;
    need_tls();
    set_assert_refused(tls_url, "its certificate "); /* or this machine knows none at all */
    setenv("SSL_CERT_FILE", "", 1);
    set_assert_refused(tls_url, "its certificate ");
    setenv("SSL_CERT_FILE", "other.pem", 1);
    set_assert_refused(tls_url, "its certificate is refused: ");
    assert_non_null(strstr(co_error_message(), "name the authority's file in SSL_CERT_FILE"));
    setenv("SSL_CERT_FILE", "cert.pem/none", 1);
    set_assert_refused(tls_url, "there is nothing to check its certificate with: ");
    /* The right authority, and another name than the certificate has. */
    setenv("SSL_CERT_FILE", "ca.pem", 1);
    snprintf(url, sizeof(url), "https://localhost:%d/", tls_port);
    set_assert_refused(url, "its certificate is refused: ");
    assert_non_null(strstr(co_error_message(), "'localhost'"));
}

/* Not even to a server that has the right file. */
static void tls_redirect_to_http_is_refused(void **state)
{
    char head[256], url[96];
    server s;

    (void)state;
    need_tls();
    server_start(&s, SERVER_GOOD, set_content, SET_SIZE);
    snprintf(head, sizeof(head), "HTTP/1.0 302 Found\r\nLocation: %sset.bin\r\n\r\n", s.url);
    mkdir("away", 0700);
    write_answer("away/set.bin", head, set_content, 0);
    snprintf(url, sizeof(url), "%saway/", tls_url);
    setenv("SSL_CERT_FILE", "ca.pem", 1);
    set_assert_refused(url, "rotocol");
    server_stop(&s);
}

/* Bytes in both directions, until one side ends. */
static void relay(int a, int b)
{
    struct pollfd both[2] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
    char block[16384];

    while (poll(both, 2, -1) > 0)
        for (int i = 0; i < 2; i++) {
            ssize_t n;

            if (!both[i].revents)
                continue;
            n = read(both[i].fd, block, sizeof(block));
            for (ssize_t sent = 0, now; sent < n; sent += now)
                if ((now = write(both[1 - i].fd, block + sent, (size_t)(n - sent))) <= 0)
                    return;
            if (n <= 0)
                return;
        }
}

/* Knows one host for http and one for https, neither of which there is; is rude to all others. */
static void proxy_answer(void *arg, int to, const char *request)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int target = socket(AF_INET, SOCK_STREAM, 0);

    (void)arg;
    address.sin_port = htons((uint16_t)tls_port);
    if (strncmp(request, "GET http://mirror.example/set.bin ", 34) == 0) {
        loopback_say(to, "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\nConnection: close\r\n\r\n");
        for (size_t n = 0; n < SET_SIZE;) {
            const ssize_t now = write(to, set_content + n, SET_SIZE - n);

            if (now <= 0)
                break;
            n += (size_t)now;
        }
    } else if (strncmp(request, "CONNECT mirror.example:443 ", 27) == 0 &&
               connect(target, (struct sockaddr *)&address, sizeof(address)) == 0) {
        loopback_say(to, "HTTP/1.1 200 Connected\r\n\r\n");
        relay(to, target);
    } else {
        loopback_say(to, "HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    close(target);
}

static pid_t proxy_start(char url[64])
{
    int port;
    const pid_t pid = loopback_start(&port, proxy_answer, NULL);

    forget();
    snprintf(url, 64, "http://127.0.0.1:%d", port);
    return pid;
}

static void proxy_of_http_is_asked(void **state)
{
    char url[64];
    const pid_t proxy = proxy_start(url);

    (void)state;
    setenv("http_proxy", url, 1);
    assert_fetched("http://mirror.example/");
    set_assert_refused("http://other.example/", "the server answers 403");
    unsetenv("http_proxy");
    setenv("all_proxy", url, 1);
    assert_fetched("http://mirror.example");
    loopback_stop(proxy);
}

/* The certificate is that of the server, not of the proxy. */
static void proxy_of_https_is_a_tunnel(void **state)
{
    char url[64];
    pid_t proxy;

    (void)state;
    need_tls();
    proxy = proxy_start(url);
    setenv("https_proxy", url, 1);
    setenv("SSL_CERT_FILE", "other.pem", 1);
    set_assert_refused("https://mirror.example/", "its certificate is refused: ");
    setenv("SSL_CERT_FILE", "ca.pem", 1);
    assert_fetched("https://mirror.example/");
    set_assert_refused("https://other.example/", "403");
    loopback_stop(proxy);
}

static void proxy_is_not_asked_for_exceptions(void **state)
{
    char url[64];
    const pid_t proxy = proxy_start(url);
    server s;

    (void)state;
    server_start(&s, SERVER_GOOD, set_content, SET_SIZE);
    setenv("http_proxy", url, 1);
    set_assert_refused(s.url, "the server answers 403");
    setenv("no_proxy", "mirror.example,127.0.0.1", 1);
    assert_fetched(s.url);
    server_stop(&s);
    loopback_stop(proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tls_known_authority_is_trusted),
        cmocka_unit_test(tls_unknown_authority_is_refused),
        cmocka_unit_test(tls_redirect_to_http_is_refused),
        cmocka_unit_test(proxy_of_http_is_asked),
        cmocka_unit_test(proxy_of_https_is_a_tunnel),
        cmocka_unit_test(proxy_is_not_asked_for_exceptions),
    };

    return cmocka_run_group_tests_name("fetch_tls", tests, tls_setup, tls_teardown);
}
