#include "engine/wire/protocol.h"

#include <string.h>

#include "engine/wire/fields.h"

static const char *type_words(const struct field *f) {
    switch (f->type) {
    case FIELD_TEXT:
        return "text";
    case FIELD_INTEGER:
        return "whole number";
    case FIELD_FLOAT:
        return "number (float32)";
    case FIELD_DOUBLE:
        return "number";
    case FIELD_FLAG:
        return "true or false";
    case FIELD_GROUP:
        return "object";
    case FIELD_LIST:
        return "list of objects";
    case FIELD_INTEGERS:
        return "list of whole numbers";
    case FIELD_SHAPE:
        return "three whole numbers";
    }
    return "";
}

static void write_fields(FILE *file, const struct field *fields, const char *prefix) {
    for (const struct field *f = fields; f->name; f++) {
        char depends[24];
        snprintf(depends, sizeof depends, "%s%s%s", f->flags & FIELD_WALL_CLOCK ? " clock" : "",
                 f->flags & FIELD_MACHINE ? " machine" : "", f->flags & FIELD_NAME ? " name" : "");
        fprintf(file, "| `%s%s` | %s |%s |%s%s |\n", prefix, f->name, type_words(f), depends,
                *f->sentence ? " " : "", f->sentence);
        if (f->inner) {
            char inner[80];
            snprintf(inner, sizeof inner, "%s%s%s.", prefix, f->name, f->type == FIELD_LIST ? "[]" : "");
            write_fields(file, f->inner, inner);
        }
    }
}

void protocol_write(FILE *file) {
    for (int kind = EVENT_NONE + 1; kind < EVENT_KINDS; kind++) {
        const struct event_description *event = event_describe((enum event_kind)kind);
        fprintf(file, "%s### %s%s\n\n%s\n\n| field | type | depends on | |\n|---|---|---|---|\n",
                kind > 1 ? "\n" : "", event->name, event->live ? " (live only)" : "", event->sentence);
        write_fields(file, event->fields, "");
    }
}
