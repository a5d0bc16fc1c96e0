/* Evaluation: precision @ 1 and mean cross-entropy over the test images, each exactly once.
 *
 * All batches have the same size: the last one reaches back over images that were done before and counts only
 * the new ones. Every image's result is stored by its number and added up in that order, so that the figures
 * are the same bytes for any number of towers and workers. */
#include "datasets/distort.h"
#include "engine/base/clock.h"
#include "engine/train/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 100, WORKERS = 2 /* of each GPU */ };

struct evaluation_worker {
    struct net_memory memory;
    struct span scratch;
    float *pixels, *logits, *losses;
    int32_t *labels;
};

static int batches_of(int64_t count, int images) {
    return (int)(count / images + (count % images != 0));
}

struct net_options trainer_evaluation_net(struct device_handle device, int64_t test_images) {
    int images = test_images < BATCH ? (int)test_images : BATCH;
    return (struct net_options){.images = images,
                                .lanes = net_lanes_for(device, batches_of(test_images, images))};
}

static enum status open_worker(struct evaluation *e, const struct model *model, struct machine *machine,
                               int number) {
    struct evaluation_worker *w = &e->worker[number];
    struct net_sizes sizes = net_sizes(e->net);
    size_t n = (size_t)e->images;
    STATUS_TRY(machine_buffer_new(machine, sizes.arena_bytes, number, &w->memory.arena));
    if (sizes.scratch_bytes)
        STATUS_TRY(machine_buffer_new(machine, sizes.scratch_bytes, number, &w->scratch));
    w->pixels = calloc(n * shape_size(model->input), sizeof *w->pixels);
    w->logits = calloc(n * (size_t)model->classes, sizeof *w->logits);
    w->losses = calloc(n, sizeof *w->losses);
    w->labels = calloc(n, sizeof *w->labels);
    if (!w->pixels || !w->logits || !w->losses || !w->labels)
        return status_fail(STATUS_NO_MEMORY, "no memory for an evaluation batch of %zu images", n);
    return STATUS_OK;
}

enum status evaluation_open(struct evaluation *e, const struct model *model, struct machine *machine,
                            int64_t count) {
    const struct device_handle device = machine->device;
    struct net_options options = trainer_evaluation_net(device, count);
    e->images = options.images;
    e->batches = batches_of(count, e->images);
    STATUS_TRY(net_plan(model, device, &options, &e->net));
    struct net_sizes sizes = net_sizes(e->net);
    e->workers = device.ops->workers(device.device, e->batches);
    if (machine->info.asynchronous && e->workers > WORKERS * machine->info.count)
        e->workers = WORKERS * machine->info.count;
    size_t classes = (size_t)model->classes;
    e->worker = calloc((size_t)e->workers, sizeof *e->worker);
    e->losses = calloc((size_t)count, sizeof *e->losses);
    e->predictions = calloc((size_t)count, sizeof *e->predictions);
    e->confusion = calloc(classes * classes, sizeof *e->confusion);
    if (!e->worker || !e->losses || !e->predictions || !e->confusion)
        return status_fail(STATUS_NO_MEMORY, "no memory for the results of %lld test images",
                           (long long)count);
    if (sizes.prepared_bytes)
        STATUS_TRY(machine_buffer_new(machine, sizes.prepared_bytes, PLACE_SHARED, &e->prepared));
    for (int w = 0; w < e->workers; w++)
        STATUS_TRY(open_worker(e, model, machine, w));
    e->bytes = (size_t)e->workers * (sizes.arena_bytes + sizes.scratch_bytes) + sizes.prepared_bytes +
               (size_t)count * (sizeof *e->losses + sizeof *e->predictions);
    return STATUS_OK;
}

void evaluation_close(struct evaluation *e, struct machine *machine) {
    for (int w = 0; e->worker && w < e->workers; w++) {
        machine_buffer_free(machine, &e->worker[w].memory.arena);
        machine_buffer_free(machine, &e->worker[w].scratch);
        free(e->worker[w].pixels);
        free(e->worker[w].logits);
        free(e->worker[w].losses);
        free(e->worker[w].labels);
    }
    machine_buffer_free(machine, &e->prepared);
    net_free(e->net);
    free(e->worker);
    free(e->losses);
    free(e->predictions);
    free(e->confusion);
}

/* The class of the largest score; -1 when one of them is not finite. */
static int32_t predict(const float *scores, int classes) {
    int32_t best = 0;
    for (int c = 0; c < classes; c++) {
        if (!isfinite(scores[c]))
            return -1;
        if (scores[c] > scores[best])
            best = c;
    }
    return best;
}

struct pass {
    struct trainer *t;
    struct span parameters;
    int first; /* batch of item 0 */
};

/* The first image that nobody else counts, and the first one of the batch. */
static int64_t batch_begin(const struct trainer *t, int64_t batch, int64_t *first) {
    int64_t images = t->evaluation.images, count = t->options.data->test.count, fresh = batch * images;
    *first = fresh + images <= count ? fresh : count - images;
    return fresh;
}

