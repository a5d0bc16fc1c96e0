/* A step: load, forward, losses, backward (tower by tower, on the device's workers), then average and update.
 * At full speed a worker takes a tower through its four phases at once; a frozen step stops between two. On
 * an asynchronous device whole steps are queued, and a step's figures are read while the next one runs. */
#include "datasets/order.h"
#include "engine/base/clock.h"
#include "engine/train/internal.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* What the workers read while the towers run. */
struct work {
    struct trainer *t;
    enum step_phase from, to; /* phases, `to` not included */
};

static bool layer_has_relu(const struct model *model, const struct model_layer *layer) {
    for (int i = 0; i < layer->op_count; i++)
        if (model->ops[layer->first_op + i].kind == OP_RELU)
            return true;
    return false;
}

/* Zero activations of the layers that keep theirs, while they are there: before backward. */
static enum status count_zeros(struct trainer *t, int k, struct stream *stream) {
    const struct model *model = t->options.model;
    const struct tower *tower = &t->towers->tower[k];
    for (int i = 0; i < model->layer_count; i++) {
        int64_t *zeros = &t->towers->zeros[k * model->layer_count + i];
        int64_t *values = &t->towers->values[k * model->layer_count + i];
        *zeros = *values = 0;
        if (!tower->net || !layer_has_relu(model, &model->layers[i]))
            continue;
        for (int l = 0; l < net_lanes(tower->net); l++) {
            struct span y = net_activation(tower->net, &tower->memory, i, l);
            if (!y.data)
                break;
            size_t count = net_activation_count(tower->net, i, l);
            int64_t more = 0; /* only a device that is done when a call returns has several lanes */
            STATUS_TRY(machine_measure(&t->machine, stream, y, count, MEASURE_ZEROS, l ? &more : zeros));
            *zeros += more;
            *values += (int64_t)count;
        }
    }
    return STATUS_OK;
}

/* Images first .. first + images - 1 of a tower's shard to its input. */
static enum status load_images(struct trainer *t, const struct tower *tower, int64_t first, int64_t images,
                               struct stream *stream) {
    const struct device_handle device = t->machine.device;
    size_t values = shape_size(t->options.model->input);
    size_t picture = values * (size_t)t->machine.info.activation_bytes;
    struct span input = net_input(tower->net, &tower->memory);
    input = (struct span){(char *)input.data + (size_t)first * picture, (size_t)images * picture};
    return device.ops->write(device.device, stream, input,
                             t->loading.batch->pixels + (size_t)(tower->first + first) * values,
                             (size_t)images * values);
}

/* In host memory make_pictures() has done it. */
static enum status load_tower(struct trainer *t, const struct tower *tower, struct stream *stream) {
    return t->machine.info.host_memory ? STATUS_OK : load_images(t, tower, 0, tower->images, stream);
}

static enum status read_losses(struct trainer *t, const struct tower *tower, struct stream *stream) {
    const struct device_handle device = t->machine.device;
    return device.ops->read(device.device, stream, t->step.losses + tower->first,
                            net_losses(tower->net, &tower->memory), (size_t)tower->images);
}

/* What a worker does with a tower. */
struct tower_work {
    struct trainer *t;
    struct tower *tower;
    int number;
    bool whole; /* from its images to its gradient, with no stop between */
    struct net_operands operands;
};

/* Time what follows on an asynchronous device, or (seconds) what came since. */
static enum status lap(struct trainer *t, struct stream *stream, double *seconds) {
    const struct device_handle device = t->machine.device;
    return t->step.result.timed ? device.ops->lap(device.device, stream, seconds) : STATUS_OK;
}

static enum status tower_lap(const struct tower_work *work, struct stream *stream, double *seconds) {
    return work->whole ? lap(work->t, stream, seconds) : STATUS_OK;
}

