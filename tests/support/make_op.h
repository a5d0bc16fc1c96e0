/* Descriptions of operations for tests; paddings by the SAME rule. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_MAKE_OP_H
#define TOWERSCOPE_TESTS_SUPPORT_MAKE_OP_H

#include "kernels/op.h"

struct op make_conv(struct shape in, int channels_out, int kernel, int stride);
struct op make_bias(struct shape in);
struct op make_relu(struct shape in);
struct op make_max_pool(struct shape in, int kernel, int stride);
struct op make_lrn(struct shape in, int radius, double bias, double alpha, double beta);
struct op make_dense(struct shape in, int units);

#endif
