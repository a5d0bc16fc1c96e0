/* Events, built in memory that is there before the first step. */
#include "engine/base/memory.h"
#include "engine/train/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FULL_TOWERS = 200, /* with more, a step's line leaves out times and parts of the loss to stay within the
                          wire's longest line; beyond BRIEF_TOWERS also the norms */
    BRIEF_TOWERS = 700,
    LOSSES_BYTES = WIRE_LINE_MAX - 2048,
};

enum status report_room(struct report *report, const struct towers *towers, int layers) {
    size_t count = (size_t)towers->count, terms = (size_t)towers->collection.count;
    struct report room = *report;
    room.towers = calloc(count, sizeof *room.towers);
    room.losses = calloc(count, sizeof *room.losses);
    room.terms = calloc(terms, sizeof *room.terms);
    room.layers = calloc((size_t)layers, sizeof *room.layers);
    if (!room.towers || !room.losses || !room.terms || !room.layers) {
        report_close(&room);
        return status_fail(STATUS_NO_MEMORY, "no memory for the events of %zu towers", count);
    }
    report_close(report);
    *report = room;
    return STATUS_OK;
}

void report_close(struct report *report) {
    free(report->towers);
    free(report->losses);
    free(report->terms);
    free(report->layers);
    report->towers = NULL;
    report->losses = NULL;
    report->terms = NULL;
    report->layers = NULL;
}

void report_emit(struct trainer *t, const struct event *event, bool recorded) {
    t->options.sink.emit(t->options.sink.context, event, recorded);
}

void report_state(struct trainer *t, const char *state) {
    struct event event = event_new(EVENT_STATE);
    event.state.state = state;
    event.state.step = t->progress.steps;
    report_emit(t, &event, true);
    t->report.starting = false;
}

void report_phase(struct trainer *t, const char *phase) {
    struct event event = event_new(EVENT_PHASE);
    event.phase.step = t->progress.steps + (t->step.phase != PHASE_LOAD || !strcmp(phase, "start"));
    event.phase.images = t->loading.batch ? t->loading.batch->images : WIRE_UNKNOWN_INT;
    event.phase.phase = phase;
    report_emit(t, &event, true);
}

void report_alarm(struct trainer *t, const char *level, int64_t step, int64_t tower, const char *tensor,
                  const char *text) {
    struct event event = event_new(EVENT_ALARM);
    event.alarm.level = level;
    event.alarm.step = step;
    event.alarm.tower = tower < 0 ? WIRE_UNKNOWN_INT : tower;
    event.alarm.tensor = tensor;
    event.alarm.text = text;
    report_emit(t, &event, true);
}

/* Names of the classes, as long as they leave the line room; NULL: none, or no memory for them. */
static struct event_run_class *class_names(const struct dataset *data) {
    enum { MOST_BYTES = WIRE_LINE_MAX / 4 };
    size_t bytes = 0;
    for (int i = 0; data->class_names && i < data->classes; i++)
        bytes += strlen(data->class_names[i]) + 16;
    struct event_run_class *names =
        bytes > 0 && bytes < MOST_BYTES ? calloc((size_t)data->classes, sizeof *names) : NULL;
    for (int i = 0; names && i < data->classes; i++)
        names[i].name = data->class_names[i];
    return names;
}

