/* What was found the quickest of cuDNN's engines, kept in a file from run to run: measuring takes a second or
 * more.
 *
 * A line of the file is a choice: what it was measured for (cuDNN's version, the GPU, the convolution, pass
 * and precision), the engine with its knobs, and a check of both. Runs append to it at the same time, a line
 * by one write. A line that is damaged, or for something else, is passed over; cuDNN is asked whether it
 * still builds the engine. */
#ifndef TOWERSCOPE_KERNELS_CUDA_KEPT_H
#define TOWERSCOPE_KERNELS_CUDA_KEPT_H

#include "kernels/cuda/engines.h"

struct kept;

/* Read the file, which need not be there. `gpu`: the kind of GPU, without spaces. NULL: without memory,
 * nothing is kept. Free with kept_close (NULL is fine). */
struct kept *kept_open(const char *path, const char *gpu);
void kept_close(struct kept *kept);

/* An earlier choice for this very request; false: there is none. kept NULL: none. */
bool kept_find(const struct kept *kept, const struct conv_request *request, enum conv_pass pass, bool fused,
               struct engine_choice *out);

/* Keep a choice. What can't be written is a matter of the next run's first seconds: nothing fails. */
void kept_add(const struct kept *kept, const struct conv_request *request, enum conv_pass pass, bool fused,
              const struct engine_choice *choice);

#endif
