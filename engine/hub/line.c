#include "engine/hub/line.h"

#include <stdlib.h>
#include <string.h>

#include "engine/wire/codec.h"

struct line *line_new(enum event_kind kind, int64_t seq, const char *text, size_t length) {
    struct line *line = malloc(sizeof *line + length);
    if (!line)
        return NULL;
    *line = (struct line){NULL, 1, kind, seq, length};
    memcpy(line->text, text, length);
    return line;
}

struct line *line_encode(const struct event *event) {
    struct arena arena = {0};
    char *text;
    size_t length;
    struct line *line = NULL;
    if (event_encode(event, &arena, &text, &length) == STATUS_OK)
        line = line_new(event->kind, event->seq, text, length);
    arena_free(&arena);
    return line;
}

struct line *line_keep(struct line *line) {
    line->references++;
    return line;
}

void line_drop(struct line *line) {
    if (line && --line->references == 0)
        free(line);
}

void line_list_open(struct line_list *list) {
    list->first = NULL;
    list->end = &list->first;
    list->bytes = 0;
}

void line_list_add(struct line_list *list, struct line *line) {
    line->next = NULL;
    *list->end = line;
    list->end = &line->next;
    list->bytes += line->length;
}

struct line *line_list_take(struct line_list *list) {
    struct line *line = list->first;
    if (!line)
        return NULL;
    list->first = line->next;
    list->bytes -= line->length;
    if (!list->first)
        list->end = &list->first;
    return line;
}

void line_list_move(struct line_list *to, struct line_list *from) {
    if (!from->first)
        return;
    *to->end = from->first;
    to->end = from->end;
    to->bytes += from->bytes;
    line_list_open(from);
}