void report_run_start(struct trainer *t) {
    const struct model *model = t->options.model;
    const struct dataset *data = t->options.data;
    struct event_run_device devices[DEVICE_GROUP_MAX];
    long long memory = t->machine.info.memory_bytes / t->machine.info.count;
    for (int i = 0; i < t->machine.info.count; i++)
        devices[i] = (struct event_run_device){.device = t->machine.place_names[i],
                                               .name = t->machine.info.description,
                                               .threads = t->machine.info.threads ? t->machine.info.threads
                                                                                  : WIRE_UNKNOWN_INT,
                                               .memory = memory ? memory : WIRE_UNKNOWN_INT};
    struct event event = event_new(EVENT_RUN_START);
    struct event_run_start *s = &event.run_start;
    s->run = t->options.run_name;
    s->model = model->name;
    s->parameters = model->parameter_total;
    s->data_name = data->name;
    s->data_train = data->train.count;
    s->data_test = data->test.count;
    s->data_classes = data->classes;
    s->class_names = class_names(data);
    s->class_name_count = s->class_names ? data->classes : 0;
    s->data_shape[0] = model->input.h;
    s->data_shape[1] = model->input.w;
    s->data_shape[2] = model->input.c;
    s->batch = settings_batch(&t->settings, t->settings.towers);
    s->batch_rule = t->settings.batch_per_tower > 0 ? "per-tower" : "global";
    s->towers = t->settings.towers;
    s->device_count = t->machine.info.count;
    s->devices = devices;
    s->seed = t->settings.seed;
    s->lr = schedule_rate(&t->schedule, t->progress.images);
    s->momentum = t->settings.momentum;
    s->weight_decay = 0;
    for (int i = 0; i < model->parameter_count; i++)
        s->weight_decay = fmax(s->weight_decay, t->segments[i].weight_decay);
    if (t->planned >= 0)
        s->steps = t->planned;
    if (t->resumed.from >= 0)
        s->resumed_from = t->resumed.from;
    report_emit(t, &event, true);
    free(s->class_names);
}

void report_sizes(struct trainer *t) {
    struct trainer_sizes sizes = trainer_sizes(t);
    char tower[32], worker[32], shared[32], evaluation[32], total[32], text[256];
    snprintf(text, sizeof text, "memory: %d towers of %s, %d workers of %s, shared %s, evaluation %s: %s",
             sizes.towers, memory_words(sizes.tower_bytes, tower), sizes.workers,
             memory_words(sizes.worker_bytes, worker), memory_words(sizes.shared_bytes, shared),
             memory_words(sizes.evaluation_bytes, evaluation), memory_words(sizes.total_bytes, total));
    report_alarm(t, "info", t->progress.steps, -1, NULL, text);
}

static double milliseconds(double seconds) {
    return isnan(seconds) ? wire_unknown() : round(seconds * 1e6) / 1e3;
}

static double divide(double a, double b) {
    return b > 0 ? a / b : wire_unknown();
}

static void fill_tower(struct trainer *t, int k, double last_done) {
    const struct towers *towers = t->towers;
    const struct tower *tower = &towers->tower[k];
    const int terms = towers->collection.per_tower, *chosen = towers->chosen + (size_t)k * (size_t)terms;
    double unknown = wire_unknown();
    bool active = tower->net != NULL,
         counts = t->rules.in_force == RULE_RIGHT || towers->rule_weights[k] != 0,
         full = towers->count <= FULL_TOWERS, norms = towers->count <= BRIEF_TOWERS,
         laps = t->machine.info.asynchronous, times = full && (active || !laps);
    const double own[] = {tower->load, tower->forward, tower->backward}, *seconds = laps ? tower->laps : own;
    double norm = active ? sqrt(towers->norms2[k]) : unknown;
    t->report.towers[k] = (struct event_step_tower){
        .tower = k,
        .device = full ? t->machine.place_names[k % t->machine.info.count] : NULL,
        .images = tower->images,
        .cross_entropy = active && full ? tower->cross_entropy : unknown,
        .weight_decay = active && full ? collection_sum(&towers->collection, chosen, terms - 1) : unknown,
        .loss = active ? tower->total : unknown,
        .grad_norm = norms ? norm : unknown,
        .cosine = active && counts && full && t->step.result.cosines
                      ? divide(towers->dots[k], norm * t->step.result.grad_norm)
                      : unknown,
        .load_ms = times ? milliseconds(seconds[0]) : unknown,
        .forward_ms = times ? milliseconds(seconds[1]) : unknown,
        .backward_ms = times ? milliseconds(seconds[2]) : unknown,
        .wait_ms = times && !laps ? milliseconds(last_done - tower->done) : unknown,
    };
}

