#include "tests/support/small_run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "engine/base/clock.h"
#include "tests/support/cmocka.h"

int shell(const char *format, ...) {
    char command[4096];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && length < (int)sizeof command);
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static const char *program(void) {
    const char *name = getenv("TOWERSCOPE");
    assert_non_null(name);
    return name;
}

void small_run_start(const char *name, int towers, const char *more) {
    assert_int_equal(
        shell("\"%s\" run %s --detach --runs \"$TEST_TMP/runs\" --data generated --model softmax --towers %d "
              "--batch 32 --lr 0.01 --eval-every 0 --checkpoint-every 0 %s >/dev/null",
              program(), name, towers, more),
        0);
}

void small_run_stop(const char *name) {
    shell("\"%s\" ctl %s stop >/dev/null 2>&1", program(), name);
}

pid_t small_run_engine(const char *name) {
    char path[1024];
    long pid = 0;
    snprintf(path, sizeof path, "%s/runs/%s/lock", getenv("TEST_TMP"), name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pid), 1);
    fclose(file);
    return (pid_t)pid;
}

static long long step_of(const char *name) {
    char command[1024], text[8192];
    snprintf(command, sizeof command, "\"%s\" ctl %s status --json", program(), name);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t length = fread(text, 1, sizeof text - 1, pipe);
    text[length] = 0;
    assert_int_equal(pclose(pipe), 0);
    const char *at = strstr(text, "\"step\":");
    return at ? atoll(at + strlen("\"step\":")) : -1;
}

bool small_run_goes_on(const char *name, double seconds) {
    seconds *= 10; /* as long as a loaded machine may need */
    double until = clock_seconds() + seconds;
    long long first = step_of(name);
    while (clock_seconds() < until)
        if (step_of(name) > first)
            return true;
    printf("%s has not moved from step %lld in %.1f s\n", name, first, seconds);
    return false;
}

struct vt *small_run_attach(const char *name, int rows, int cols, const char *option) {
    const char *argv[] = {program(), "attach", name, option, NULL};
    struct vt *vt = vt_start(rows, cols, argv, NULL);
    assert_non_null(vt);
    assert_true(vt_wait_text(vt, "cross-entropy", 15));
    return vt;
}

void small_run_leave(struct vt *vt, const char *name) {
    vt_keys(vt, "q");
    int status;
    assert_true(vt_wait_exit(vt, 10, &status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(vt_is_restored(vt));
    assert_true(vt_shows(vt, "goes on"));
    assert_true(vt_shows(vt, name)); /* how to come back */
    vt_end(vt);
}
