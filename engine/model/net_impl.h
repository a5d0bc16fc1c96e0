/* What net_plan.c makes and net.c runs. */
#ifndef TOWERSCOPE_ENGINE_MODEL_NET_IMPL_H
#define TOWERSCOPE_ENGINE_MODEL_NET_IMPL_H

#include "engine/base/arena.h"
#include "engine/model/net.h"

/* A part of a tower's arena. */
struct place {
    size_t offset, bytes;
    int first, last; /* the moments it is in use: see net_plan.c */
};

struct group {
    struct plan *plan;
    struct plan_info info;
    int first_op;
    struct place y, dx, saved; /* the last group has no y, its output are the logits; the first has no dx */
    size_t prepared_offset;
};

/* The groups planned for the images of a lane; lanes with as many images share them. */
struct lane_plan {
    int images;
    struct group *groups; /* [net->group_count] */
    int planned;          /* of these */
    size_t bytes;         /* of a lane's own memory */
};

struct lane {
    const struct lane_plan *plan;
    int first;     /* image */
    size_t offset; /* of its own memory in the tower's arena */
};

struct net {
    const struct model *model;
    struct device_handle device;
    int images;
    bool training;
    size_t element;            /* bytes of the device's real */
    size_t activation;         /* and of an activation */
    struct arena arena;        /* groups, names */
    struct lane_plan plans[2]; /* for images / lanes, rounded up and down; one where that is the same */
    struct lane *lanes;
    int lane_count;
    struct net_group *described; /* as the first lane's */
    int group_count;
    struct place input, logits, dlogits, losses, probabilities; /* of all lanes' images */
    size_t lane_scratch;                                        /* bytes from a lane's to the next one's */
    /* The first lane's gradient is the tower's; behind it lies what the others made before it was added up:
     * of each, the tensors of the groups that don't leave theirs for later. */
    size_t others_offset, lane_gradient; /* where that begins; bytes from a lane's to the next one's */
    size_t *tensor_offsets;              /* [parameters] of a tensor in it */
    struct net_sizes sizes;
};

/* Whether the group's gradients are made from all lanes' images at once, when the lanes are done. */
static inline bool group_is_later(const struct net *net, const struct group *group) {
    return net->lane_count > 1 && group->info.gradients_later;
}

#endif
