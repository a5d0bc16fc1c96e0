#include "engine/wire/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/printable.h"
#include "engine/wire/fields.h"

struct comparison {
    double tolerance;
    void (*visit)(void *context, const struct difference *difference);
    void *context;
    int64_t count;
    struct difference found; /* its field: where the walk stands */
};

static void show_real(double value, char out[80]) {
    if (wire_is_unknown(value))
        snprintf(out, 80, "unknown");
    else
        snprintf(out, 80, "%.9g", value);
}

static void show_integer(int64_t value, char out[80]) {
    if (value == WIRE_UNKNOWN_INT)
        snprintf(out, 80, "unknown");
    else
        snprintf(out, 80, "%" PRId64, value);
}

static void show_text(const char *text, char out[80]) {
    if (text)
        text_printable(out, 80, text);
    else
        snprintf(out, 80, "unknown");
}

static bool same_real(double a, double b, double tolerance) {
    if (wire_is_unknown(a) || wire_is_unknown(b))
        return wire_is_unknown(a) && wire_is_unknown(b);
    if (!isfinite(a) || !isfinite(b))
        return !isfinite(a) && !isfinite(b); /* the stream does not tell them apart */
    return a == b || fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b));
}

static void differs(struct comparison *c) {
    c->count++;
    if (c->visit)
        c->visit(c->context, &c->found);
}

static void compare_fields(struct comparison *c, const struct field *fields, const void *a, const void *b);

static int64_t count_of(const struct field *f, const void *body) {
    return *(const int64_t *)(const void *)((const char *)body + f->count_offset);
}

static void compare_list(struct comparison *c, const struct field *f, const void *a, const void *b) {
    int64_t n = count_of(f, a), m = count_of(f, b);
    size_t length = strlen(c->found.field), size = f->type == FIELD_LIST ? f->size : sizeof(int64_t);
    const char *x = *(const char *const *)(const void *)((const char *)a + f->offset);
    const char *y = *(const char *const *)(const void *)((const char *)b + f->offset);
    if (n != m) {
        snprintf(c->found.a, 80, "%" PRId64 " of them", n);
        snprintf(c->found.b, 80, "%" PRId64 " of them", m);
        differs(c);
        return;
    }
    for (int64_t i = 0; i < n; i++, x += size, y += size) {
        snprintf(c->found.field + length, sizeof c->found.field - length, "[%" PRId64 "]", i);
        if (f->type == FIELD_LIST) {
            compare_fields(c, f->inner, x, y);
        } else if (memcmp(x, y, sizeof(int64_t)) != 0) {
            show_integer(*(const int64_t *)(const void *)x, c->found.a);
            show_integer(*(const int64_t *)(const void *)y, c->found.b);
            differs(c);
        }
        c->found.field[length] = 0;
    }
}

static void compare_field(struct comparison *c, const struct field *f, const void *a, const void *b) {
    const void *x = (const char *)a + f->offset, *y = (const char *)b + f->offset;
    bool same = true;
    switch (f->type) {
    case FIELD_TEXT: {
        const char *s = *(const char *const *)x, *t = *(const char *const *)y;
        same = s && t ? !strcmp(s, t) : s == t;
        show_text(s, c->found.a);
        show_text(t, c->found.b);
        break;
    }
    case FIELD_INTEGER:
        same = same_real((double)*(const int64_t *)x, (double)*(const int64_t *)y, c->tolerance);
        show_integer(*(const int64_t *)x, c->found.a);
        show_integer(*(const int64_t *)y, c->found.b);
        break;
    case FIELD_FLOAT:
    case FIELD_DOUBLE:
        same = same_real(*(const double *)x, *(const double *)y, c->tolerance);
        show_real(*(const double *)x, c->found.a);
        show_real(*(const double *)y, c->found.b);
        break;
    case FIELD_FLAG:
        same = *(const bool *)x == *(const bool *)y;
        show_text(*(const bool *)x ? "true" : "false", c->found.a);
        show_text(*(const bool *)y ? "true" : "false", c->found.b);
        break;
    case FIELD_SHAPE: {
        const int64_t *n = x, *m = y;
        same = !memcmp(n, m, 3 * sizeof *n);
        snprintf(c->found.a, 80, "%" PRId64 " x %" PRId64 " x %" PRId64, n[0], n[1], n[2]);
        snprintf(c->found.b, 80, "%" PRId64 " x %" PRId64 " x %" PRId64, m[0], m[1], m[2]);
        break;
    }
    case FIELD_GROUP:
        compare_fields(c, f->inner, a, b);
        break;
    case FIELD_LIST:
    case FIELD_INTEGERS:
        compare_list(c, f, a, b);
        break;
    }
    if (!same)
        differs(c);
}

static void compare_fields(struct comparison *c, const struct field *fields, const void *a, const void *b) {
    size_t length = strlen(c->found.field);
    for (const struct field *f = fields; f->name; f++) {
        if (f->flags)
            continue;
        snprintf(c->found.field + length, sizeof c->found.field - length, "%s%s", length ? "." : "", f->name);
        compare_field(c, f, a, b);
        c->found.field[length] = 0;
    }
}

int64_t event_compare(const struct event *a, const struct event *b, double tolerance,
                      void (*visit)(void *context, const struct difference *difference), void *context) {
    struct comparison c = {tolerance, visit, context, 0, {.field = ""}};
    if (a->kind != b->kind) {
        snprintf(c.found.field, sizeof c.found.field, "event");
        show_text(event_kind_name(a->kind), c.found.a);
        show_text(event_kind_name(b->kind), c.found.b);
        differs(&c);
    } else if (a->kind != EVENT_NONE) {
        compare_fields(&c, event_describe(a->kind)->fields, event_body_const(a), event_body_const(b));
    }
    return c.count;
}

/* Every event that speaks of a step has a field of that name. */
int64_t event_step(const struct event *event) {
    const struct event_description *description = event_describe(event->kind);
    for (const struct field *f = description ? description->fields : NULL; f && f->name; f++)
        if (!strcmp(f->name, "step"))
            return *(const int64_t *)(const void *)((const char *)event_body_const(event) + f->offset);
    return WIRE_UNKNOWN_INT;
}
