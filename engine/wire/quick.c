#include "engine/wire/quick.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "engine/wire/fields.h"

/* Every function here returns false for what it does not expect. None steps over a newline, so that the one
 * at the line's end bounds them all. */
struct quick {
    const char *at;
    struct arena *arena;
};

static inline bool skip(struct quick *quick, const char *text) {
    const char *at = quick->at;
    while (*text)
        if (*at++ != *text++)
            return false;
    quick->at = at;
    return true;
}

static inline bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* ---- numbers */

enum { DIGITS = 19 }; /* what a uint64_t holds, whatever the digits are */

/* Digits onto *number; how many. */
static inline int read_digits(struct quick *quick, uint64_t *number) {
    const char *begin = quick->at;
    uint64_t value = *number; /* wraps round when there are too many digits: the caller counts them */
    for (; is_digit(*quick->at); quick->at++)
        value = 10 * value + (uint64_t)(*quick->at - '0');
    *number = value;
    ptrdiff_t count = quick->at - begin;
    return count > DIGITS ? DIGITS + 1 : (int)count;
}

/* A whole part as JSON has it: no zero before another digit. */
static inline bool read_whole(struct quick *quick, uint64_t *number, int *digits) {
    bool zero = *quick->at == '0';
    *number = 0;
    *digits = read_digits(quick, number);
    return *digits > 0 && *digits <= DIGITS && !(zero && *digits > 1);
}

static bool read_integer(struct quick *quick, int64_t *out) {
    bool negative = skip(quick, "-");
    uint64_t number;
    int digits;
    if (!read_whole(quick, &number, &digits) || number > WIRE_INT_MAX || (negative && number == 0))
        return false;
    *out = negative ? -(int64_t)number : (int64_t)number;
    return true;
}

/* e-5, E+12 */
static bool read_exponent(struct quick *quick, int *scale) {
    quick->at++;
    bool negative = skip(quick, "-");
    if (!negative)
        (void)skip(quick, "+");
    uint64_t number = 0;
    int digits = read_digits(quick, &number);
    if (digits < 1 || digits > 3)
        return false;
    *scale += negative ? -(int)number : (int)number;
    return true;
}

/* Digits and a power of ten that are both exact as doubles: their product or quotient, rounded once, is the
 * double nearest to the decimal number (Clinger, "How to read floating point numbers accurately", 1990). */
static bool read_number(struct quick *quick, double *out) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    enum { MOST = sizeof powers / sizeof *powers - 1 };
    bool negative = skip(quick, "-"), whole = true;
    uint64_t number;
    int digits, scale = 0;
    if (!read_whole(quick, &number, &digits))
        return false;
    if (*quick->at == '.') {
        whole = false;
        quick->at++;
        int more = read_digits(quick, &number);
        digits += more;
        scale = -more;
        if (more == 0)
            return false;
    }
    if ((*quick->at | 0x20) == 'e') {
        whole = false;
        if (!read_exponent(quick, &scale))
            return false;
    }
    if (digits > DIGITS || number > (uint64_t)1 << DBL_MANT_DIG || scale < -MOST || scale > MOST ||
        (whole && negative && number == 0)) /* a whole number has no -0 */
        return false;
    double value = (double)number;
    value = scale < 0 ? value / powers[-scale] : value * powers[scale];
    *out = negative ? -value : value;
    return true;
}

/* ---- fields */

static bool read_text(struct quick *quick, const char **out) {
    if (!skip(quick, "\""))
        return false;
    const char *begin = quick->at, *end = begin;
    while (*end >= 0x20 && *end < 0x7F && *end != '"' && *end != '\\')
        end++;
    quick->at = end;
    if (!skip(quick, "\""))
        return false;
    char *text = arena_alloc(quick->arena, (size_t)(end - begin) + 1); /* zeroed: ends itself */
    if (text)
        memcpy(text, begin, (size_t)(end - begin));
    *out = text;
    return text != NULL;
}

static bool read_members(struct quick *quick, const struct field *fields, void *body, bool begun);

static char *more_room(struct quick *quick, const char *elements, size_t count, size_t room, size_t size) {
    char *more = arena_array(quick->arena, room, size);
    if (more && count > 0)
        memcpy(more, elements, count * size);
    return more;
}

