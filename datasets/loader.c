/* A ring of slots, each one batch. The batches are numbered in order; batch b lives in slot b % slots. A slot
 * is planned (its samples copied from the epoch's order, by one thread at a time), then distorted in pieces
 * by all threads, then handed out. Without threads there is one slot, planned when it is handed out. */
#include "datasets/loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/distort.h"
#include "datasets/order.h"
#include "engine/base/clock.h"

enum { PIECE = 16 }; /* images a thread takes at a time */

struct slot {
    struct batch batch;
    int64_t taken, done; /* images given to threads, images distorted */
};

struct loader {
    const struct image_set *set;
    struct loader_options options;
    int64_t batch, capacity; /* images of a full batch; of a slot's memory */
    size_t image;            /* values of one image */

    /* Used by whoever plans, one at a time. */
    struct loader_place plan; /* where the next batch to plan begins */
    uint32_t *order;          /* of epoch `order_epoch`, or none yet when it is -1 */
    int64_t order_of;

    pthread_mutex_t lock;
    pthread_cond_t work, ready; /* for the threads; for loader_next */
    bool planning, stopping, halted;
    int busy; /* threads distorting a piece */
    /* Batch numbers: all below are planned, wholly taken, handed out, free. */
    int64_t planned, started, handed, freed;
    int slots;
    struct slot *slot;
    int threads;
    pthread_t *thread;
};

static struct slot *slot_of(struct loader *l, int64_t number) {
    return &l->slot[number % l->slots];
}

/* Fill the next slot's samples and labels and move the plan on. */
static void plan_batch(struct loader *l, struct slot *slot) {
    if (l->order_of != l->plan.epoch) {
        order_epoch(l->options.seed, l->plan.epoch, l->set->count, l->order);
        l->order_of = l->plan.epoch;
    }
    struct batch *b = &slot->batch;
    int64_t left = l->set->count - l->plan.position;
    b->place = l->plan;
    b->images = left < l->batch ? left : l->batch;
    for (int64_t i = 0; i < b->images; i++) {
        b->samples[i] = l->order[l->plan.position + i];
        b->labels[i] = l->set->labels[b->samples[i]];
    }
    slot->taken = slot->done = 0;
    l->plan = loader_after(l->set, b);
}

/* Images lie anywhere: the next one's bytes are sent for while a picture is made. */
static void foresee(const struct loader *l, const struct batch *b, int64_t image) {
    enum { LINE = 64, MOST = 4096 };
    size_t bytes = shape_size(l->set->shape);
    const uint8_t *pixels = l->set->pixels + (size_t)b->samples[image] * bytes;
    for (size_t at = 0; at < bytes && at < MOST; at += LINE)
        __builtin_prefetch(pixels + at);
}

void loader_picture(const struct loader *l, const struct batch *b, int64_t image, float *out) {
    if (image + 1 < b->images)
        foresee(l, b, image + 1);
    const struct distort_options options = {
        .seed = l->options.seed, .size = l->options.size, .distortions = l->options.distortions};
    distort_training(l->set, &options, b->samples[image], b->place.epoch, out);
}

void loader_make(const struct loader *l, const struct batch *b, int64_t first, int64_t images) {
    for (int64_t i = first; i < first + images; i++)
        loader_picture(l, b, i, b->pixels + (size_t)i * l->image);
}

/* With the lock held: the oldest slot that still has images to give out, or NULL. */
static struct slot *slot_with_work(struct loader *l) {
    while (l->started < l->planned) {
        struct slot *slot = slot_of(l, l->started);
        if (slot->taken < slot->batch.images)
            return slot;
        l->started++;
    }
    return NULL;
}

