/* Small runs that go on until they are stopped, in $TEST_TMP/runs, and consoles on them. What fails fails the
 * test. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_SMALL_RUN_H
#define TOWERSCOPE_TESTS_SUPPORT_SMALL_RUN_H

#include <sys/types.h>

#include "tests/support/vt.h"

/* A command of the shell; its exit code, 128 when a signal ended it. */
int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Start a run of the softmax model on generated data, detached. more: further options; "" is fine. */
void small_run_start(const char *name, int towers, const char *more);
/* Ask it to end; a run that is not there is fine. */
void small_run_stop(const char *name);

/* The process number of the run's engine, as its lock file tells it. */
pid_t small_run_engine(const char *name);
/* Whether the engine has made a further step within some seconds. */
bool small_run_goes_on(const char *name, double seconds);

/* A console on it, once it shows the towers. option: one more word of `attach`; NULL: none. */
struct vt *small_run_attach(const char *name, int rows, int cols, const char *option);
/* Leave by q: exit 0, the terminal as it was, and said how to come back. Ends the terminal. */
void small_run_leave(struct vt *vt, const char *name);

#endif