/* Some parts of the tower's pass, and a look at its layers when the losses are among them. */
static enum status pass(const struct tower_work *work, struct stream *stream, unsigned parts) {
    struct tower *tower = work->tower;
    const bool layers = work->t->step.result.layers;
    const unsigned again = work->whole && !layers ? NET_AGAIN : 0;
    struct net_seconds seconds;
    STATUS_TRY(net_pass(tower->net, stream, &tower->memory, &work->operands, parts | again, &seconds));
    tower->forward += seconds.forward + seconds.loss;
    tower->backward += seconds.backward;
    return layers && parts & NET_LOSS ? count_zeros(work->t, work->number, stream) : STATUS_OK;
}

/* The net's parts among a tower's phases. */
static unsigned net_parts(enum step_phase from, enum step_phase to) {
    static const unsigned parts[] = {
        [PHASE_FORWARD] = NET_FORWARD, [PHASE_LOSSES] = NET_LOSS, [PHASE_BACKWARD] = NET_BACKWARD};
    unsigned sum = 0;
    for (enum step_phase phase = from; phase < to; phase++)
        sum |= parts[phase];
    return sum;
}

/* Through the phases, in one pass where nothing is to be done between two of them: layers are looked at
 * before backward writes over them, and a device that is timed is so in parts. */
static enum status run_phases(const struct tower_work *work, struct stream *stream, enum step_phase from,
                              enum step_phase to) {
    struct trainer *t = work->t;
    struct tower *tower = work->tower;
    const unsigned parts = net_parts(from, to);
    const bool apart = t->step.result.layers || (t->step.result.timed && work->whole);
    if (from == PHASE_LOAD) {
        double before = clock_seconds();
        STATUS_TRY(tower_lap(work, stream, NULL));
        STATUS_TRY(load_tower(t, tower, stream));
        STATUS_TRY(tower_lap(work, stream, &tower->laps[0]));
        tower->load += clock_seconds() - before;
    }
    const unsigned first = apart ? parts & ~(unsigned)NET_BACKWARD : parts, rest = parts & ~first;
    if (first)
        STATUS_TRY(pass(work, stream, first));
    STATUS_TRY(tower_lap(work, stream, &tower->laps[1]));
    if (rest)
        STATUS_TRY(pass(work, stream, rest));
    STATUS_TRY(tower_lap(work, stream, &tower->laps[2]));
    return parts & NET_LOSS ? read_losses(t, tower, stream) : STATUS_OK;
}

static enum status run_tower(void *context, int k, int worker, struct stream *stream) {
    const struct work *work = context;
    struct trainer *t = work->t;
    struct tower *tower = &t->towers->tower[k];
    if (tower->net) {
        struct tower_work of = {.t = t,
                                .tower = tower,
                                .number = k,
                                .whole = work->from == PHASE_LOAD && work->to == PHASE_AVERAGE,
                                .operands = apart_operands(t, k, worker)};
        of.operands.labels = t->loading.batch->labels + tower->first;
        STATUS_TRY(run_phases(&of, stream, work->from, work->to));
    } else if (t->step.result.layers) {
        STATUS_TRY(count_zeros(t, k, stream)); /* an idle tower has none */
    }
    tower->done = clock_seconds();
    return STATUS_OK;
}

/* ---- the phases */

static void follow_noise(struct trainer *t) {
    const struct towers *towers = t->towers;
    double weighted2 = 0;
    int active = 0;
    for (int k = 0; k < towers->count; k++)
        if (towers->tower[k].net) {
            active++;
            weighted2 += towers->weights[k] * towers->norms2[k];
        }
    noise_update(&t->noise, weighted2, t->step.result.average_norm2, t->step.result.images, active);
}

static struct net *any_net(const struct towers *towers) {
    struct net *net = NULL;
    for (int k = 0; k < towers->count && !net; k++)
        net = towers->tower[k].net;
    return net;
}

