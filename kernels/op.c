#include "kernels/op.h"

#include <math.h>
#include <string.h>

const char *op_kind_name(enum op_kind kind) {
    switch (kind) {
    case OP_CONV:
        return "conv";
    case OP_BIAS:
        return "bias";
    case OP_RELU:
        return "relu";
    case OP_MAX_POOL:
        return "max_pool";
    case OP_LRN:
        return "lrn";
    case OP_DENSE:
        return "dense";
    case OP_KINDS:
        break;
    }
    return "unknown";
}

size_t op_parameter_size(const struct op *op) {
    switch (op->kind) {
    case OP_CONV:
        return (size_t)op->window.kernel_h * (size_t)op->window.kernel_w * (size_t)op->in.c *
               (size_t)op->out.c;
    case OP_BIAS:
        return (size_t)op->out.c;
    case OP_DENSE:
        return shape_size(op->in) * shape_size(op->out);
    default:
        return 0;
    }
}

double op_flops(const struct op *op) {
    switch (op->kind) {
    case OP_CONV:
        return 2.0 * op->out.h * op->out.w * (double)op_parameter_size(op);
    case OP_DENSE:
        return 2.0 * (double)op_parameter_size(op);
    default:
        return 0;
    }
}

/* One direction of SAME: the output size, and the padding before and after. */
static int same(int in, int kernel, int stride, int *before, int *after) {
    int out = (in + stride - 1) / stride;
    int pad = (out - 1) * stride + kernel - in;
    if (pad < 0)
        pad = 0;
    *before = pad / 2;
    *after = pad - pad / 2;
    return out;
}

struct shape op_same_padding(struct shape in, int channels_out, struct op_window *window) {
    struct shape out = {.c = channels_out};
    out.h = same(in.h, window->kernel_h, window->stride, &window->pad_top, &window->pad_bottom);
    out.w = same(in.w, window->kernel_w, window->stride, &window->pad_left, &window->pad_right);
    return out;
}

static bool positive(struct shape s) {
    return s.h > 0 && s.w > 0 && s.c > 0;
}

/* One direction of a window: the output size that follows from the input, 0 when the window makes no sense.
 * Padding smaller than the kernel makes every window touch the image. */
static int windows(int in, int kernel, int stride, int before, int after) {
    if (kernel < 1 || stride < 1 || before < 0 || after < 0 || before >= kernel || after >= kernel ||
        in + before + after < kernel)
        return 0;
    return (in + before + after - kernel) / stride + 1;
}

static bool window_fits(const struct op *op) {
    const struct op_window *w = &op->window;
    return op->out.h == windows(op->in.h, w->kernel_h, w->stride, w->pad_top, w->pad_bottom) &&
           op->out.w == windows(op->in.w, w->kernel_w, w->stride, w->pad_left, w->pad_right);
}

enum status op_verify(const struct op *op) {
    bool good = positive(op->in) && positive(op->out);
    bool same_shape = memcmp(&op->in, &op->out, sizeof op->in) == 0;
    switch (op->kind) {
    case OP_CONV:
        good = good && window_fits(op);
        break;
    case OP_MAX_POOL:
        good = good && window_fits(op) && op->in.c == op->out.c;
        break;
    case OP_BIAS:
    case OP_RELU:
        good = good && same_shape;
        break;
    case OP_LRN:
        good = good && same_shape && op->lrn.radius >= 0 && op->lrn.bias > 0 && op->lrn.alpha >= 0 &&
               isfinite(op->lrn.bias) && isfinite(op->lrn.alpha) && isfinite(op->lrn.beta);
        break;
    case OP_DENSE:
        good = good && op->out.h == 1 && op->out.w == 1;
        break;
    default:
        return status_fail(STATUS_INTERNAL, "there is no operation of kind %d", (int)op->kind);
    }
    if (good)
        return STATUS_OK;
    return status_fail(STATUS_INTERNAL,
                       "the %s operation's shapes or settings do not fit together: input %dx%dx%d, output "
                       "%dx%dx%d",
                       op_kind_name(op->kind), op->in.h, op->in.w, op->in.c, op->out.h, op->out.w, op->out.c);
}