void report_step(struct trainer *t, bool recorded) {
    const struct step_result *r = &t->step.result;
    const struct towers *towers = t->towers;
    double last_done = 0;
    for (int k = 0; k < towers->count; k++)
        last_done = fmax(last_done, towers->tower[k].done);
    for (int k = 0; k < towers->count; k++)
        fill_tower(t, k, last_done);
    const struct loader_place *place = &t->progress.place;
    double noise = noise_value(&t->noise);
    struct event event = event_new(EVENT_STEP);
    struct event_step *s = &event.step;
    s->step = t->progress.steps;
    s->epoch = (double)place->epoch + (double)place->position / (double)t->options.data->train.count;
    s->lr = r->lr;
    s->images = r->images;
    s->seconds = r->seconds;
    s->images_per_second = divide((double)r->images, r->seconds);
    s->cross_entropy = r->cross_entropy;
    s->weight_decay = r->weight_decay;
    s->loss = r->loss;
    s->grad_norm = r->grad_norm;
    s->grad_norm_mean = r->grad_norm_mean;
    s->update_ratio = isnan(r->update_ratio) ? wire_unknown() : r->update_ratio;
    s->noise_scale = noise < 0 ? wire_unknown() : noise;
    s->applied = rule_name(t->rules.in_force);
    s->spread = apart_spread(t);
    s->loss_min = t->running.loss_min;
    s->loss_max = t->running.loss_max;
    s->grad_norm_max = t->running.grad_norm_max;
    s->tower_count = towers->count;
    s->towers = t->report.towers;
    s->average_ms = milliseconds(r->average_seconds);
    s->update_ms = milliseconds(r->update_seconds);
    report_emit(t, &event, recorded);
    if (recorded)
        running_recorded(&t->running);
}

/* As many whole towers as a line holds: all of them, but for hundreds of towers of many terms. */
void report_losses(struct trainer *t, int64_t step) {
    const struct towers *towers = t->towers;
    const struct collection *collection = &towers->collection;
    size_t bytes = 0;
    int told = 0;
    struct event_term *terms = t->report.terms;
    for (int k = 0; k < towers->count && bytes < LOSSES_BYTES; k++) {
        const struct term *from = collection->terms + (size_t)k * (size_t)collection->per_tower;
        for (int i = 0; i < collection->per_tower; i++) {
            bytes += strlen(from[i].name) + 48;
            bool known = from[i].segment >= 0 || towers->tower[k].net;
            terms[i] = (struct event_term){from[i].name, known ? from[i].value : wire_unknown()};
        }
        bytes += 32;
        t->report.losses[k] = (struct event_losses_tower){k, collection->per_tower, terms};
        terms += collection->per_tower;
        told += bytes < LOSSES_BYTES;
    }
    struct event event = event_new(EVENT_LOSSES);
    event.losses.step = step;
    event.losses.tower_count = told;
    event.losses.towers = t->report.losses;
    report_emit(t, &event, true);
}

static void fill_layer(struct trainer *t, int layer, struct event_layer *e) {
    const struct model *model = t->options.model;
    double norm2 = 0, gradient2 = 0, change2 = 0;
    int64_t parameters = 0, zeros = 0, values = 0;
    for (int i = 0; i < model->parameter_count; i++) {
        if (model->parameters[i].layer != layer)
            continue;
        parameters += (int64_t)model->parameters[i].count;
        norm2 += t->shared.norms2[i];
        gradient2 += t->shared.gradient_norms2[i];
        change2 += t->shared.update_norms2[i];
    }
    for (int k = 0; k < t->towers->count; k++) {
        zeros += t->towers->zeros[k * model->layer_count + layer];
        values += t->towers->values[k * model->layer_count + layer];
    }
    *e = (struct event_layer){
        .name = model->layers[layer].name,
        .parameters = parameters,
        .param_norm = sqrt(norm2),
        .grad_norm = sqrt(gradient2),
        .update_ratio = divide(sqrt(change2), sqrt(norm2)),
        .zeros = divide((double)zeros, (double)values),
    };
}

void report_layers(struct trainer *t) {
    const struct model *model = t->options.model;
    int count = 0;
    for (int i = 0; i < model->layer_count; i++)
        if (model->layers[i].weights >= 0 || model->layers[i].biases >= 0)
            fill_layer(t, i, &t->report.layers[count++]);
    struct event event = event_new(EVENT_LAYERS);
    event.layers.step = t->progress.steps;
    event.layers.layer_count = count;
    event.layers.layers = t->report.layers;
    report_emit(t, &event, true);
}