/* The step's batch, and what each tower gets of it. */
static enum status next_batch(struct trainer *t) {
    double seconds = 0, before = clock_seconds();
    STATUS_TRY(loader_next(t->loading.loader, &t->loading.batch, &seconds));
    t->loading.place = loader_after(&t->options.data->train, t->loading.batch);
    STATUS_TRY(towers_shard(t->towers, &t->nets, t->loading.batch->images));
    if (t->machine.info.host_memory)
        seconds = clock_seconds() - before;
    for (int k = 0; k < t->towers->count; k++)
        t->towers->tower[k].load = t->towers->tower[k].net ? seconds : 0;
    return STATUS_OK;
}

void trainer_pixels(struct trainer *t, int64_t first, int64_t images) {
    if (t->machine.info.host_memory) /* else the loader's threads have made them */
        loader_make(t->loading.loader, t->loading.batch, first, images);
}

/* A picture of the batch to the input of the tower that gets it; the batch's own pixels wait until somebody
 * asks for them: to write both would take twice as long. */
static enum status make_picture(struct trainer *t, const struct tower *tower, int64_t image,
                                struct stream *stream) {
    size_t values = shape_size(t->options.model->input);
    if (t->machine.info.element_bytes == sizeof(float)) {
        float *input = net_input(tower->net, &tower->memory).data;
        loader_picture(t->loading.loader, t->loading.batch, image,
                       input + (size_t)(image - tower->first) * values);
        return STATUS_OK;
    }
    loader_make(t->loading.loader, t->loading.batch, image, 1);
    return load_images(t, tower, image - tower->first, 1, stream);
}

struct making {
    struct trainer *t;
    int parts;
};

static enum status make_part(void *context, int part, int worker, struct stream *stream) {
    (void)worker;
    const struct making *making = context;
    struct trainer *t = making->t;
    int64_t image, left = order_shard(t->loading.batch->images, making->parts, part, &image);
    for (int k = 0; k < t->towers->count; k++) {
        const struct tower *tower = &t->towers->tower[k];
        for (; left > 0 && image < tower->first + tower->images; image++, left--)
            STATUS_TRY(make_picture(t, tower, image, stream));
    }
    return STATUS_OK;
}

/* A device in host memory computes on the processors that would make the next batch meanwhile: there its
 * workers make this one first, each a part, shared out as towers are to workers and a tower's images to
 * its lanes: so that a picture is where it will be looked at. All towers' time to load. */
static enum status make_pictures(struct trainer *t) {
    const struct device_handle device = t->machine.device;
    if (!t->machine.info.host_memory)
        return STATUS_OK;
    double before = clock_seconds();
    int64_t images = t->loading.batch->images;
    struct making making = {t, device.ops->workers(device.device, images < INT_MAX ? (int)images : INT_MAX)};
    STATUS_TRY(device.ops->each(device.device, making.parts, make_part, &making));
    for (int k = 0; k < t->towers->count; k++)
        if (t->towers->tower[k].net)
            t->towers->tower[k].load += clock_seconds() - before;
    return STATUS_OK;
}

static enum status begin(struct trainer *t) {
    int64_t step = t->progress.steps + 1;
    STATUS_TRY(next_batch(t));
    t->step.kept_back = false;
    t->step.result = (struct step_result){
        .images = t->loading.batch->images,
        .lr = schedule_rate(&t->schedule, t->progress.images),
        .cosines = t->step.recorded || t->why,
        .layers = layers_by_count(step) || t->why,
        .timed = t->machine.info.asynchronous && step % TIMED_EVERY == TIMED_FIRST,
    };
    if (t->shared.stale) { /* before the pictures: the update has left the parameters in the caches */
        STATUS_TRY(machine_prepare(&t->machine, any_net(t->towers), t->shared.values, t->shared.prepared));
        STATUS_TRY(apart_prepare(t, any_net(t->towers)));
        t->shared.stale = false;
    }
    return make_pictures(t);
}

