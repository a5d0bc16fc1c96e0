/* The one table of fields: what each event holds, how it is written, and what it depends on.
 *
 * Encoder, decoder, copier, PROTOCOL.md and `towerscope diff` walk this table; to add a field, add it to the
 * structure in event.h and a row to fields.c, and run `towerscope protocol`. */
#ifndef TOWERSCOPE_ENGINE_WIRE_FIELDS_H
#define TOWERSCOPE_ENGINE_WIRE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/wire/event.h"

enum field_type {
    FIELD_TEXT,     /* const char *; NULL: unknown */
    FIELD_INTEGER,  /* int64_t */
    FIELD_FLOAT,    /* double that holds a float32: written with 9 significant digits */
    FIELD_DOUBLE,   /* double, written with 15 significant digits */
    FIELD_FLAG,     /* bool; always written */
    FIELD_GROUP,    /* an object whose fields are members of the same structure */
    FIELD_LIST,     /* array of structures: int64_t count, pointer */
    FIELD_INTEGERS, /* array of int64_t: int64_t count, pointer */
    FIELD_SHAPE,    /* int64_t[3] in place; the first unknown: all are */
};

enum field_flag { /* what a value depends on beside seed, settings and commands; `diff` leaves these out */
                  FIELD_WALL_CLOCK = 1,
                  FIELD_MACHINE = 2, /* its devices, its users, its terminals */
                  FIELD_NAME = 4,    /* the run's name or path */
};

struct field {
    const char *name; /* NULL ends a table */
    enum field_type type;
    unsigned flags;
    size_t offset, count_offset;
    const struct field *inner; /* of GROUP and LIST */
    size_t size;               /* of a LIST's structure */
    const char *sentence;      /* for PROTOCOL.md */
};

struct event_description {
    const char *name;
    bool live;                  /* never in the record */
    const struct field *fields; /* offsets from the start of the event's own structure */
    const char *sentence;
};

/* The description of a kind; NULL for EVENT_NONE and numbers that are no kind. */
const struct event_description *event_describe(enum event_kind kind);

/* The kind of that name; EVENT_NONE: not known. */
enum event_kind event_kind_find(const char *name);

/* Where an event's own structure starts. */
void *event_body(struct event *event);
const void *event_body_const(const struct event *event);

/* The numbers of a structure become unknown, its texts and lists empty. */
void fields_clear(const struct field *fields, void *body);

#endif
