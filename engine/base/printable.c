#include "engine/base/printable.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int32_t text_next(const char **text) {
    const unsigned char *s = (const unsigned char *)*text;
    if (s[0] == 0)
        return 0;
    int more = s[0] < 0x80                   ? 0
               : s[0] >= 0xC2 && s[0] < 0xE0 ? 1
               : (s[0] & 0xF0) == 0xE0       ? 2
               : s[0] >= 0xF0 && s[0] < 0xF5 ? 3
                                             : -1;
    int32_t code = more <= 0 ? s[0] : s[0] & (0x3F >> more);
    for (int i = 1; i <= more; i++) {
        if ((s[i] & 0xC0) != 0x80) {
            more = -1;
            break;
        }
        code = code << 6 | (s[i] & 0x3F);
    }
    static const int32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (more < 0 || code < least[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        *text += 1;
        return -1;
    }
    *text += more + 1;
    return code;
}

static bool is_hidden(int32_t c) {
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x61C || (c >= 0x200E && c <= 0x200F) ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

static size_t copy(char *out, size_t size, const char *text, bool printable) {
    size_t length = 0;
    if (size == 0)
        return 0;
    for (;;) {
        const char *start = text;
        int32_t c = text_next(&text);
        if (c == 0)
            break;
        size_t bytes = (size_t)(text - start);
        char plain = 0;
        if (c < 0)
            plain = '?';
        else if (printable && (c == '\t' || c == '\n'))
            plain = ' ';
        else if (printable && is_hidden(c))
            plain = '?';
        if (plain)
            start = &plain, bytes = 1;
        if (length + bytes >= size)
            break;
        memcpy(out + length, start, bytes);
        length += bytes;
    }
    out[length] = 0;
    return length;
}

bool text_is_utf8(const char *text) {
    int32_t c;
    do
        c = text_next(&text);
    while (c > 0);
    return c == 0;
}

size_t text_utf8(char *out, size_t size, const char *text) {
    return copy(out, size, text, false);
}

size_t text_printable(char *out, size_t size, const char *text) {
    return copy(out, size, text, true);
}

const char *text_loss(double value, char out[32]) {
    if (!isfinite(value))
        snprintf(out, 32, "not finite");
    else if (fabs(value) < 1e5)
        snprintf(out, 32, "%.4f", value);
    else
        snprintf(out, 32, "%.4e", value);
    return out;
}
