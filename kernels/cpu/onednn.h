/* Implementations by oneDNN's C interface (2.6), NHWC at every boundary. */
#ifndef TOWERSCOPE_KERNELS_CPU_ONEDNN_H
#define TOWERSCOPE_KERNELS_CPU_ONEDNN_H

#include "kernels/status.h"

struct onednn; /* the library's engine: one per device */

enum status onednn_open(struct onednn **out);
void onednn_close(struct onednn *onednn); /* NULL is fine */

#endif
