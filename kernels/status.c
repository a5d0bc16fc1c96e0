#include "kernels/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char text[1024];

enum status status_fail(enum status code, const char *format, ...) {
    /* The arguments may point into `text` (a failure passed on), so the sentence is built aside. */
    char built[sizeof text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(built, sizeof built, format, arguments);
    va_end(arguments);
    memcpy(text, built, sizeof text);
    return code;
}

enum status status_prefix(enum status code, const char *format, ...) {
    char built[sizeof text];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(built, sizeof built, format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length < sizeof built)
        snprintf(built + length, sizeof built - (size_t)length, "%s", text);
    memcpy(text, built, sizeof text);
    return code;
}

const char *status_text(void) {
    return text;
}

enum status status_of_write(int error) {
    return error == ENOSPC || error == EDQUOT ? STATUS_NO_SPACE : STATUS_IO;
}

const char *status_name(enum status code) {
    switch (code) {
    case STATUS_OK:
        return "ok";
    case STATUS_BUSY:
        return "busy";
    case STATUS_UNSUPPORTED:
        return "unsupported";
    case STATUS_BAD_INPUT:
        return "bad input";
    case STATUS_NOT_FOUND:
        return "not found";
    case STATUS_REFUSED:
        return "refused";
    case STATUS_NO_MEMORY:
        return "out of memory";
    case STATUS_IO:
        return "input or output failed";
    case STATUS_NO_SPACE:
        return "no space";
    case STATUS_DEVICE:
        return "device failed";
    case STATUS_NON_FINITE:
        return "not finite";
    case STATUS_INTERRUPTED:
        return "interrupted";
    case STATUS_INTERNAL:
        return "internal fault";
    }
    return "unknown status";
}