/* The results of a batch that is done. */
static void keep_batch(struct trainer *t, int64_t batch, int worker) {
    struct evaluation *e = &t->evaluation;
    const struct evaluation_worker *w = &e->worker[worker];
    int classes = t->options.model->classes;
    int64_t first, fresh = batch_begin(t, batch, &first);
    for (int64_t i = fresh - first; i < e->images; i++) {
        e->losses[first + i] = (double)w->losses[i];
        e->predictions[first + i] = predict(w->logits + i * classes, classes);
    }
}

static enum status run_batch(void *context, int item, int worker, struct stream *stream) {
    const struct pass *pass = context;
    struct trainer *t = pass->t;
    struct evaluation *e = &t->evaluation;
    struct evaluation_worker *w = &e->worker[worker];
    const struct device_handle device = t->machine.device;
    const struct image_set *set = &t->options.data->test;
    const struct trainer_patience *patience = &t->options.patience;
    if (patience->interrupted && patience->interrupted(patience->context))
        return status_fail(STATUS_INTERRUPTED, "the evaluation was interrupted");
    int64_t first;
    batch_begin(t, pass->first + item, &first);
    const struct net_operands operands = {pass->parameters, e->prepared, w->scratch, w->labels};
    size_t n = (size_t)e->images, values = shape_size(t->options.model->input);
    int classes = t->options.model->classes;
    for (int i = 0; i < e->images; i++) {
        distort_evaluation(set, first + i, t->options.model->input.h, w->pixels + (size_t)i * values);
        w->labels[i] = set->labels[first + i];
    }
    STATUS_TRY(
        device.ops->write(device.device, stream, net_input(e->net, &w->memory), w->pixels, n * values));
    STATUS_TRY(net_pass(e->net, stream, &w->memory, &operands, NET_FORWARD | NET_LOSS, NULL));
    STATUS_TRY(device.ops->read(device.device, stream, w->losses, net_losses(e->net, &w->memory), n));
    STATUS_TRY(device.ops->read(device.device, stream, w->logits, net_logits(e->net, &w->memory),
                                n * (size_t)classes));
    if (!t->machine.info.asynchronous)
        keep_batch(t, item, worker);
    return STATUS_OK;
}

/* Batches are queued, as many as there are workers, and then waited for. */
static enum status run_queued(struct trainer *t, struct pass *pass) {
    struct device_handle device = t->machine.device;
    int count = t->evaluation.batches, workers = t->evaluation.workers;
    for (pass->first = 0; pass->first < count; pass->first += workers) {
        int n = count - pass->first < workers ? count - pass->first : workers;
        STATUS_TRY(device.ops->each(device.device, n, run_batch, pass));
        STATUS_TRY(machine_wait(&t->machine));
        for (int i = 0; i < n; i++)
            keep_batch(t, pass->first + i, i);
    }
    return STATUS_OK;
}

static void tell(struct trainer *t, bool confusion) {
    const struct evaluation *e = &t->evaluation;
    const struct image_set *set = &t->options.data->test;
    int64_t classes = t->options.model->classes, correct = 0, unsure = 0;
    double loss = 0;
    for (int64_t i = 0; i < classes * classes; i++)
        e->confusion[i] = 0;
    for (int64_t i = 0; i < set->count; i++) {
        loss += e->losses[i];
        correct += e->predictions[i] == set->labels[i];
        unsure += e->predictions[i] < 0;
        if (e->predictions[i] >= 0)
            e->confusion[set->labels[i] * classes + e->predictions[i]]++;
    }
    struct event event = event_new(EVENT_EVAL);
    event.eval.step = t->progress.steps;
    event.eval.precision = (double)correct / (double)set->count;
    event.eval.loss = loss / (double)set->count;
    event.eval.correct = correct;
    event.eval.images = set->count;
    event.eval.averaged = t->shared.average.data != NULL;
    event.eval.classes = confusion ? classes : 0;
    event.eval.confusion_count = confusion ? classes * classes : 0;
    event.eval.confusion = e->confusion;
    t->evaluation.precision = event.eval.precision;
    t->evaluation.step = t->progress.steps;
    report_emit(t, &event, true);
    if (unsure) {
        char text[128];
        snprintf(text, sizeof text, "%lld test images have a score that is not finite; they count as wrong",
                 (long long)unsure);
        report_alarm(t, "warning", t->progress.steps, -1, NULL, text);
    }
}

enum status trainer_evaluate(struct trainer *t, bool confusion) {
    STATUS_TRY(trainer_settle(t));
    struct device_handle device = t->machine.device;
    bool averaged = t->shared.average.data != NULL;
    struct pass pass = {t, averaged ? t->shared.average : t->shared.values, 0};
    report_state(t, "evaluating");
    enum status status =
        machine_prepare(&t->machine, t->evaluation.net, pass.parameters, t->evaluation.prepared);
    if (status == STATUS_OK)
        status = t->machine.info.asynchronous
                     ? run_queued(t, &pass)
                     : device.ops->each(device.device, t->evaluation.batches, run_batch, &pass);
    if (status == STATUS_OK)
        tell(t, confusion);
    report_state(t, t->run.paused ? "paused" : "training");
    return status;
}
