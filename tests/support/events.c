#include "tests/support/events.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/wire/fields.h"

static const char *some_text(struct random *random, struct arena *arena) {
    static const char *const texts[] = {"",
                                        "tower_0/local3/weight_loss",
                                        "quotes \" and \\ and /",
                                        "tab\tnewline\n",
                                        "données-数据",
                                        "\x01\x1b[2J",
                                        "a"};
    return arena_string(arena, texts[random_below(random, sizeof texts / sizeof *texts)]);
}

static double some_real(struct random *random, bool is_float) {
    switch (random_below(random, 6)) {
    case 0:
        return (double)NAN;
    case 1:
        return 0;
    case 2:
        return -1.5;
    default:
        break;
    }
    double value = ldexp(random_double(random) - 0.5, (int)random_below(random, 200) - 100);
    /* what survives the line: 9 digits of a float, 15 of a double */
    char digits[40];
    if (is_float)
        snprintf(digits, sizeof digits, "%.8e", (double)(float)value);
    else
        snprintf(digits, sizeof digits, "%.14e", value);
    return strtod(digits, NULL);
}

static void fill(const struct field *fields, void *body, struct random *random, double share,
                 struct arena *arena) {
    for (const struct field *f = fields; f->name; f++) {
        void *place = (char *)body + f->offset;
        if (random_double(random) < share)
            continue;
        size_t count = 1 + random_below(random, 4);
        switch (f->type) {
        case FIELD_TEXT:
            *(const char **)place = some_text(random, arena);
            break;
        case FIELD_INTEGER:
            *(int64_t *)place = ((int64_t)random_u32(random) << 20) - random_u32(random);
            break;
        case FIELD_FLOAT:
            *(double *)place = some_real(random, true);
            break;
        case FIELD_DOUBLE:
            *(double *)place = some_real(random, false);
            break;
        case FIELD_FLAG:
            *(bool *)place = random_below(random, 2);
            break;
        case FIELD_GROUP:
            fill(f->inner, body, random, share, arena);
            break;
        case FIELD_SHAPE:
            for (int i = 0; i < 3; i++)
                ((int64_t *)place)[i] = random_below(random, 100);
            break;
        case FIELD_LIST:
        case FIELD_INTEGERS: {
            size_t size = f->type == FIELD_LIST ? f->size : sizeof(int64_t);
            char *elements = arena_array(arena, count, size);
            for (size_t i = 0; i < count; i++)
                if (f->type == FIELD_LIST) {
                    fields_clear(f->inner, elements + i * size);
                    fill(f->inner, elements + i * size, random, share, arena);
                } else {
                    ((int64_t *)(void *)elements)[i] = random_u32(random);
                }
            *(void **)place = elements;
            *(int64_t *)(void *)((char *)body + f->count_offset) = (int64_t)count;
            break;
        }
        }
    }
}

struct event events_fill(enum event_kind kind, struct random *random, double share, struct arena *arena) {
    struct event event = event_new(kind);
    event.seq = random_below(random, 2) ? 1 + (int64_t)random_u32(random) : 0;
    event.time = 1700000000 + random_below(random, 1000000) + 0.25;
    fill(event_describe(kind)->fields, event_body(&event), random, share, arena);
    return event;
}

struct event events_step(int64_t seq, int64_t step, int towers, struct arena *arena) {
    struct event event = event_new(EVENT_STEP);
    struct event_step *e = &event.step;
    event.seq = seq;
    event.time = 1700000000 + 0.01 * (double)step;
    e->step = step;
    e->epoch = (double)step / 468;
    e->lr = 0.1;
    e->images = 128;
    e->seconds = 0.0132;
    e->images_per_second = 9696.9697;
    e->cross_entropy = 0.5 + 1.0 / (double)step;
    e->weight_decay = 0.93125;
    e->loss = e->cross_entropy + e->weight_decay;
    e->grad_norm = 0.881;
    e->grad_norm_mean = 1.246;
    e->update_ratio = 0.00123;
    e->noise_scale = 64.25;
    e->tower_count = towers;
    e->towers = arena_array(arena, (size_t)towers, sizeof *e->towers);
    for (int i = 0; i < towers; i++) {
        double spread = 0.01 * (i % 7 - 3);
        e->towers[i] = (struct event_step_tower){i,
                                                 "cpu",
                                                 128 / towers,
                                                 e->cross_entropy + spread,
                                                 e->weight_decay,
                                                 e->loss + spread,
                                                 1.2 + spread,
                                                 0.7 + spread,
                                                 0.51,
                                                 3.25,
                                                 6.125,
                                                 0.75};
    }
    e->average_ms = 0.4;
    e->update_ms = 0.8;
    return event;
}

static bool same_real(double a, double b) {
    if (wire_is_unknown(a) || wire_is_unknown(b))
        return wire_is_unknown(a) && wire_is_unknown(b);
    return !memcmp(&a, &b, sizeof a) || (isnan(a) && isnan(b));
}

static const char *difference(const struct field *fields, const void *a, const void *b) {
    for (const struct field *f = fields; f->name; f++) {
        const void *x = (const char *)a + f->offset, *y = (const char *)b + f->offset;
        const char *inner = NULL;
        bool same = true;
        switch (f->type) {
        case FIELD_TEXT: {
            const char *s = *(const char *const *)x, *t = *(const char *const *)y;
            same = s && t ? !strcmp(s, t) : s == t;
            break;
        }
        case FIELD_INTEGER:
            same = *(const int64_t *)x == *(const int64_t *)y;
            break;
        case FIELD_FLOAT:
        case FIELD_DOUBLE:
            same = same_real(*(const double *)x, *(const double *)y);
            break;
        case FIELD_FLAG:
            same = *(const bool *)x == *(const bool *)y;
            break;
        case FIELD_GROUP:
            inner = difference(f->inner, a, b);
            break;
        case FIELD_SHAPE:
            same = !memcmp(x, y, 3 * sizeof(int64_t));
            break;
        case FIELD_LIST:
        case FIELD_INTEGERS: {
            int64_t n = *(const int64_t *)(const void *)((const char *)a + f->count_offset);
            int64_t m = *(const int64_t *)(const void *)((const char *)b + f->count_offset);
            const char *p = *(const char *const *)x, *q = *(const char *const *)y;
            same = n == m;
            if (same && n > 0 && f->type == FIELD_INTEGERS)
                same = !memcmp(p, q, (size_t)n * sizeof(int64_t));
            for (int64_t i = 0; same && !inner && f->type == FIELD_LIST && i < n; i++)
                inner = difference(f->inner, p + (size_t)i * f->size, q + (size_t)i * f->size);
            break;
        }
        }
        if (!same || inner)
            return inner ? inner : f->name;
    }
    return NULL;
}

bool events_equal(const struct event *a, const struct event *b, const char **field) {
    const char *name = a->kind != b->kind             ? "kind"
                       : a->seq != b->seq             ? "seq"
                       : !same_real(a->time, b->time) ? "time"
                                                      : NULL;
    if (!name && a->kind != EVENT_NONE)
        name = difference(event_describe(a->kind)->fields, event_body_const(a), event_body_const(b));
    if (field)
        *field = name;
    return !name;
}
