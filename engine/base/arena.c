#include "engine/base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
    struct arena_block *next;
    size_t size;
    _Alignas(max_align_t) unsigned char bytes[];
};

enum { BLOCK = 8192, ALIGN = _Alignof(max_align_t) };

void *arena_alloc(struct arena *arena, size_t size) {
    if (size > (size_t)-1 - BLOCK)
        return NULL;
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (!arena->first || arena->first->size - arena->used < size) {
        size_t bytes = size > BLOCK ? size : BLOCK;
        struct arena_block *block = malloc(sizeof *block + bytes);
        if (!block)
            return NULL;
        block->next = arena->first;
        block->size = bytes;
        arena->first = block;
        arena->used = 0;
    }
    void *piece = arena->first->bytes + arena->used;
    arena->used += size;
    return memset(piece, 0, size);
}

void *arena_array(struct arena *arena, size_t count, size_t size) {
    if (size != 0 && count > (size_t)-1 / size)
        return NULL;
    return arena_alloc(arena, count * size);
}

char *arena_string(struct arena *arena, const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = arena_alloc(arena, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

char *arena_format(struct arena *arena, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = length < 0 ? NULL : arena_alloc(arena, (size_t)length + 1);
    if (!text)
        return NULL;
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

void arena_reset(struct arena *arena) {
    if (!arena->first)
        return;
    struct arena_block *rest = arena->first->next;
    while (rest) {
        struct arena_block *next = rest->next;
        free(rest);
        rest = next;
    }
    arena->first->next = NULL;
    arena->used = 0;
}

void arena_free(struct arena *arena) {
    arena_reset(arena);
    free(arena->first);
    *arena = (struct arena){0};
}
