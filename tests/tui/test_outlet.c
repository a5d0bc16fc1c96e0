/* What is written between begin and end reaches the terminal in one piece. The terminal's part is taken by a
 * socket that keeps writes apart, as a reader of a terminal that is fast enough meets them. */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tui/outlet.h"

enum { TERMINAL, READER };

/* One write, as it arrived; its length, 0 when there is none. */
static size_t arrived(int reader, char *bytes, size_t size) {
    ssize_t count = recv(reader, bytes, size, MSG_DONTWAIT);
    return count > 0 ? (size_t)count : 0;
}

static void expect_arrived(int reader, const char *wanted) {
    char bytes[64] = "";
    arrived(reader, bytes, sizeof bytes - 1);
    assert_string_equal(bytes, wanted);
}

static void one_piece(void **state) {
    (void)state;
    int ends[2];
    char byte;
    struct outlet outlet;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(outlet_open(&outlet, ends[TERMINAL]), STATUS_OK);
    outlet_write(&outlet, "at once");
    expect_arrived(ends[READER], "at once");
    for (int frame = 0; frame < 2; frame++) { /* the second is shorter: nothing of the first comes again */
        outlet_begin(&outlet);
        outlet_write(&outlet, "one ");
        if (frame == 0)
            assert_int_equal(write(fileno(outlet.file), "two ", 4), 4); /* ncurses knows but the descriptor */
        outlet_write(&outlet, "three");
        assert_int_equal(arrived(ends[READER], &byte, 1), 0);
        outlet_end(&outlet);
        expect_arrived(ends[READER], frame == 0 ? "one two three" : "one three");
        assert_int_equal(arrived(ends[READER], &byte, 1), 0);
    }
    assert_int_equal(outlet.written, strlen("one two three") + strlen("one three"));
    outlet_begin(&outlet); /* an empty frame writes nothing */
    outlet_end(&outlet);
    outlet_end(&outlet);
    assert_int_equal(arrived(ends[READER], &byte, 1), 0);
    assert_true(fcntl(fileno(outlet.file), F_GETFD) & FD_CLOEXEC);
    outlet_close(&outlet);
    assert_int_equal(write(ends[TERMINAL], "still", 5), 5); /* the terminal stays the caller's */
    close(ends[0]);
    close(ends[1]);
}

struct drain {
    int fd;
    size_t count;
    bool wrong;
};

static char pattern(size_t at) {
    return (char)('a' + at % 23);
}

static void *read_all(void *argument) {
    struct drain *drain = argument;
    char bytes[512];
    for (ssize_t count; (count = read(drain->fd, bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < count; i++)
            drain->wrong |= bytes[i] != pattern(drain->count++);
    return NULL;
}

/* A frame far beyond what fits into the pipe, to a terminal that was made non-blocking by another. */
static void slow_terminal(void **state) {
    (void)state;
    enum { BYTES = 300000 };
    int ends[2];
    struct outlet outlet;
    pthread_t thread;
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, 0), 0);
    assert_int_equal(outlet_open(&outlet, ends[1]), STATUS_OK);
    outlet_begin(&outlet);
    for (size_t at = 0; at < BYTES; at++) {
        char byte[2] = {pattern(at), 0};
        outlet_write(&outlet, byte);
    }
    struct drain drain = {.fd = ends[0]};
    assert_int_equal(pthread_create(&thread, NULL, read_all, &drain), 0);
    outlet_end(&outlet);
    assert_int_equal(outlet.written, BYTES);
    outlet_close(&outlet);
    close(ends[1]);
    pthread_join(thread, NULL);
    assert_int_equal(drain.count, BYTES);
    assert_false(drain.wrong);
    close(ends[0]);
}

static void no_terminal(void **state) {
    (void)state;
    struct outlet outlet;
    assert_int_equal(outlet_open(&outlet, -1), STATUS_IO);
    assert_non_null(strstr(status_text(), "terminal"));
    outlet_close(&outlet);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_piece), cmocka_unit_test(slow_terminal),
                                       cmocka_unit_test(no_terminal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
