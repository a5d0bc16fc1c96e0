#include "engine/wire/codec.h"

#include <jansson.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "engine/wire/fields.h"
#include "engine/wire/quick.h"

/* ---- encoding */

/* To 9 significant digits, which tell every float32 from its neighbours. A whole number of 9 digits and a
 * power of ten up to 10^22 are exact as doubles, so that their quotient is the double nearest to the decimal
 * number. */
static double round_to_float_digits(double value) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    enum { DIGITS = 9, MOST = sizeof powers / sizeof *powers - 1 };
    if (value == 0)
        return value;
    int shift = DIGITS - 1 - (int)floor(log10(fabs(value)));
    if (shift >= 0 && shift <= MOST)
        return nearbyint(value * powers[shift]) / powers[shift];
    if (shift < 0 && -shift <= MOST)
        return nearbyint(value / powers[-shift]) * powers[-shift];
    char digits[40]; /* printing and reading use the same locale, whichever it is */
    snprintf(digits, sizeof digits, "%.*e", DIGITS - 1, value);
    return strtod(digits, NULL);
}

static json_t *encode_real(double value, bool is_float) {
    if (!isfinite(value))
        return json_null();
    return json_real(is_float ? round_to_float_digits(value) : value);
}

static json_t *encode_text(const char *text) {
    json_t *json = json_string(text);
    if (json)
        return json;
    /* Not UTF-8: a file's name, say. Bytes that are none become '?'. */
    size_t size = strlen(text) + 1;
    char *clean = malloc(size);
    if (!clean)
        return NULL;
    text_utf8(clean, size, text);
    json = json_string(clean);
    free(clean);
    return json;
}

static json_t *encode_fields(const struct field *fields, const void *body);

