#include "cli/stack.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "kernels/status.h"

/* Far more than our own frames take; the libraries' are not ours to know. */
enum { ENOUGH_BYTES = 2 << 20 };

struct call {
    int (*command)(int argc, char **argv);
    int argc;
    char **argv;
    int code;
};

static void *run(void *context) {
    struct call *call = context;
    call->code = call->command(call->argc, call->argv);
    return NULL;
}

/* The size that new threads get follows the limit on the first one's stack. */
static int give_threads_enough(void) {
    pthread_attr_t attributes;
    size_t bytes = 0;
    int error = pthread_getattr_default_np(&attributes);
    if (error)
        return error;
    error = pthread_attr_getstacksize(&attributes, &bytes);
    if (!error && bytes < ENOUGH_BYTES) {
        error = pthread_attr_setstacksize(&attributes, ENOUGH_BYTES);
        if (!error)
            error = pthread_setattr_default_np(&attributes);
    }
    pthread_attr_destroy(&attributes);
    return error;
}

int stack_run(int (*command)(int argc, char **argv), int argc, char **argv) {
    struct rlimit limit;
    struct call call = {command, argc, argv, -1};
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= ENOUGH_BYTES)
        return command(argc, argv);
    pthread_t thread;
    int error = give_threads_enough();
    if (!error)
        error = pthread_create(&thread, NULL, run, &call);
    if (error) {
        status_fail(
            STATUS_IO,
            "the stack may have %llu KiB here (ulimit -s), %d are needed, and no thread can be had that has "
            "them: %s",
            (unsigned long long)limit.rlim_cur / 1024, ENOUGH_BYTES / 1024, strerror(error));
        return -1;
    }
    sigset_t all; /* that thread has them: a signal is to end its waits */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    pthread_join(thread, NULL);
    return call.code;
}
