/* How every part of towerscope reports a failure.
 *
 * A function that can fail returns an enum status. Where it fails it calls status_fail(), which stores one
 * sentence for the person (what was found, what was expected, what to do) for the calling thread and hands
 * the code back: `return status_fail(STATUS_BAD_INPUT, "%s: ...", path);`. Nothing below cli/ prints or
 * exits. This header includes nothing of the project and everyone may include it. */
#ifndef TOWERSCOPE_KERNELS_STATUS_H
#define TOWERSCOPE_KERNELS_STATUS_H

#include <stdbool.h>
#include <stddef.h>

enum status {
    STATUS_OK = 0,
    STATUS_BUSY,        /* not finished yet (poll), or held by someone else (a lock) */
    STATUS_UNSUPPORTED, /* a device or implementation that can't do this; the next one may */
    STATUS_BAD_INPUT,   /* a file, setting or argument that is wrong */
    STATUS_NOT_FOUND,   /* no such file, run, model, data set */
    STATUS_REFUSED,     /* understood, and not allowed in this state */
    STATUS_NO_MEMORY,
    STATUS_IO,          /* the system refused to read or write: errno is in the text */
    STATUS_NO_SPACE,    /* the same, for want of room on a disk or in a quota: it may be there later */
    STATUS_DEVICE,      /* a device was lost or failed */
    STATUS_NON_FINITE,  /* a value is not finite */
    STATUS_INTERRUPTED, /* asked to stop */
    STATUS_INTERNAL,    /* an invariant does not hold: a fault of ours */
};

/* Store the sentence for this thread (at most 1,023 bytes, the rest is cut) and return `code`. */
enum status status_fail(enum status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Put words before the stored sentence ("FILE: " + what it said) and return `code` unchanged. */
enum status status_prefix(enum status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The sentence of this thread's last failure; "" when there was none. Valid until the next failure here.
 * To hand a failure to another thread copy this text and call status_fail() there. */
const char *status_text(void);

/* The code as a word, for logs: "bad input". Never NULL. */
const char *status_name(enum status code);

/* The code for an errno of writing: STATUS_NO_SPACE for ENOSPC and EDQUOT, else STATUS_IO. */
enum status status_of_write(int error);

/* Return early from the calling function when `expression` is not STATUS_OK. */
#define STATUS_TRY(expression)                                                                               \
    do {                                                                                                     \
        enum status try_status_ = (expression);                                                              \
        if (try_status_ != STATUS_OK)                                                                        \
            return try_status_;                                                                              \
    } while (0)

#endif
