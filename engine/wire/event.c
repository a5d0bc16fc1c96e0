#include "engine/wire/event.h"

#include <string.h>

#include "engine/wire/fields.h"

/* A quiet NaN whose payload no arithmetic produces. */
#define UNKNOWN_BITS UINT64_C(0x7FF8000000746F77)

double wire_unknown(void) {
    const uint64_t bits = UNKNOWN_BITS;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

bool wire_is_unknown(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits == UNKNOWN_BITS;
}

void fields_clear(const struct field *fields, void *body) {
    for (const struct field *f = fields; f->name; f++) {
        void *place = (char *)body + f->offset;
        switch (f->type) {
        case FIELD_TEXT:
            *(const char **)place = NULL;
            break;
        case FIELD_INTEGER:
            *(int64_t *)place = WIRE_UNKNOWN_INT;
            break;
        case FIELD_FLOAT:
        case FIELD_DOUBLE:
            *(double *)place = wire_unknown();
            break;
        case FIELD_FLAG:
            *(bool *)place = false;
            break;
        case FIELD_GROUP:
            fields_clear(f->inner, body);
            break;
        case FIELD_LIST:
        case FIELD_INTEGERS:
            *(void **)place = NULL;
            *(int64_t *)((char *)body + f->count_offset) = 0;
            break;
        case FIELD_SHAPE:
            for (int i = 0; i < 3; i++)
                ((int64_t *)place)[i] = WIRE_UNKNOWN_INT;
            break;
        }
    }
}

struct event event_new(enum event_kind kind) {
    struct event event;
    memset(&event, 0, sizeof event);
    event.kind = kind;
    event.time = wire_unknown();
    const struct event_description *description = event_describe(kind);
    if (description)
        fields_clear(description->fields, event_body(&event));
    return event;
}

/* Copy what the pointers of a structure point to; the structure itself has been copied. */
static bool deepen(const struct field *fields, void *body, struct arena *arena) {
    for (const struct field *f = fields; f->name; f++) {
        void *place = (char *)body + f->offset;
        int64_t count = f->type == FIELD_LIST || f->type == FIELD_INTEGERS
                            ? *(int64_t *)((char *)body + f->count_offset)
                            : 0;
        size_t size = f->type == FIELD_LIST ? f->size : sizeof(int64_t);
        if (f->type == FIELD_TEXT && *(char **)place) {
            if (!(*(char **)place = arena_string(arena, *(char **)place)))
                return false;
        } else if (f->type == FIELD_GROUP) {
            if (!deepen(f->inner, body, arena))
                return false;
        } else if (count > 0) {
            char *copy = arena_array(arena, (size_t)count, size);
            if (!copy)
                return false;
            memcpy(copy, *(void **)place, (size_t)count * size);
            *(void **)place = copy;
            for (int64_t i = 0; f->type == FIELD_LIST && i < count; i++)
                if (!deepen(f->inner, copy + (size_t)i * size, arena))
                    return false;
        }
    }
    return true;
}

enum status event_copy(const struct event *event, struct arena *arena, struct event *out) {
    struct event copy = *event;
    const struct event_description *description = event_describe(event->kind);
    if (description && !deepen(description->fields, event_body(&copy), arena))
        return status_fail(STATUS_NO_MEMORY, "no memory to keep an event");
    *out = copy;
    return STATUS_OK;
}