static enum status queue_towers(struct trainer *t, enum step_phase from, enum step_phase to) {
    struct work work = {t, from, to};
    struct device_handle device = t->machine.device;
    return device.ops->each(device.device, t->towers->count, run_tower, &work);
}

static enum status run_towers(struct trainer *t, enum step_phase from, enum step_phase to) {
    STATUS_TRY(queue_towers(t, from, to));
    STATUS_TRY(machine_wait(&t->machine));
    if (from <= PHASE_LOSSES && to > PHASE_LOSSES) {
        step_losses(t);
        STATUS_TRY(fault_losses(t));
    }
    return STATUS_OK;
}

/* The counters after the step at hand. */
static struct progress next_progress(const struct trainer *t) {
    struct progress next = t->progress;
    next.steps++;
    next.images += t->loading.batch->images;
    next.place = t->loading.place;
    return next;
}

/* The step counts. */
static void commit(struct trainer *t, struct progress after) {
    follow_noise(t);
    t->progress = after;
    running_update(&t->running, t->step.result.loss, t->step.result.grad_norm);
}

/* A whole step with no wait in it. Nobody has seen the gradient when its update is queued, so the device
 * clips, and leaves the parameters alone when the gradient is not finite. The figures go to memory of the
 * trainer's when the step's mark is reached. */
static enum status queue_step(struct trainer *t) {
    const struct device_handle device = t->machine.device;
    struct queued_step *step = &t->queue.steps[t->queue.count];
    step->began = clock_seconds();
    STATUS_TRY(begin(t));
    STATUS_TRY(queue_towers(t, PHASE_LOAD, PHASE_AVERAGE));
    struct combine_args combine = step_combine_args(t, &t->queue.norm2);
    struct update_args update = step_update_args(t);
    update.gradient_scale = 1;
    update.clip_norm = t->settings.clip_norm;
    update.guard = true;
    update.parameter_norms2 = t->shared.next_norms2; /* the losses are made from those before the update */
    t->shared.stale = true;
    if (t->step.result.timed) {
        STATUS_TRY(lap(t, NULL, NULL));
        STATUS_TRY(device.ops->combine(device.device, &combine));
        STATUS_TRY(lap(t, NULL, &t->step.average_lap));
        STATUS_TRY(device.ops->update(device.device, &update));
        STATUS_TRY(lap(t, NULL, &t->step.update_lap));
    } else {
        STATUS_TRY(device.ops->combine_update(device.device, &combine, &update));
    }
    STATUS_TRY(device.ops->mark(device.device));
    step->result = t->step.result;
    step->recorded = t->step.recorded;
    step->after = next_progress(t);
    t->report.record_next = false;
    t->queue.count++;
    return STATUS_OK;
}

enum status step_queue(struct trainer *t) {
    struct progress told = t->progress;
    if (t->queue.count)
        t->progress = t->queue.steps[t->queue.count - 1].after;
    enum status status = queue_step(t);
    t->progress = told;
    return status;
}

static enum status run_until(struct trainer *t, enum step_phase until) {
    double before = clock_seconds();
    if (t->step.phase == PHASE_LOAD)
        STATUS_TRY(begin(t));
    if (t->step.phase < PHASE_AVERAGE) {
        enum step_phase to = until < PHASE_AVERAGE ? until : PHASE_AVERAGE;
        STATUS_TRY(run_towers(t, t->step.phase, to));
        t->step.phase = to;
    }
    double now = clock_seconds();
    t->step.result.seconds += now - before;
    if (t->step.phase == PHASE_AVERAGE && until > PHASE_AVERAGE) {
        STATUS_TRY(step_average(t));
        t->step.phase = PHASE_UPDATE;
        before = now;
        now = clock_seconds();
        t->step.result.seconds += now - before;
        t->step.result.average_seconds = t->machine.info.asynchronous ? t->step.average_lap : now - before;
    }
    if (t->step.phase == PHASE_UPDATE && until > PHASE_UPDATE) {
        STATUS_TRY(step_update(t));
        before = now;
        now = clock_seconds();
        t->step.result.seconds += now - before;
        t->step.result.update_seconds = t->machine.info.asynchronous ? t->step.update_lap : now - before;
        commit(t, next_progress(t));
        t->step.phase = PHASE_LOAD;
    }
    return STATUS_OK;
}

