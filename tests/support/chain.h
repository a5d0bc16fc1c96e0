/* Operations that follow one another, planned on a device for a number of images, with every buffer guarded:
 * what engine/model does with a network, laid open for tests. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_CHAIN_H
#define TOWERSCOPE_TESTS_SUPPORT_CHAIN_H

#include "tests/support/guarded.h"

enum { CHAIN_MAX = 32 };

struct chain_group { /* operations that one plan does */
    struct plan *plan;
    const struct plan_info *info;
    int first, taken;
    struct guarded saved, prepared;
};

struct chain {
    struct device_handle device;
    struct op ops[CHAIN_MAX];
    int count, images, groups;
    bool training, input_gradient;
    struct chain_group group[CHAIN_MAX];
    struct guarded value[CHAIN_MAX + 1];    /* [0] the input, [g + 1] the output of group g */
    struct guarded gradient[CHAIN_MAX + 1]; /* of value[]; [0] empty when the input's is not wanted */
    struct guarded parameter[CHAIN_MAX], parameter_gradient[CHAIN_MAX]; /* by operation */
    struct guarded scratch;
};

/* Plan as a whole network, so that the last operation gives its logits, and allocate; everything written by
 * the device is poisoned. force as in plan_request. Failures are returned, so that a test may skip an
 * implementation that a device lacks. */
enum status chain_open(struct chain *chain, struct device_handle device, const struct op *ops, int count,
                       int images, bool training, bool input_gradient, const char *force);
void chain_close(struct chain *chain);

/* Shape of an image in value[boundary]. */
struct shape chain_shape(const struct chain *chain, int boundary);

/* Prepare, forward, backward on a stream; from any thread. */
enum status chain_prepare(struct chain *chain, struct stream *stream);
enum status chain_forward(struct chain *chain, struct stream *stream);
enum status chain_backward(struct chain *chain, struct stream *stream);

/* Run one of these through the device's each(), with its scratch memory poisoned before and all guards
 * checked after; fails the test, naming `what`, when it fails. chain_run_all: several chains of one device
 * side by side. */
typedef enum status chain_step(struct chain *chain, struct stream *stream);
void chain_run(struct chain *chain, chain_step *step, const char *what);
void chain_run_all(struct chain *chains, int count, chain_step *step, const char *what);

/* Between forward and backward: poison the values that no plan says it reads. */
void chain_forget_unread(struct chain *chain);

/* Fail the test when anything was written outside its buffer. */
void chain_check_guards(const struct chain *chain, const char *when);

#endif
