/* Where things that live at different times lie in one piece of memory. */
#ifndef TOWERSCOPE_ENGINE_MODEL_LAYOUT_H
#define TOWERSCOPE_ENGINE_MODEL_LAYOUT_H

#include "kernels/status.h"

#include <stddef.h>

#define LAYOUT_ALIGNMENT 64 /* bytes: a cache line, and a vector of AVX-512 */

struct piece {
    size_t bytes;
    int first, last; /* the moments it is in use, both inclusive */
    size_t offset;   /* out: a multiple of LAYOUT_ALIGNMENT */
};

/* Place the pieces so that two that are in use at the same moment never overlap, the largest first, each as
 * low as it can lie. *total: bytes of memory needed, a multiple of LAYOUT_ALIGNMENT. STATUS_NO_MEMORY: also
 * when the sum does not fit a size_t. */
enum status layout_place(struct piece *pieces, int count, size_t *total);

#endif
