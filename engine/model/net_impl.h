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
    struct place y, dx, saved; /* y of the last group: the logits. dx of the first: none */
    size_t prepared_offset;
};

struct net {
    const struct model *model;
    struct device_handle device;
    int images;
    bool training;
    size_t element;     /* bytes of the device's real */
    size_t activation;  /* and of an activation */
    struct arena arena; /* groups, names */
    struct group *groups;
    struct net_group *described;
    int group_count;
    struct place input, dlogits, losses, probabilities;
    struct net_sizes sizes;
};

#endif
