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
    if (t->loader) {
        bool same = t->loader_batch == batch && place.epoch == t->loader_place.epoch &&
                    place.position == t->loader_place.position;
        return same ? STATUS_OK : loader_seek(t->loader, place, batch);
    }
    struct loader_options options = {.seed = (uint64_t)t->settings.seed,
                                     .size = t->options.model->input.h,
                                     .distortions = t->distortions,
                                     .threads = t->info.host_memory ? 0 : 1,
                                     .ahead = 2};
    return loader_open(&t->options.data->train, &options, place, batch, &t->loader);
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
        status = towers_new(&t->nets, &need, &made);
    if (status == STATUS_OK && batch > t->losses_room && !(losses = calloc((size_t)batch, sizeof *losses)))
        status = status_fail(STATUS_NO_MEMORY, "no memory for a batch of %lld images", (long long)batch);
    if (status == STATUS_OK && made)
        status = report_room(t, made);
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
        free(t->host_losses);
        t->host_losses = losses;
        t->losses_room = batch;
    }
    t->batch = NULL;
    t->step_kept_back = false;
    t->phase = PHASE_LOAD; /* a frozen step begins again, with the same images */
    t->loader_batch = batch;
    t->loader_place = place;
    t->prepared_bytes = need.prepared_bytes;
    t->settings = *settings;
    nets_trim(&t->nets, need.sizes, need.size_count, need.lanes);
    return STATUS_OK;
}
