#include "tests/support/make_op.h"

struct op make_conv(struct shape in, int channels_out, int kernel, int stride) {
    struct op op = {
        .kind = OP_CONV, .in = in, .window = {.kernel_h = kernel, .kernel_w = kernel, .stride = stride}};
    op.out = op_same_padding(in, channels_out, &op.window);
    return op;
}

struct op make_max_pool(struct shape in, int kernel, int stride) {
    struct op op = make_conv(in, in.c, kernel, stride);
    op.kind = OP_MAX_POOL;
    return op;
}

struct op make_bias(struct shape in) {
    return (struct op){.kind = OP_BIAS, .in = in, .out = in};
}

struct op make_relu(struct shape in) {
    return (struct op){.kind = OP_RELU, .in = in, .out = in};
}

struct op make_lrn(struct shape in, int radius, double bias, double alpha, double beta) {
    return (struct op){.kind = OP_LRN,
                       .in = in,
                       .out = in,
                       .lrn = {.radius = radius, .bias = bias, .alpha = alpha, .beta = beta}};
}

struct op make_dense(struct shape in, int units) {
    return (struct op){.kind = OP_DENSE, .in = in, .out = {1, 1, units}};
}
