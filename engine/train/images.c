/* A tower's shard as pictures: what the network saw, with label, prediction and probability. */
#include "engine/base/base64.h"
#include "engine/train/internal.h"

#include <stdlib.h>

enum { IMAGES = 8 };

/* Standardised values as bytes: mean grey, three deviations to either end. */
static void to_bytes(const float *values, size_t count, uint8_t *out) {
    for (size_t i = 0; i < count; i++) {
        float v = 127.5f + values[i] * 42.5f;
        out[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

/* The likeliest class of an image, once the losses are there. */
static enum status fill_prediction(struct trainer *t, const struct tower *tower, int64_t i, float *p,
                                   struct event_image *image) {
    size_t classes = (size_t)t->options.model->classes, best = 0;
    bool known = t->step.phase == PHASE_LOAD || t->step.phase > PHASE_LOSSES;
    image->prediction = WIRE_UNKNOWN_INT;
    image->probability = wire_unknown();
    if (!known)
        return STATUS_OK;
    STATUS_TRY(machine_read(&t->machine, net_probabilities(tower->net, &tower->memory), (size_t)i * classes,
                            classes, p));
    for (size_t c = 1; c < classes; c++)
        if (p[c] > p[best])
            best = c;
    image->prediction = (int64_t)best;
    image->probability = (double)p[best];
    return STATUS_OK;
}

/* What pictures are made in. */
struct workspace {
    struct event_image images[IMAGES];
    uint8_t *bytes; /* of one */
    char *encoded;  /* [IMAGES][base64_size() of it] */
    float *p;       /* [classes] */
};

/* Images first .. first + count of the tower's shard. */
static enum status fill_images(struct trainer *t, const struct tower *tower, int64_t first, int64_t count,
                               struct workspace *w) {
    struct shape shape = t->options.model->input;
    size_t values = shape_size(shape), text = base64_size(values);
    for (int64_t i = 0; i < count; i++) {
        size_t at = (size_t)(tower->first + first + i);
        trainer_pixels(t, (int64_t)at, 1);
        char *encoded = w->encoded + (size_t)i * text;
        to_bytes(t->loading.batch->pixels + at * values, values, w->bytes);
        base64_encode(w->bytes, values, encoded);
        w->images[i] = (struct event_image){.label = t->loading.batch->labels[at],
                                            .width = shape.w,
                                            .height = shape.h,
                                            .channels = shape.c,
                                            .pixels = encoded};
        STATUS_TRY(fill_prediction(t, tower, first + i, w->p, &w->images[i]));
    }
    return STATUS_OK;
}

static void report_images(struct trainer *t, int64_t k, int64_t first, int64_t count,
                          struct event_image *images) {
    struct event event = event_new(EVENT_IMAGES);
    event.images.step = t->progress.steps + (t->step.phase != PHASE_LOAD);
    event.images.tower = k;
    event.images.first = first;
    event.images.image_count = count;
    event.images.images = images;
    report_emit(t, &event, true);
}

enum status images_report(struct trainer *t, int64_t k, int64_t first) {
    if (k < 0 || k >= t->towers->count)
        return status_fail(STATUS_REFUSED, "images %lld: there are towers 0 to %d", (long long)k,
                           t->towers->count - 1);
    const struct tower *tower = &t->towers->tower[k];
    if (!t->loading.batch || !tower->net)
        return status_fail(STATUS_REFUSED, "images: tower %lld holds no images until the next step",
                           (long long)k);
    if (first < 0 || first >= tower->images)
        return status_fail(STATUS_REFUSED, "images: the shard of tower %lld has images 0 to %lld",
                           (long long)k, (long long)tower->images - 1);
    size_t values = shape_size(t->options.model->input);
    int64_t count = tower->images - first < IMAGES ? tower->images - first : IMAGES;
    struct workspace w = {.bytes = malloc(values),
                          .encoded = malloc(IMAGES * base64_size(values)),
                          .p = malloc((size_t)t->options.model->classes * sizeof *w.p)};
    enum status status = w.bytes && w.encoded && w.p
                             ? fill_images(t, tower, first, count, &w)
                             : status_fail(STATUS_NO_MEMORY, "no memory for %lld images", (long long)count);
    if (status == STATUS_OK)
        report_images(t, k, first, count, w.images);
    free(w.bytes);
    free(w.encoded);
    free(w.p);
    return status;
}
