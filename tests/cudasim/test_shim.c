/* The shim that runs kernels on the processor: what is wrong in a kernel is found.
 * test-skip-under: thread (fibres) */
#include "tests/cudasim/faulty.h"
#include "tests/support/cmocka.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *zeros(size_t count) {
    float *out = calloc(count, sizeof *out);
    assert_non_null(out);
    return out;
}

/* Run a wrong kernel in a child and expect it to end badly, with these words on its standard error. */
static void expect_death(enum faulty which, const char *words) {
    char text[4096];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        faulty_run(which, zeros(FAULTY_THREADS));
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got; (got = read(ends[0], text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)got;
    text[length] = 0;
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (!strstr(text, words))
        fail_msg("expected \"%s\", found: %s", words, text);
}

static void test_barriers(void **state) {
    (void)state;
    expect_death(FAULTY_DIVERGENT_BARRIER, "did not reach");
    expect_death(FAULTY_TWO_BARRIERS, "another barrier");
    expect_death(FAULTY_TWO_BARRIERS, "faulty.cu:");
}

static void test_lanes(void **state) {
    (void)state;
    expect_death(FAULTY_MISSING_LANES, "never come");
    expect_death(FAULTY_OUTSIDE_MASK, "outside its mask");
}

/* What is right in one order of the threads only is found by the other. */
static void test_orders(void **state) {
    (void)state;
    int wrong[2] = {0, 0};
    for (int reverse = 0; reverse < 2; reverse++) {
        assert_int_equal(setenv("CUDASIM_REVERSE", reverse ? "1" : "0", 1), 0);
        float *out = zeros(FAULTY_THREADS);
        out[0] = (float)reverse; /* shared memory may hold what the time before left */
        assert_int_equal(faulty_run(FAULTY_MISSING_BARRIER, out), cudaSuccess);
        for (int i = 0; i < FAULTY_THREADS; i++)
            wrong[reverse] += out[i] != (float)reverse + 1;
        free(out);
    }
    assert_int_equal(wrong[0], 0);
    assert_int_equal(wrong[1], FAULTY_THREADS - 1);
    unsetenv("CUDASIM_REVERSE");
}

static void test_shared(void **state) {
    (void)state;
    float *out = zeros(2 * FAULTY_THREADS);
    assert_int_equal(faulty_run(FAULTY_UNSET_SHARED, out), cudaSuccess);
    int wrong = 0;
    for (int i = 0; i < 2 * FAULTY_THREADS; i++)
        wrong += out[i] != 1;
    assert_true(wrong >= FAULTY_THREADS);
    free(out);
}

static void test_beyond_the_end(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    expect_death(FAULTY_BEYOND_THE_END, "heap-buffer-overflow");
    expect_death(FAULTY_BEYOND_THE_END, "faulty.cu:");
    expect_death(FAULTY_BEYOND_SHARED, "heap-buffer-overflow");
#endif
}

static void test_sizes(void **state) {
    (void)state;
    float *out = zeros(1024);
    assert_int_equal(faulty_launch(1, 1024, 48 << 10, out), cudaSuccess);
    assert_int_equal(faulty_launch(1, 1025, 0, out), cudaErrorInvalidConfiguration);
    assert_int_equal(faulty_launch(1, 0, 0, out), cudaErrorInvalidConfiguration);
    assert_int_equal(faulty_launch(0, 32, 0, out), cudaErrorInvalidConfiguration);
    assert_int_equal(faulty_launch(1, 32, (48 << 10) + 1, out), cudaErrorInvalidConfiguration);
    free(out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barriers), cmocka_unit_test(test_lanes),          cmocka_unit_test(test_orders),
        cmocka_unit_test(test_shared),   cmocka_unit_test(test_beyond_the_end), cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
