/* Memory for simulated kernels: of exactly the bytes that were asked for, between guard words, filled with
 * what is not a number. Under the address sanitizer nothing follows, so that it sees reads beyond the end
 * too. */
#ifndef TOWERSCOPE_TESTS_CUDASIM_ROOM_H
#define TOWERSCOPE_TESTS_CUDASIM_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct room {
    void *data;
    size_t bytes;
    void *whole;
};

/* data is 64-byte aligned plus `shift` bytes. bytes 0: data is NULL. Fails the test when there is no memory.
 */
struct room room_new(size_t bytes, size_t shift);

/* Fail the test, naming `what`, when a guard word was written to; then free. */
void room_end(struct room *room, const char *what);

/* Normal values of a test's own stream, times scale; a new room of floats. */
struct room room_normal(size_t count, size_t shift, double scale, uint64_t stream);

/* found against expected: the difference at most `tolerance` of the norm of expected, that of one value at
 * most ten times that of the largest. Fails the test, naming `what`. */
void expect_near(const char *what, const float *found, const double *expected, size_t count,
                 double tolerance);

/* Run a test twice: threads and blocks ascending, then descending. `run` puts what its kernels gave into
 * `out` with both_orders_keep(); the second time the bytes have to be the same. */
void both_orders(void (*run)(const void *args), const void *args);
void both_orders_keep(const char *what, const void *data, size_t bytes);

#endif
