/* A tower's shard as pictures: what the network saw, with label, prediction and probability. */
#include "engine/base/base64.h"
#include "engine/train/internal.h"

#include <math.h>
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
static void fill_prediction(const struct trainer *t, const struct tower *tower, int64_t i,
                            struct event_image *image) {
    int classes = t->options.model->classes, best = 0;
    struct span p = net_probabilities(tower->net, &tower->memory);
    bool known = t->phase == PHASE_LOAD || t->phase > PHASE_LOSSES;
    image->prediction = WIRE_UNKNOWN_INT;
    image->probability = wire_unknown();
    if (!known || !t->info.host_memory)
        return;
    size_t first = (size_t)i * (size_t)classes;
    for (int c = 1; c < classes; c++)
        if (trainer_value(t, p, first + (size_t)c) > trainer_value(t, p, first + (size_t)best))
            best = c;
    image->prediction = best;
    image->probability = trainer_value(t, p, first + (size_t)best);
}

enum status images_report(struct trainer *t, int64_t k, int64_t first) {
    if (k < 0 || k >= t->towers->count)
        return status_fail(STATUS_REFUSED, "images %lld: there are towers 0 to %d", (long long)k,
                           t->towers->count - 1);
    const struct tower *tower = &t->towers->tower[k];
    if (!t->batch || !tower->net)
        return status_fail(STATUS_REFUSED, "images: tower %lld holds no images until the next step",
                           (long long)k);
    if (first < 0 || first >= tower->images)
        return status_fail(STATUS_REFUSED, "images: the shard of tower %lld has images 0 to %lld",
                           (long long)k, (long long)tower->images - 1);
    struct shape shape = t->options.model->input;
    size_t values = shape_size(shape), text = base64_size(values);
    int64_t count = tower->images - first < IMAGES ? tower->images - first : IMAGES;
    struct event_image images[IMAGES];
    uint8_t *bytes = malloc(values);
    char *encoded = malloc(IMAGES * text);
    if (!bytes || !encoded) {
        free(bytes);
        free(encoded);
        return status_fail(STATUS_NO_MEMORY, "no memory for %lld images", (long long)count);
    }
    for (int64_t i = 0; i < count; i++) {
        size_t at = (size_t)(tower->first + first + i);
        to_bytes(t->batch->pixels + at * values, values, bytes);
        base64_encode(bytes, values, encoded + (size_t)i * text);
        images[i] = (struct event_image){.label = t->batch->labels[at],
                                         .width = shape.w,
                                         .height = shape.h,
                                         .channels = shape.c,
                                         .pixels = encoded + (size_t)i * text};
        fill_prediction(t, tower, first + i, &images[i]);
    }
    struct event event = event_new(EVENT_IMAGES);
    event.images.step = t->progress.steps + (t->phase != PHASE_LOAD);
    event.images.tower = k;
    event.images.first = first;
    event.images.image_count = count;
    event.images.images = images;
    report_emit(t, &event, true);
    free(bytes);
    free(encoded);
    return STATUS_OK;
}
