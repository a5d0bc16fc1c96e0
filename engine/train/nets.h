/* Nets by shard size and lanes: planned once, found again when a change of towers or batch asks for the same.
 */
#ifndef TOWERSCOPE_ENGINE_TRAIN_NETS_H
#define TOWERSCOPE_ENGINE_TRAIN_NETS_H

#include "engine/model/net.h"

struct cached_net {
    int images, lanes;
    bool wanted; /* by the towers there are now */
    struct net *net;
};

struct nets {
    const struct model *model;
    struct device_handle device;
    int count, room;
    struct cached_net *cached;
};

/* The net that trains on `images` images in `lanes` lanes (net.h), planned when there is none yet.
 * The cache owns it. Errors are those of net_plan(). */
enum status nets_get(struct nets *nets, int images, int lanes, struct net **out);

/* The same when it is there already, else NULL; plans and allocates nothing. */
struct net *nets_find(const struct nets *nets, int images, int lanes);

/* Free those of other lanes, or whose size is not among sizes[count], but for a few that may come again. */
void nets_trim(struct nets *nets, const int *sizes, int count, int lanes);

void nets_free(struct nets *nets);

#endif
