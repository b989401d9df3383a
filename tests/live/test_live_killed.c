/* test_live_killed.c - a run that is watched, and whose server is killed, ends with the same
   weights and files as one that nobody watches. */
#include "run_files.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <jansson.h>

#include "spawn.h"
#include "waits.h"

static const char *program;

static pid_t killed_train(const char *dir)
{
    return spawn_program(
        program,
        (const char *[]){"train", "net.yaml", "-n", "2", "--quiet", "--run-dir", dir, NULL}, -1);
}

static void killed_read_hash(char out[65], const char *dir)
{
    char file[64];
    json_t *summary;

    snprintf(file, sizeof(file), "%s/summary.json", dir);
    summary = json_load_file(folder_path(file), 0, NULL);
    assert_non_null(summary);
    snprintf(out, 65, "%s", json_string_value(json_object_get(summary, "weights_sha256")));
    json_decref(summary);
}

static int killed_count(const char *dir)
{
    DIR *open = opendir(folder_path(dir));
    int n = 0;

    assert_non_null(open);
    while (readdir(open))
        n++;
    closedir(open);
    return n;
}

/* Start a server of the folder `runs`, and one browser. */
static pid_t killed_serve(int *port)
{
    char line[512], *at;
    int out[2];
    FILE *stream;
    pid_t pid;

    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid = spawn_program(program, (const char *[]){"watch", "runs", NULL}, out[1]);
    close(out[1]);
    stream = fdopen(out[0], "r");
    assert_non_null(fgets(line, sizeof(line), stream));
    at = strstr(line, "http://127.0.0.1:");
    assert_non_null(at);
    *port = atoi(at + 17);
    fclose(stream);
    return pid;
}

static void watch_killed_leaves_run_alone(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const uint64_t start = co_clock_ns();
    char alone[65], watched[65];
    pid_t server, run;
    int port, fd, how;

    (void)state;
    run_write("net.yaml", "w",
              "model: {name: mlp, hidden: [16]}\n"
              "data: {name: synthetic, shape: [1, 8, 8], classes: 4, samples: 256}\n"
              "batch: 32\nepochs: 150\nlog_every: 5\n");
    mkdir(folder_path("runs"), 0700);
    spawn_wait(killed_train("alone"));
    killed_read_hash(alone, "alone");

    server = killed_serve(&port);
    address.sin_port = htons((uint16_t)port);
    run = killed_train("runs/a");
    while (access(folder_path("runs/a/metrics.jsonl"), F_OK) != 0)
        assert_true(waits_more(start));
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_true(write(fd, "GET / HT", 8) == 8);
    kill(server, SIGKILL);
    assert_int_equal(waitpid(server, &how, 0), server);
    close(fd);
    spawn_wait(run);
    killed_read_hash(watched, "runs/a");
    assert_string_equal(alone, watched);
    assert_int_equal(killed_count("alone"), killed_count("runs/a"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watch_killed_leaves_run_alone),
    };

    program = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
