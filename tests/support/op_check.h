/* Compare a device with the plain C device: the same operations, images and gradients through both. Used by
 * the tests of every device; each call fails the test (cmocka) with a sentence when something is wrong. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_OP_CHECK_H
#define TOWERSCOPE_TESTS_SUPPORT_OP_CHECK_H

#include "kernels/op.h"

#include <stdint.h>

struct op_check {
    const char *device;   /* as device_open() names it */
    const char *isa;      /* instruction set, or NULL */
    const char *force;    /* implementation, or NULL */
    int threads;          /* 0: one per processor */
    const struct op *ops; /* at most 32, each reading the one before */
    int count, images;
    double
        tolerance; /* of the norm of a tensor; a single value may be off by ten times that of the largest */
    bool no_input_gradient; /* as for a network's first layer */
    bool quantised;     /* few different input values, so that pools see many ties and ReLUs exact zeros: for
                         * operations whose results are exact (pool, ReLU), since there is no margin then */
    float input_scale;  /* of the inputs' standard normal values; 0: 1 */
    bool deterministic; /* of a GPU */
    const char *kept;   /* of a GPU: device_options.kept */
    uint64_t seed;      /* of inputs, parameters and gradients */
    const char
        *precision; /* of a GPU, or NULL: f32. With bf16 all values are such that a convolution's or
                     * dense layer's sums are exact: what is compared are the roundings of the results */
};

/* Forward and backward against ref64: values and gradients at the borders of the device's groups, parameter
 * gradients, nothing written outside a buffer, inputs and parameters left as they were, nothing read that was
 * not written or that plan_info says is not read, forward alone as in evaluation the same bytes.
 * Unless `quantised`, each image is drawn so often that no ReLU and no pool of it hangs on the last bits.
 * Returns STATUS_UNSUPPORTED, without failing the test, when the device or the forced implementation cannot
 * do it here (status_text() says why). */
enum status op_check(const struct op_check *check);

/* What is not a number in the first image's input is none in its output, and nothing of it in the others'. */
enum status op_check_not_a_number(const struct op_check *check);

/* An image's forward bytes are the same whatever shard it is in: check->images of them at once against shards
 * of 2, 3, 7, 16, ... images run at the same time through each(). */
enum status op_check_shards(const struct op_check *check);

#endif
