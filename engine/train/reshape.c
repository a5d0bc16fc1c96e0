/* Changes of towers, batch and place at a step boundary. The global batch, the order of the images and the
 * schedule stay what they were; only who computes which part changes. */
#include "engine/train/internal.h"

#include <stdlib.h>

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Every size a step may have from `place` on. A batch larger than the set makes an epoch of one step. */
static void step_sizes(int64_t count, int64_t batch, struct loader_place place, int64_t out[TOWERS_BATCHES]) {
    out[0] = batch <= count ? batch : 0;
    out[1] = (count - place.position) % batch;
    out[2] = count % batch;
}

static enum status move_loader(struct trainer *t, struct loader_place place, int64_t batch) {
    if (t->loading.loader) {
        bool same = t->loading.full == batch && place.epoch == t->loading.place.epoch &&
                    place.position == t->loading.place.position;
        return same ? STATUS_OK : loader_seek(t->loading.loader, place, batch);
    }
    struct loader_options options = {.seed = (uint64_t)t->settings.seed,
                                     .size = t->options.model->input.h,
                                     .distortions = t->loading.distortions,
                                     .threads = t->machine.info.host_memory ? 0 : 1,
                                     .ahead = 2};
    return loader_open(&t->options.data->train, &options, place, batch, &t->loading.loader);
}

enum status trainer_reshape(struct trainer *t, const struct settings *settings, struct loader_place place) {
    int64_t count = t->options.data->train.count, sizes[TOWERS_BATCHES];
    int64_t batch = smaller(settings_batch(settings, settings->towers), count);
    step_sizes(count, batch, place, sizes);
    struct towers_need need;
    STATUS_TRY(towers_plan(&t->nets, (int)settings->towers, sizes, TOWERS_BATCHES, &need));

    struct towers *made = NULL;
    float *losses = NULL;
    enum status status = STATUS_OK;
    if (!towers_serve(t->towers, &need))
        status = towers_new(&t->nets, &need, t->options.patience.making, t->options.patience.context, &made);
    if (status == STATUS_OK && batch > t->step.losses_room &&
        !(losses = calloc((size_t)batch, sizeof *losses)))
        status = status_fail(STATUS_NO_MEMORY, "no memory for a batch of %lld images", (long long)batch);
    if (status == STATUS_OK && made)
        status = report_room(&t->report, made, t->options.model->layer_count);
    if (status == STATUS_OK)
        status = move_loader(t, place, batch);
    if (status != STATUS_OK) {
        towers_free(made);
        free(losses);
        return status;
    }
    if (made) {
        towers_free(t->towers);
        t->towers = made;
    }
    if (losses) {
        free(t->step.losses);
        t->step.losses = losses;
        t->step.losses_room = batch;
    }
    t->loading.batch = NULL;
    t->step.kept_back = false;
    t->step.phase = PHASE_LOAD; /* a frozen step begins again, with the same images */
    t->loading.full = batch;
    t->loading.place = place;
    t->settings = *settings;
    nets_trim(&t->nets, need.sizes, need.size_count, need.lanes);
    return STATUS_OK;
}
