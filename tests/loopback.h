/* loopback.h - an HTTP server of a test on the loopback interface: one connection after the other,
   one request for each, in a process of its own. After cmocka.h. */
#ifndef TESTS_LOOPBACK_H
#define TESTS_LOOPBACK_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Answer `request` on `to`, which is closed afterwards. */
typedef void loopback_answer(void *arg, int to, const char *request);

static inline void loopback_say(int to, const char *text)
{
    (void)!write(to, text, strlen(text));
}

static inline _Noreturn void loopback_serve(int listener, loopback_answer *answer, void *arg)
{
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        const int to = accept(listener, NULL, NULL);
        char request[4096];
        ssize_t n;

        if (to < 0)
            continue;
        n = read(to, request, sizeof(request) - 1);
        request[n > 0 ? n : 0] = '\0';
        if (n > 0)
            answer(arg, to, request);
        shutdown(to, SHUT_WR);
        close(to);
    }
}

/* The server's process; *port: where it listens. */
static inline pid_t loopback_start(int *port, loopback_answer *answer, void *arg)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t length = sizeof(address);
    pid_t pid;

    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 32), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        loopback_serve(listener, answer, arg);
    close(listener);
    return pid;
}

static inline void loopback_stop(pid_t pid)
{
    assert_true(pid > 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

#endif