static bool read_list(struct quick *quick, const struct field *f, void *body) {
    size_t size = f->type == FIELD_LIST ? f->size : sizeof(int64_t), count = 0, room = 0;
    char *elements = NULL;
    if (!skip(quick, "["))
        return false;
    do {
        if (count == room) {
            room = room ? 2 * room : 8;
            if (!(elements = more_room(quick, elements, count, room, size)))
                return false;
        }
        char *element = elements + count++ * size;
        if (f->type == FIELD_INTEGERS) {
            if (!read_integer(quick, (int64_t *)(void *)element))
                return false;
        } else {
            fields_clear(f->inner, element);
            if (!skip(quick, "{") || !read_members(quick, f->inner, element, false))
                return false;
        }
    } while (skip(quick, ","));
    *(void **)(void *)((char *)body + f->offset) = elements;
    *(int64_t *)(void *)((char *)body + f->count_offset) = (int64_t)count;
    return skip(quick, "]");
}

static bool read_field(struct quick *quick, const struct field *f, void *body) {
    void *place = (char *)body + f->offset;
    switch (f->type) {
    case FIELD_TEXT:
        return read_text(quick, place);
    case FIELD_INTEGER:
        return read_integer(quick, place);
    case FIELD_FLOAT:
    case FIELD_DOUBLE:
        if (skip(quick, "null")) {
            *(double *)place = (double)NAN; /* known, and not finite */
            return true;
        }
        return read_number(quick, place);
    case FIELD_FLAG:
        *(bool *)place = skip(quick, "true");
        return *(bool *)place || skip(quick, "false");
    case FIELD_GROUP:
        return skip(quick, "{") && read_members(quick, f->inner, body, false);
    case FIELD_LIST:
    case FIELD_INTEGERS:
        return read_list(quick, f, body);
    case FIELD_SHAPE: {
        int64_t *n = place;
        return skip(quick, "[") && read_integer(quick, &n[0]) && skip(quick, ",") &&
               read_integer(quick, &n[1]) && skip(quick, ",") && read_integer(quick, &n[2]) &&
               skip(quick, "]");
    }
    }
    return false;
}

/* The members of an object, in the order of the table, and the brace behind them. begun: there is one before
 * them. */
static bool read_members(struct quick *quick, const struct field *fields, void *body, bool begun) {
    for (const struct field *f = fields; !skip(quick, "}"); f++) {
        if ((begun && !skip(quick, ",")) || !skip(quick, "\""))
            return false;
        begun = true;
        for (; f->name; f++) {
            struct quick name = *quick;
            if (skip(&name, f->name) && skip(&name, "\":")) {
                *quick = name;
                break;
            }
        }
        if (!f->name || !read_field(quick, f, body))
            return false;
    }
    return true;
}

static enum event_kind read_kind(struct quick *quick) {
    char name[16];
    size_t length = 0;
    if (!skip(quick, "{\"event\":\""))
        return EVENT_NONE;
    while (((*quick->at >= 'a' && *quick->at <= 'z') || *quick->at == '_') && length < sizeof name - 1)
        name[length++] = *quick->at++;
    name[length] = 0;
    return skip(quick, "\"") ? event_kind_find(name) : EVENT_NONE;
}

bool event_decode_quick(const char *line, size_t length, struct arena *arena, struct event *out) {
    struct quick quick = {line, arena};
    if (FLT_EVAL_METHOD != 0) /* doubles are worked out as something wider, and rounded twice */
        return false;
    if (length == 0 || length > WIRE_LINE_MAX || line[length - 1] != '\n')
        return false;
    struct event event = event_new(read_kind(&quick));
    const struct event_description *description = event_describe(event.kind);
    if (!description)
        return false;
    if (skip(&quick, ",\"seq\":") && (!read_integer(&quick, &event.seq) || event.seq < 1))
        return false;
    if (skip(&quick, ",\"time\":") && !read_number(&quick, &event.time))
        return false;
    if (!read_members(&quick, description->fields, event_body(&event), true) || quick.at != line + length - 1)
        return false;
    *out = event;
    return true;
}
