#include "engine/train/nets.h"

#include <stdlib.h>

enum { SPARE = 16 }; /* unwanted nets that are kept; a net holds plans, not activations */

struct net *nets_find(const struct nets *nets, int images, int lanes) {
    for (int i = 0; i < nets->count; i++)
        if (nets->cached[i].images == images && nets->cached[i].lanes == lanes)
            return nets->cached[i].net;
    return NULL;
}

enum status nets_get(struct nets *nets, int images, int lanes, struct net **out) {
    *out = nets_find(nets, images, lanes);
    if (*out)
        return STATUS_OK;
    if (nets->count == nets->room) {
        int room = nets->room ? 2 * nets->room : 8;
        struct cached_net *more = realloc(nets->cached, (size_t)room * sizeof *more);
        if (!more)
            return status_fail(STATUS_NO_MEMORY, "no memory for a net of %d images", images);
        nets->cached = more;
        nets->room = room;
    }
    struct net_options options = {.images = images, .lanes = lanes, .training = true};
    struct net *net;
    STATUS_TRY(net_plan(nets->model, nets->device, &options, &net));
    nets->cached[nets->count++] = (struct cached_net){images, lanes, false, net};
    *out = net;
    return STATUS_OK;
}

void nets_trim(struct nets *nets, const int *sizes, int count, int lanes) {
    int spare = 0;
    for (int i = 0; i < nets->count; i++) {
        nets->cached[i].wanted = false;
        for (int j = 0; j < count; j++)
            nets->cached[i].wanted |= nets->cached[i].images == sizes[j] && nets->cached[i].lanes == lanes;
        spare += !nets->cached[i].wanted;
    }
    int kept = 0;
    for (int i = 0; i < nets->count; i++) { /* the oldest go first */
        if (!nets->cached[i].wanted && spare > SPARE) {
            net_free(nets->cached[i].net);
            spare--;
            continue;
        }
        nets->cached[kept++] = nets->cached[i];
    }
    nets->count = kept;
}

void nets_free(struct nets *nets) {
    for (int i = 0; i < nets->count; i++)
        net_free(nets->cached[i].net);
    free(nets->cached);
    *nets = (struct nets){0};
}
