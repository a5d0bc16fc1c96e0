#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* What a handler may touch, in whichever thread it runs: atomics without a lock. */
static atomic_int asked_to_end, asked_times, wake_fd = -1;
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a handler takes no lock");

static void on_signal(int number) {
    static const uint64_t one = 1;
    int before = errno;
    asked_to_end = number;
    asked_times++;
    if (wake_fd >= 0 && write(wake_fd, &one, sizeof one) < 0)
        errno = before; /* full: it is readable already */
    errno = before;
}

void signals_catch(bool background) {
    struct sigaction end = {.sa_handler = on_signal, .sa_flags = SA_RESTART},
                     ignore = {.sa_handler = SIG_IGN};
    const int ends[] = {SIGINT,  SIGTERM, SIGHUP,
                        SIGUSR1, SIGUSR2, SIGXCPU}; /* batch systems warn by the last three */
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct sigaction was;
        if (background && ends[i] == SIGHUP)
            sigaction(SIGHUP, &ignore, NULL);
        else if (!sigaction(ends[i], NULL, &was) && was.sa_handler != SIG_IGN)
            sigaction(ends[i], &end, NULL);
    }
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
}

int signals_asked(void) {
    return asked_to_end;
}

int signals_fd(void) {
    return wake_fd;
}

int signals_seen(void) {
    uint64_t times;
    if (wake_fd >= 0)
        (void)!read(wake_fd, &times, sizeof times);
    return asked_times;
}
