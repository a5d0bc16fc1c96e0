/* A model planned on a device for a number of images: its groups of operations, the memory they need in one
 * arena, and forward and backward over it. One net serves one shard size and every tower with that size: the
 * memory (struct net_memory) is each tower's own. */
#ifndef TOWERSCOPE_ENGINE_MODEL_NET_H
#define TOWERSCOPE_ENGINE_MODEL_NET_H

#include "engine/model/model.h"

struct net;

struct net_options {
    int images;
    bool training;     /* false: forward only (evaluation) */
    const char *force; /* implementation to force, or NULL */
};

/* Sizes, known before anything is allocated. */
struct net_sizes {
    size_t arena_bytes; /* a tower's: activations, gradients of activations, saved, input, logits, losses */
    size_t gradient_bytes; /* a tower's flat gradient */
    size_t scratch_bytes;  /* a worker's */
    size_t prepared_bytes; /* once for all towers */
};

/* One group of operations done by one plan, for `doctor --plan` and the phase tables. */
struct net_group {
    const struct plan_info *info;
    int first_op, op_count;
    const char *name; /* "conv1+pool1+norm1" */
    double flops;     /* forward, an image */
};

/* The model and the device must outlive the net. STATUS_UNSUPPORTED: an operation no implementation takes. */
enum status net_plan(const struct model *model, struct device_handle device,
                     const struct net_options *options, struct net **out);
void net_free(struct net *net);
struct net_sizes net_sizes(const struct net *net);
int net_groups(const struct net *net, const struct net_group **groups);

/* A tower's memory: made for the largest net it will serve. */
struct net_memory {
    struct span arena;    /* net_sizes.arena_bytes */
    struct span gradient; /* flat */
};

/* Where things lie in a tower's arena. */
struct span net_input(const struct net *net, const struct net_memory *memory);         /* [images][h][w][c] */
struct span net_logits(const struct net *net, const struct net_memory *memory);        /* [images][classes] */
struct span net_losses(const struct net *net, const struct net_memory *memory);        /* [images] */
struct span net_probabilities(const struct net *net, const struct net_memory *memory); /* [images][classes] */
/* Output of a layer after forward, when it is still there (the planner may have fused or reused it):
 * {NULL, 0} when not. For tests and the share of zero activations. */
struct span net_activation(const struct net *net, const struct net_memory *memory, int layer);

/* Derive what the plans want from the parameters (transformed weights); once after each update, before any
 * tower's forward. `prepared`: net_sizes.prepared_bytes, shared by all nets of this model and device. */
enum status net_prepare(const struct net *net, struct stream *stream, struct span parameters,
                        struct span prepared);

/* parameters: flat. scratch: the worker's. Fills logits. */
enum status net_forward(const struct net *net, struct stream *stream, const struct net_memory *memory,
                        struct span parameters, struct span prepared, struct span scratch);

/* Softmax cross-entropy of the logits: losses, probabilities, and (training) the logits' gradient of the mean
 * over the images. labels: host memory. */
enum status net_loss(const struct net *net, struct stream *stream, const struct net_memory *memory,
                     const int32_t *labels);

/* Gradient of the tower's mean cross-entropy into memory->gradient (every element, padding 0). */
enum status net_backward(const struct net *net, struct stream *stream, const struct net_memory *memory,
                         struct span parameters, struct span prepared, struct span scratch);

#endif
