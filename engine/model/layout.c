#include "engine/model/layout.h"

#include <stdint.h>
#include <stdlib.h>

static size_t aligned(size_t bytes) {
    return (bytes + LAYOUT_ALIGNMENT - 1) / LAYOUT_ALIGNMENT * LAYOUT_ALIGNMENT;
}

static int larger_first(const void *a, const void *b) {
    const struct piece *p = *(struct piece *const *)a, *q = *(struct piece *const *)b;
    if (p->bytes != q->bytes)
        return p->bytes < q->bytes ? 1 : -1;
    return p < q ? -1 : p > q; /* the order of the array, so that the result does not hang on qsort */
}

/* Put `order[count]` into the list of those placed, which is kept in the order of offsets. */
static void place(struct piece **order, int count) {
    struct piece *piece = order[count];
    size_t offset = 0;
    int at = 0;
    for (int i = 0; i < count; i++) {
        const struct piece *other = order[i];
        if (other->first > piece->last || other->last < piece->first)
            continue;
        if (other->offset >= offset + piece->bytes)
            break; /* it fits below, and all that follow lie higher still */
        if (other->offset + aligned(other->bytes) > offset)
            offset = other->offset + aligned(other->bytes);
    }
    piece->offset = offset;
    while (at < count && order[at]->offset <= offset)
        at++;
    for (int i = count; i > at; i--)
        order[i] = order[i - 1];
    order[at] = piece;
}

enum status layout_place(struct piece *pieces, int count, size_t *total) {
    *total = 0;
    if (count < 1)
        return STATUS_OK;
    size_t sum = 0; /* of all, aligned: no offset can be larger */
    for (int i = 0; i < count; i++)
        if (pieces[i].bytes > SIZE_MAX - LAYOUT_ALIGNMENT ||
            __builtin_add_overflow(sum, aligned(pieces[i].bytes), &sum))
            return status_fail(STATUS_NO_MEMORY, "more bytes of memory than can be counted are needed");
    struct piece **order = malloc((size_t)count * sizeof *order);
    if (!order)
        return status_fail(STATUS_NO_MEMORY, "no memory to plan %d buffers", count);
    for (int i = 0; i < count; i++)
        order[i] = &pieces[i];
    qsort(order, (size_t)count, sizeof *order, larger_first);
    for (int i = 0; i < count; i++) {
        place(order, i);
    }
    for (int i = 0; i < count; i++) {
        size_t end = pieces[i].offset + aligned(pieces[i].bytes);
        if (end > *total)
            *total = end;
    }
    free(order);
    return STATUS_OK;
}
