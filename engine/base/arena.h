/* Memory that is freed all at once: what a decoded event, a parsed file or a frame of the screen lives in. */
#ifndef TOWERSCOPE_ENGINE_BASE_ARENA_H
#define TOWERSCOPE_ENGINE_BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena { /* all zero is an empty arena, ready to use */
    struct arena_block *first;
    size_t used;
};

/* Zeroed memory, aligned for any object; NULL when there is none left. size 0 gives a valid pointer. */
void *arena_alloc(struct arena *arena, size_t size);

/* Zeroed memory for `count` things of `size`; NULL also when the product overflows. */
void *arena_array(struct arena *arena, size_t count, size_t size);

/* A copy of a string; NULL when there is no memory. */
char *arena_string(struct arena *arena, const char *text);

/* Formatted text; NULL when there is no memory. */
char *arena_format(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Forget everything, keep one block for the next use. */
void arena_reset(struct arena *arena);

/* Free everything; the arena is empty and usable again. */
void arena_free(struct arena *arena);

#endif