static json_t *encode_list(const struct field *f, const void *place, int64_t count) {
    const char *elements = *(const char *const *)place;
    json_t *list = json_array();
    for (int64_t i = 0; list && i < count; i++) {
        json_t *element = f->type == FIELD_LIST ? encode_fields(f->inner, elements + (size_t)i * f->size)
                                                : json_integer(((const int64_t *)(const void *)elements)[i]);
        if (!element || json_array_append_new(list, element) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* The value of a field, or NULL: unknown, or (with *failed) no memory. */
static json_t *encode_field(const struct field *f, const void *body, bool *failed) {
    const void *place = (const char *)body + f->offset;
    json_t *json = NULL;
    switch (f->type) {
    case FIELD_TEXT:
        if (!*(const char *const *)place)
            return NULL;
        json = encode_text(*(const char *const *)place);
        break;
    case FIELD_INTEGER:
        if (*(const int64_t *)place == WIRE_UNKNOWN_INT)
            return NULL;
        json = json_integer(*(const int64_t *)place);
        break;
    case FIELD_FLOAT:
    case FIELD_DOUBLE:
        if (wire_is_unknown(*(const double *)place))
            return NULL;
        json = encode_real(*(const double *)place, f->type == FIELD_FLOAT);
        break;
    case FIELD_FLAG:
        json = json_boolean(*(const bool *)place);
        break;
    case FIELD_GROUP:
        json = encode_fields(f->inner, body);
        if (json && json_object_size(json) == 0) {
            json_decref(json);
            return NULL;
        }
        break;
    case FIELD_LIST:
    case FIELD_INTEGERS: {
        int64_t count = *(const int64_t *)(const void *)((const char *)body + f->count_offset);
        if (count <= 0)
            return NULL;
        json = encode_list(f, place, count);
        break;
    }
    case FIELD_SHAPE: {
        const int64_t *n = place;
        if (n[0] == WIRE_UNKNOWN_INT)
            return NULL;
        json = json_pack("[I,I,I]", (json_int_t)n[0], (json_int_t)n[1], (json_int_t)n[2]);
        break;
    }
    }
    *failed = !json;
    return json;
}

static bool encode_into(json_t *object, const struct field *fields, const void *body) {
    for (const struct field *f = fields; f->name; f++) {
        bool failed = false;
        json_t *value = encode_field(f, body, &failed);
        if (failed || (value && json_object_set_new_nocheck(object, f->name, value) != 0))
            return false;
    }
    return true;
}

static json_t *encode_fields(const struct field *fields, const void *body) {
    json_t *object = json_object();
    if (object && !encode_into(object, fields, body)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *encode_event(const struct event_description *description, const struct event *event) {
    json_t *object = json_object();
    if (!object || json_object_set_new_nocheck(object, "event", json_string(description->name)) != 0)
        goto failed;
    if (event->seq > 0 && json_object_set_new_nocheck(object, "seq", json_integer(event->seq)) != 0)
        goto failed;
    if (isfinite(event->time) && json_object_set_new_nocheck(object, "time", json_real(event->time)) != 0)
        goto failed;
    if (!encode_into(object, description->fields, event_body_const(event)))
        goto failed;
    return object;
failed:
    json_decref(object);
    return NULL;
}

enum status event_encode(const struct event *event, struct arena *arena, char **line, size_t *length) {
    const struct event_description *description = event_describe(event->kind);
    if (!description)
        return status_fail(STATUS_INTERNAL, "an event of kind %d can't be written", (int)event->kind);
    json_t *object = encode_event(description, event);
    if (!object)
        return status_fail(STATUS_NO_MEMORY, "no memory to write a \"%s\" event", description->name);
    char buffer[WIRE_LINE_MAX];
    size_t size = json_dumpb(object, buffer, sizeof buffer, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(object);
    if (size == 0)
        return status_fail(STATUS_NO_MEMORY, "no memory to write a \"%s\" event", description->name);
    if (size + 1 > WIRE_LINE_MAX)
        return status_fail(STATUS_BAD_INPUT, "a \"%s\" event takes %zu bytes, a line has at most %d",
                           description->name, size + 1, WIRE_LINE_MAX);
    char *out = arena_alloc(arena, size + 2);
    if (!out)
        return status_fail(STATUS_NO_MEMORY, "no memory to write a \"%s\" event", description->name);
    memcpy(out, buffer, size);
    out[size] = '\n';
    *line = out;
    *length = size + 1;
    return STATUS_OK;
}

/* ---- decoding */

static enum status wrong_type(const struct field *f, const char *expected) {
    return status_fail(STATUS_BAD_INPUT, "field \"%s\": expected %s", f->name, expected);
}

static enum status no_memory(void) {
    return status_fail(STATUS_NO_MEMORY, "no memory to read an event");
}

/* Whether it is a whole number of a size that is taken. */
static bool decode_integer(const json_t *json, int64_t *out) {
    if (!json_is_integer(json))
        return false;
    *out = json_integer_value(json);
    return *out >= -WIRE_INT_MAX && *out <= WIRE_INT_MAX;
}

static enum status decode_fields(const struct field *fields, const json_t *object, struct arena *arena,
                                 void *body);

static enum status decode_list(const struct field *f, const json_t *json, struct arena *arena, void *body) {
    if (!json_is_array(json))
        return wrong_type(f, "a list");
    size_t count = json_array_size(json), size = f->type == FIELD_LIST ? f->size : sizeof(int64_t);
    if (count == 0)
        return STATUS_OK;
    char *elements = arena_array(arena, count, size);
    if (!elements)
        return no_memory();
    for (size_t i = 0; i < count; i++) {
        const json_t *element = json_array_get(json, i);
        if (f->type == FIELD_LIST) {
            if (!json_is_object(element))
                return wrong_type(f, "a list of objects");
            fields_clear(f->inner, elements + i * size);
            STATUS_TRY(decode_fields(f->inner, element, arena, elements + i * size));
        } else {
            if (!decode_integer(element, &((int64_t *)(void *)elements)[i]))
                return wrong_type(f, "a list of whole numbers up to 2^53");
        }
    }
    *(void **)(void *)((char *)body + f->offset) = elements;
    *(int64_t *)(void *)((char *)body + f->count_offset) = (int64_t)count;
    return STATUS_OK;
}

static enum status decode_field(const struct field *f, const json_t *json, struct arena *arena, void *body) {
    void *place = (char *)body + f->offset;
    switch (f->type) {
    case FIELD_TEXT:
        if (!json_is_string(json))
            return wrong_type(f, "a text");
        if (!(*(const char **)place = arena_string(arena, json_string_value(json))))
            return no_memory();
        return STATUS_OK;
    case FIELD_INTEGER:
        return decode_integer(json, place) ? STATUS_OK : wrong_type(f, "a whole number up to 2^53");
    case FIELD_FLOAT:
    case FIELD_DOUBLE:
        if (!json_is_number(json))
            return wrong_type(f, "a number");
        *(double *)place = json_number_value(json);
        return STATUS_OK;
    case FIELD_FLAG:
        if (!json_is_boolean(json))
            return wrong_type(f, "true or false");
        *(bool *)place = json_is_true(json);
        return STATUS_OK;
    case FIELD_GROUP:
        if (!json_is_object(json))
            return wrong_type(f, "an object");
        return decode_fields(f->inner, json, arena, body);
    case FIELD_LIST:
    case FIELD_INTEGERS:
        return decode_list(f, json, arena, body);
    case FIELD_SHAPE:
        if (!json_is_array(json) || json_array_size(json) != 3)
            return wrong_type(f, "three whole numbers");
        for (size_t i = 0; i < 3; i++)
            if (!decode_integer(json_array_get(json, i), &((int64_t *)place)[i]))
                return wrong_type(f, "three whole numbers up to 2^53");
        return STATUS_OK;
    }
    return STATUS_OK;
}

static enum status decode_fields(const struct field *fields, const json_t *object, struct arena *arena,
                                 void *body) {
    for (const struct field *f = fields; f->name; f++) {
        const json_t *json = json_object_get(object, f->name);
        if (!json)
            continue;
        if (!json_is_null(json))
            STATUS_TRY(decode_field(f, json, arena, body));
        else if (f->type == FIELD_FLOAT || f->type == FIELD_DOUBLE)
            *(double *)(void *)((char *)body + f->offset) = (double)NAN; /* known, and not finite */
    }
    return STATUS_OK;
}

static enum status decode_object(const json_t *object, struct arena *arena, struct event *out) {
    const json_t *name = json_object_get(object, "event"), *seq = json_object_get(object, "seq"),
                 *time = json_object_get(object, "time");
    if (!json_is_string(name))
        return status_fail(STATUS_BAD_INPUT, "a line without \"event\"");
    struct event event = event_new(event_kind_find(json_string_value(name)));
    if (seq && (!decode_integer(seq, &event.seq) || event.seq < 1))
        return status_fail(STATUS_BAD_INPUT, "field \"seq\": expected a whole number from 1 to %" PRId64,
                           WIRE_INT_MAX);
    if (time && !json_is_number(time))
        return status_fail(STATUS_BAD_INPUT, "field \"time\": expected a number");
    event.time = time ? json_number_value(time) : wire_unknown();
    const struct event_description *description = event_describe(event.kind);
    if (description)
        STATUS_TRY(decode_fields(description->fields, object, arena, event_body(&event)));
    *out = event;
    return STATUS_OK;
}

enum status event_decode_json(const char *line, size_t length, struct arena *arena, struct event *out) {
    if (length > WIRE_LINE_MAX)
        return status_fail(STATUS_BAD_INPUT, "a line of %zu bytes; a line has at most %d", length,
                           WIRE_LINE_MAX);
    json_error_t error;
    json_t *object = json_loadb(line, length, 0, &error);
    if (!object)
        return status_fail(STATUS_BAD_INPUT, "not a JSON object: %s", error.text);
    enum status status = json_is_object(object) ? decode_object(object, arena, out)
                                                : status_fail(STATUS_BAD_INPUT, "not a JSON object");
    json_decref(object);
    return status;
}

enum status event_decode(const char *line, size_t length, struct arena *arena, struct event *out) {
    return event_decode_quick(line, length, arena, out) ? STATUS_OK
                                                        : event_decode_json(line, length, arena, out);
}