static void *loader_thread(void *argument) {
    struct loader *l = argument;
    pthread_mutex_lock(&l->lock);
    while (!l->stopping) {
        struct slot *slot = l->halted ? NULL : slot_with_work(l);
        if (slot) {
            int64_t first = slot->taken, left = slot->batch.images - first, now = left < PIECE ? left : PIECE;
            slot->taken += now;
            l->busy++;
            pthread_mutex_unlock(&l->lock);
            loader_make(l, &slot->batch, first, now);
            pthread_mutex_lock(&l->lock);
            slot->done += now;
            l->busy--;
            if (slot->done == slot->batch.images || l->halted)
                pthread_cond_broadcast(&l->ready);
        } else if (!l->halted && !l->planning && l->planned - l->freed < l->slots) {
            slot = slot_of(l, l->planned);
            l->planning = true;
            pthread_mutex_unlock(&l->lock);
            plan_batch(l, slot);
            pthread_mutex_lock(&l->lock);
            l->planning = false;
            l->planned++;
            pthread_cond_broadcast(&l->work);
            if (l->halted)
                pthread_cond_broadcast(&l->ready);
        } else {
            pthread_cond_wait(&l->work, &l->lock);
        }
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static void free_slots(struct slot *slot, int slots) {
    for (int i = 0; slot && i < slots; i++) {
        free(slot[i].batch.pixels);
        free(slot[i].batch.labels);
        free(slot[i].batch.samples);
    }
    free(slot);
}

/* New slots for batches of `images`; NULL when there is no memory. */
static struct slot *new_slots(int slots, int64_t images, size_t image) {
    size_t bytes;
    if (__builtin_mul_overflow((size_t)images, image * sizeof(float), &bytes) || bytes > SIZE_MAX - 64)
        return NULL;
    struct slot *slot = calloc((size_t)slots, sizeof *slot);
    for (int i = 0; slot && i < slots; i++) {
        struct batch *b = &slot[i].batch;
        b->pixels = aligned_alloc(64, (bytes + 63) / 64 * 64);
        b->labels = calloc((size_t)images, sizeof *b->labels);
        b->samples = calloc((size_t)images, sizeof *b->samples);
        if (!b->pixels || !b->labels || !b->samples) {
            free_slots(slot, slots);
            return NULL;
        }
    }
    return slot;
}

static enum status no_memory(int slots, int64_t images) {
    return status_fail(STATUS_NO_MEMORY,
                       "no memory for %d batches of %lld images; a smaller batch needs less", slots,
                       (long long)images);
}

/* A batch never holds more than the set does, so a slot need not either. */
static int64_t slot_images(const struct loader *l, int64_t batch) {
    return batch < l->set->count ? batch : l->set->count;
}

static enum status check(const struct image_set *set, const struct loader_options *options,
                         struct loader_place place, int64_t batch) {
    if (set->count < 1 || set->count > UINT32_MAX)
        return status_fail(STATUS_BAD_INPUT,
                           "a set of %lld images can't be loaded; 1 to 4294967295 are expected",
                           (long long)set->count);
    if (options->size < 1 || options->size > set->shape.h || options->size > set->shape.w)
        return status_fail(STATUS_BAD_INPUT,
                           "images of %dx%d are smaller than the %dx%d that the model wants", set->shape.h,
                           set->shape.w, options->size, options->size);
    if (set->shape.c < 1 || set->shape.c > 4)
        return status_fail(STATUS_BAD_INPUT, "images with %d channels can't be loaded; 1 to 4 are expected",
                           set->shape.c);
    if (batch < 1)
        return status_fail(STATUS_BAD_INPUT, "a batch of %lld images is none; at least 1 is expected",
                           (long long)batch);
    if (place.epoch < 0 || place.epoch > UINT32_MAX || place.position < 0 || place.position >= set->count)
        return status_fail(STATUS_BAD_INPUT, "epoch %lld, image %lld is no place in a set of %lld images",
                           (long long)place.epoch, (long long)place.position, (long long)set->count);
    return STATUS_OK;
}

static enum status start_threads(struct loader *l) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the caller's thread */
    enum status status = STATUS_OK;
    while (status == STATUS_OK && l->threads < l->options.threads) {
        int error = pthread_create(&l->thread[l->threads], NULL, loader_thread, l);
        if (error == 0)
            l->threads++;
        else
            status = status_fail(STATUS_NO_MEMORY, "can't start a loader thread: %s", strerror(error));
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

enum status loader_open(const struct image_set *set, const struct loader_options *options,
                        struct loader_place place, int64_t batch, struct loader **out) {
    *out = NULL;
    STATUS_TRY(check(set, options, place, batch));
    struct loader *l = calloc(1, sizeof *l);
    if (!l)
        return no_memory(1, batch);
    l->set = set;
    l->options = *options;
    l->image = (size_t)options->size * (size_t)options->size * (size_t)set->shape.c;
    l->batch = batch;
    l->capacity = slot_images(l, batch);
    l->plan = place;
    l->order_of = -1;
    l->slots =
        (options->threads > 0 ? (options->ahead > 0 ? options->ahead : 1) : 0) + 1; /* one is the caller's */
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->ready, NULL);
    l->order = calloc((size_t)set->count, sizeof *l->order);
    l->thread = calloc((size_t)options->threads + 1, sizeof *l->thread);
    l->slot = new_slots(l->slots, l->capacity, l->image);
    enum status status = l->order && l->thread && l->slot ? start_threads(l) : no_memory(l->slots, batch);
    if (status != STATUS_OK) {
        loader_close(l);
        return status;
    }
    *out = l;
    return STATUS_OK;
}

void loader_close(struct loader *l) {
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->threads; i++)
        pthread_join(l->thread[i], NULL);
    pthread_cond_destroy(&l->ready);
    pthread_cond_destroy(&l->work);
    pthread_mutex_destroy(&l->lock);
    free_slots(l->slot, l->slots);
    free(l->order);
    free(l->thread);
    free(l);
}

enum status loader_next(struct loader *l, const struct batch **out, double *waited) {
    double seconds = 0;
    struct slot *slot = slot_of(l, l->handed);
    if (l->threads == 0) {
        plan_batch(l, slot);
    } else {
        pthread_mutex_lock(&l->lock);
        l->freed = l->handed; /* the batch handed out before */
        pthread_cond_signal(&l->work);
        if (l->planned <= l->handed || slot->done < slot->batch.images) {
            double start = clock_seconds();
            while (l->planned <= l->handed || slot->done < slot->batch.images)
                pthread_cond_wait(&l->ready, &l->lock);
            seconds = clock_seconds() - start;
        }
        pthread_mutex_unlock(&l->lock);
    }
    l->handed++;
    if (waited)
        *waited = seconds;
    *out = &slot->batch;
    return STATUS_OK;
}

enum status loader_seek(struct loader *l, struct loader_place place, int64_t batch) {
    STATUS_TRY(check(l->set, &l->options, place, batch));
    struct slot *larger = NULL;
    if (slot_images(l, batch) > l->capacity &&
        !(larger = new_slots(l->slots, slot_images(l, batch), l->image)))
        return no_memory(l->slots, batch);
    pthread_mutex_lock(&l->lock);
    l->halted = true;
    while (l->busy > 0 || l->planning)
        pthread_cond_wait(&l->ready, &l->lock);
    if (larger) {
        free_slots(l->slot, l->slots);
        l->slot = larger;
        l->capacity = slot_images(l, batch);
    }
    l->plan = place;
    l->batch = batch;
    l->planned = l->started = l->handed = l->freed = 0;
    l->halted = false;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    return STATUS_OK;
}

struct loader_place loader_after(const struct image_set *set, const struct batch *batch) {
    struct loader_place place = batch->place;
    place.position += batch->images;
    if (place.position >= set->count)
        place = (struct loader_place){place.epoch + 1, 0};
    return place;
}
