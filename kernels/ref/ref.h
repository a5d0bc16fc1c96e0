/* The plain C device: the readable version of every operation, the oracle of the tests, the last fallback.
 * Its sources are built twice, for float and for double. */
#ifndef TOWERSCOPE_KERNELS_REF_REF_H
#define TOWERSCOPE_KERNELS_REF_REF_H

#include "kernels/device.h"

extern const struct device_ops ref_device_ops;   /* "ref": real is float */
extern const struct device_ops ref64_device_ops; /* "ref64": real is double */

#endif
