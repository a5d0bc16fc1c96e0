/* Lines of the stream on their way: from the threads that emit to the file and to every client's queue. */
#ifndef TOWERSCOPE_ENGINE_HUB_LINE_H
#define TOWERSCOPE_ENGINE_HUB_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/wire/event.h"

struct line {
    struct line *next; /* in a list of lines */
    int references;    /* counted by the hub thread alone */
    enum event_kind kind;
    int64_t seq; /* 0: live only */
    size_t length;
    char text[];
};

/* A line with one reference; NULL: no memory. */
struct line *line_new(enum event_kind kind, int64_t seq, const char *text, size_t length);

/* A line of an event as it is, without number or time of its own; NULL: no memory, or too long. */
struct line *line_encode(const struct event *event);

/* One reference more, and one less: with the last the line is freed. NULL is fine to drop. */
struct line *line_keep(struct line *line);
void line_drop(struct line *line);

/* A first-in, first-out list. */
struct line_list {
    struct line *first, **end;
    size_t bytes;
};

/* Make it empty: before anything else. */
void line_list_open(struct line_list *list);

/* Put a line at the end; its reference goes with it. Take the first one, with that reference; NULL: empty. */
void line_list_add(struct line_list *list, struct line *line);
struct line *line_list_take(struct line_list *list);

/* Everything from one list behind what is in the other. */
void line_list_move(struct line_list *to, struct line_list *from);

#endif