enum status step_run(struct trainer *t, enum step_phase until) {
    enum status status = run_until(t, until);
    if (status != STATUS_OK)
        t->step.phase = PHASE_LOAD; /* good_rewind moves the loader back */
    return status;
}

bool step_queues(const struct trainer *t, enum step_phase until) {
    return t->machine.info.asynchronous && t->rules.in_force == RULE_RIGHT && t->step.phase == PHASE_LOAD &&
           until == STEP_PHASES && !t->why;
}

int64_t step_images(const struct trainer *t) {
    int64_t left = t->options.data->train.count - t->loading.place.position;
    return left < t->loading.full ? left : t->loading.full;
}

/* A step's losses or gradients are not finite (t->fault), and the step behind it has written over what would
 * name the tensor. The guarded updates of both changed nothing: run it again to look at it. */
static enum status name_fault(struct trainer *t) {
    struct fault told = t->fault;
    STATUS_TRY(machine_wait(&t->machine));
    t->queue.count = 0;
    STATUS_TRY(loader_seek(t->loading.loader, t->progress.place, t->loading.full));
    t->loading.place = t->progress.place;
    enum status status = run_until(t, PHASE_UPDATE);
    if (status != STATUS_OK && status != STATUS_NON_FINITE)
        return status;
    if (status == STATUS_OK || t->fault.tower != told.tower) /* it does not come again */
        t->fault = told;
    return STATUS_NON_FINITE;
}

/* What the queued step came to. */
static enum status queued_figures(struct trainer *t) {
    step_losses(t);
    enum status status = fault_losses(t);
    if (status == STATUS_OK)
        status = step_average_figures(t, t->queue.norm2);
    if (status != STATUS_OK)
        return status == STATUS_NON_FINITE && t->queue.count ? name_fault(t) : status;
    size_t tensors = (size_t)t->options.model->parameter_count;
    memcpy(t->shared.norms2, t->shared.next_norms2, tensors * sizeof *t->shared.norms2);
    return step_update_figures(t);
}

enum status step_settle(struct trainer *t) {
    struct queued_step step = t->queue.steps[0];
    STATUS_TRY(machine_wait_mark(&t->machine));
    t->queue.count--;
    memmove(t->queue.steps, t->queue.steps + 1, (size_t)t->queue.count * sizeof *t->queue.steps);
    t->step.result = step.result;
    t->step.recorded = step.recorded;
    enum status status = queued_figures(t);
    if (status != STATUS_OK) {
        t->step.phase = PHASE_LOAD;
        t->queue.count = 0;
        return status;
    }
    double now = clock_seconds();
    t->step.result.average_seconds = t->step.average_lap;
    t->step.result.update_seconds = t->step.update_lap;
    t->step.result.seconds = now - fmax(step.began, t->queue.settled);
    t->queue.settled = now;
    commit(t, step.after);
    return STATUS_OK;
}

enum status step_take_back(struct trainer *t) {
    if (t->step.phase == PHASE_LOAD)
        return STATUS_OK;
    STATUS_TRY(loader_seek(t->loading.loader, t->progress.place, t->loading.full));
    t->loading.place = t->progress.place;
    t->loading.batch = NULL;
    t->step.phase = PHASE_LOAD;
    report_phase(t, "start");
    return STATUS_OK;
}

int64_t steps_per_epoch(const struct trainer *t) {
    int64_t batch = settings_batch(&t->settings, t->settings.towers), count = t->options.data->train.count;
    return count / batch + (count % batch != 0);
}
