/* A model planned on a device for a number of images: its groups of operations, the memory they need in one
 * arena, and forward and backward over it. One net serves one shard size and every tower with that size: the
 * memory (struct net_memory) is each tower's own. */
#ifndef TOWERSCOPE_ENGINE_MODEL_NET_H
#define TOWERSCOPE_ENGINE_MODEL_NET_H

#include "engine/model/model.h"

struct net;

struct net_options {
    int images;
    int lanes;         /* to cut the images into, see net_lanes_for(); 0 is 1 */
    bool training;     /* false: forward only (evaluation) */
    const char *force; /* implementation to force where the device has it, or NULL */
};

/* Sizes, known before anything is allocated. */
struct net_sizes {
    size_t arena_bytes; /* a tower's: activations, gradients of activations, saved, input, logits, losses */
    size_t gradient_bytes; /* a tower's flat gradient; behind it what the other lanes make of theirs */
    size_t scratch_bytes;  /* a worker's */
    size_t prepared_bytes; /* once for all towers */
};

/* One group of operations done by one plan, for `doctor --plan` and the phase tables. A group that is only a
 * part of a layer is called by it: "conv1.bias". */
struct net_group {
    const struct plan_info *info;
    int first_op, op_count;
    const char *name; /* "conv1+pool1+norm1" */
    double flops;     /* forward, an image */
};

/* The model and the device must outlive the net. STATUS_UNSUPPORTED: an operation no implementation takes;
 * STATUS_NO_MEMORY: also when a size can't be counted. Free with net_free (NULL is fine). */
enum status net_plan(const struct model *model, struct device_handle device,
                     const struct net_options *options, struct net **out);
void net_free(struct net *net);
struct net_sizes net_sizes(const struct net *net);
/* How many groups, and the net's own array of them in *groups. */
int net_groups(const struct net *net, const struct net_group **groups);

/* Lanes the images are cut into: parts that the threads of a stream take through all groups, each by itself.
 * At most as many as asked for, of 2 images or more; 1 where the device has no lanes. */
int net_lanes(const struct net *net);

/* How many threads a stream of the device has when `towers` towers run at once: 1 where it has no lanes. */
int net_lanes_for(struct device_handle device, int towers);

/* Whether one prepared memory serves both nets: the same model, device, groups and implementations. When not,
 * each has its own. */
bool net_shares_prepared(const struct net *a, const struct net *b);

/* A tower's memory, made by buffer_new (so that the padding of the gradient is 0): of the largest sizes of
 * the nets it will serve, which need not be those for the most images. One that is too small is
 * STATUS_INTERNAL. */
struct net_memory {
    struct span arena;    /* net_sizes.arena_bytes */
    struct span gradient; /* net_sizes.gradient_bytes: flat, as the model's parameters */
};

/* Where things lie in a tower's arena. Logits, losses and probabilities stay until the next step's are made;
 * the input is written before NET_FORWARD and is gone afterwards. */
struct span net_input(const struct net *net, const struct net_memory *memory);         /* [images][h][w][c] */
struct span net_logits(const struct net *net, const struct net_memory *memory);        /* [images][classes] */
struct span net_losses(const struct net *net, const struct net_memory *memory);        /* [images] */
struct span net_probabilities(const struct net *net, const struct net_memory *memory); /* [images][classes] */
/* Output of a layer between NET_FORWARD and NET_BACKWARD, of one lane's images, when it is still there (it
 * may be fused into a larger group, or backward does not read it): {NULL, 0} when not. For tests and the
 * share of zero activations. */
struct span net_activation(const struct net *net, const struct net_memory *memory, int layer, int lane);

/* How many values net_activation() of that layer and lane has. */
size_t net_activation_count(const struct net *net, int layer, int lane);

/* Derive what the plans want from the parameters (transformed weights); once after each update, before any
 * tower's forward. `prepared`: net_sizes.prepared_bytes, shared by all nets of this model and device. */
enum status net_prepare(const struct net *net, struct stream *stream, struct span parameters,
                        struct span prepared);

/* What a pass reads beside the tower's memory. One that is too small is STATUS_INTERNAL. */
struct net_operands {
    struct span parameters; /* flat, flat_count of the model */
    struct span prepared;   /* from them, by net_prepare() */
    struct span scratch;    /* the worker's: net_sizes.scratch_bytes */
    const int32_t *labels;  /* [images], of the loss; host memory that stays until the stream is waited for */
};

/* The parts of a pass, in their order; each reads what the ones before it have left in the tower's memory. */
enum net_part {
    NET_FORWARD = 1, /* fills logits */
    NET_LOSS = 2,    /* softmax cross-entropy of the logits: losses, probabilities, and (training) the logits'
                        gradient of the mean over the images */
    NET_BACKWARD = 4, /* gradient of the tower's mean cross-entropy into memory->gradient: every tensor is
                         written, the padding between them is left alone */
    NET_STEP = NET_FORWARD | NET_LOSS | NET_BACKWARD,
    NET_AGAIN = 8 /* the same pass on the same memory comes again and again: the device may keep what it makes
                     of it (device_ops.repeat) */
};

/* How long the parts of a pass took, in seconds (to queue, where the device is asynchronous): the first
 * lane's forward and loss, and all that came after. 0: not one of its parts, or the device kept it. */
struct net_seconds {
    double forward, loss, backward;
};

/* Take the images through some parts (enum net_part, or-ed); a lane goes through all of them without waiting
 * for another. In one call or in several, it is the same bytes. *seconds: NULL where nobody asks.
 * NET_BACKWARD of a net for evaluation is STATUS_INTERNAL. */
enum status net_pass(const struct net *net, struct stream *stream, const struct net_memory *memory,
                     const struct net_operands *operands, unsigned parts, struct net_seconds *seconds);

#endif
