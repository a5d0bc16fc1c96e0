#include "tests/support/stream.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/base64.h"
#include "engine/base/random.h"
#include "engine/wire/codec.h"

enum { MOST_TOWERS = 256 };

struct player {
    const struct stream_script *script;
    stream_sink *sink;
    void *context;
    int64_t seq, step;
    int towers;
    struct random random;
    enum status status;
};

static const double BEGIN = 1700000000, STEP_SECONDS = 0.0134;

static void send(struct player *p, struct event *event) {
    if (p->status != STATUS_OK)
        return;
    event->seq = ++p->seq;
    event->time = BEGIN + (double)p->step * STEP_SECONDS;
    p->status = p->sink(p->context, event);
}

static void send_state(struct player *p, const char *state) {
    struct event event = event_new(EVENT_STATE);
    event.state.state = state;
    event.state.step = p->step;
    send(p, &event);
}

static void send_command_of(struct player *p, const char *screen, const char *text, const char *status,
                            const char *reason) {
    struct event event = event_new(EVENT_COMMAND);
    event.command.id = "1";
    event.command.screen = screen;
    event.command.from = "ada@pts/3";
    event.command.text = text;
    event.command.status = status;
    event.command.step = p->step;
    event.command.reason = reason;
    send(p, &event);
}

static void send_command(struct player *p, const char *text, const char *status, const char *reason) {
    send_command_of(p, NULL, text, status, reason);
}

static int64_t batch_of(const struct stream_script *script) {
    return script->batch ? script->batch : 128;
}

static void send_start(struct player *p) {
    const struct stream_script *s = p->script;
    struct event_run_device device = {"cpu", "a processor", 2, WIRE_UNKNOWN_INT};
    struct event event = event_new(EVENT_RUN_START);
    struct event_run_start *e = &event.run_start;
    e->run = s->run ? s->run : "quiet-harbor";
    e->model = "cifar10";
    e->parameters = 1068298;
    e->data_name = "fashion-mnist";
    e->data_train = 60000;
    e->data_test = 10000;
    e->data_classes = 10;
    if (s->class_names) {
        static const char *const names[] = {"T-shirt", "trouser", "pullover", "dress", "coat",
                                            "sandal",  "shirt",   "sneaker",  "bag",   "ankle boot"};
        static struct event_run_class classes[10];
        for (int i = 0; i < 10; i++)
            classes[i].name = names[i];
        e->class_names = classes;
        e->class_name_count = 10;
    }
    e->data_shape[0] = e->data_shape[1] = 24;
    e->data_shape[2] = 3;
    e->batch = batch_of(s);
    e->batch_rule = "global";
    e->towers = s->towers;
    e->device_count = 1;
    e->devices = &device;
    e->seed = 1;
    e->lr = 0.1;
    e->momentum = 0;
    e->weight_decay = 0.004;
    if (s->planned)
        e->steps = s->planned;
    send(p, &event);
}

static double noise(struct player *p, double scale) {
    return scale * random_normal(&p->random);
}

static void fill_tower(struct player *p, struct event_step_tower *t, int k, int64_t step, double ce,
                       double wd) {
    static const char *const names[] = {"cpu 0", "cpu 1"};
    const struct stream_script *s = p->script;
    int64_t batch = batch_of(s);
    t->tower = k;
    t->device = s->device ? s->device : names[k % 2];
    t->images = batch / p->towers + (k < batch % p->towers);
    t->cross_entropy = ce * exp(noise(p, 0.06));
    if (s->stray_from && step >= s->stray_from && k == p->towers - 1)
        t->cross_entropy += 0.8;
    t->weight_decay = wd;
    t->loss = t->cross_entropy + wd;
    t->grad_norm = (0.9 + 3 * exp(-(double)step / 150)) * exp(noise(p, 0.08)) * (1 + 0.03 * p->towers);
    t->cosine = s->unknown ? wire_unknown() : 0.72 + noise(p, 0.03);
    t->load_ms = 0.1;
    t->forward_ms = 4 + noise(p, 0.15);
    t->backward_ms = 7.6 + noise(p, 0.2);
    t->wait_ms = 12.6 - t->load_ms - t->forward_ms - t->backward_ms;
    if (s->unknown)
        t->wait_ms = t->load_ms = wire_unknown();
    if (s->nan_at && step == s->nan_at && k == p->towers - 1)
        t->cross_entropy = t->loss = t->grad_norm = NAN;
    if (t->images == 0)
        t->cross_entropy = t->weight_decay = t->loss = t->grad_norm = t->cosine = wire_unknown();
}

static void average(struct event_step *e) {
    double ce = 0, norm = 0, images = 0;
    for (int64_t k = 0; k < e->tower_count; k++) {
        const struct event_step_tower *t = &e->towers[k];
        if (t->images == 0)
            continue;
        ce += t->cross_entropy * (double)t->images;
        norm += t->grad_norm / (double)e->tower_count;
        images += (double)t->images;
    }
    e->images = (int64_t)images;
    e->cross_entropy = ce / images;
    e->weight_decay = e->towers[0].weight_decay;
    e->loss = e->cross_entropy + e->weight_decay;
    e->grad_norm_mean = norm;
    e->grad_norm = 0.7 * norm;
}

static void fill_step(struct player *p, struct event_step *e, struct event_step_tower *towers, int64_t step) {
    const struct stream_script *s = p->script;
    double t = (double)step;
    double ce = 0.35 + 1.95 * exp(-t / 300), wd = 0.55 + 1.82 * exp(-t / 900);
    e->step = p->step = step;
    e->epoch = t * (double)batch_of(s) / 60000;
    e->lr = 0.1;
    e->seconds = s->unknown ? wire_unknown() : STEP_SECONDS;
    e->images_per_second = s->unknown ? wire_unknown() : (double)batch_of(s) / STEP_SECONDS;
    e->tower_count = p->towers;
    e->towers = towers;
    for (int k = 0; k < p->towers; k++) {
        struct event_step_tower blank;
        memset(&blank, 0, sizeof blank);
        towers[k] = blank;
        fill_tower(p, &towers[k], k, step, ce, wd);
    }
    if (p->towers > 0)
        average(e);
    if (!s->unknown) {
        e->noise_scale = 64 + noise(p, 3);
        e->update_ratio = 0.002;
        e->average_ms = 0.3;
        e->update_ms = 0.5;
    }
    if (s->applied && step > (s->applied_after ? s->applied_after : s->steps / 2) &&
        (!s->applied_until || step <= s->applied_until))
        e->applied = s->applied;
}

static void send_step(struct player *p, int64_t step) {
    struct event_step_tower towers[MOST_TOWERS];
    struct event event = event_new(EVENT_STEP);
    fill_step(p, &event.step, towers, step);
    send(p, &event);
}

static void send_layers(struct player *p) {
    struct event_layer layers[] = {
        {"conv1", 4864, 3.31, 0.412, 0.0021, 0.43},     {"conv2", 102464, 16.2, 0.305, 0.0019, 0.71},
        {"local3", 885120, 37.9, 0.288, 0.0009, 0.62},  {"local4", 73920, 10.8, 0.097, 0.0011, 0.55},
        {"softmax_linear", 1930, 0.94, 0.61, 0.131, 0},
    };
    struct event event = event_new(EVENT_LAYERS);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        layers[i].grad_norm *= 1 + exp(-(double)p->step / (200 + 100 * (double)i));
    event.layers.step = p->step;
    event.layers.layer_count = sizeof layers / sizeof *layers;
    event.layers.layers = layers;
    send(p, &event);
}

static void send_eval(struct player *p) {
    int64_t confusion[100];
    for (int i = 0; i < 100; i++)
        confusion[i] = i / 10 == i % 10 ? 880 : (i * 7) % 5 * 12;
    struct event event = event_new(EVENT_EVAL);
    event.eval.step = p->step;
    event.eval.precision = 0.9 - 0.5 * exp(-(double)p->step / 400);
    event.eval.loss = 0.4;
    event.eval.images = 10000;
    event.eval.correct = (int64_t)(10000 * event.eval.precision);
    event.eval.averaged = true;
    if (p->script->confusion) {
        event.eval.classes = 10;
        event.eval.confusion_count = 100;
        event.eval.confusion = confusion;
    }
    send(p, &event);
}

static void send_checkpoint(struct player *p) {
    char path[64];
    snprintf(path, sizeof path, "checkpoints/step-%08lld.safetensors", (long long)p->step);
    struct event event = event_new(EVENT_CHECKPOINT);
    event.checkpoint.step = p->step;
    event.checkpoint.path = path;
    event.checkpoint.bytes = 12900000;
    event.checkpoint.seconds = 0.04;
    send(p, &event);
}

static void change_towers(struct player *p, int to) {
    char text[32];
    snprintf(text, sizeof text, "towers %d", to);
    send_command(p, text, "applied", NULL);
    struct event event = event_new(EVENT_TOWERS);
    event.towers.step = p->step;
    event.towers.from = p->towers;
    event.towers.to = to;
    event.towers.reason = "asked for by ada@pts/3";
    send(p, &event);
    p->towers = to;
}

static void change_rule(struct player *p) {
    const struct stream_script *s = p->script;
    char text[48];
    if (!s->applied || !s->applied_after)
        return;
    snprintf(text, sizeof text, "why apply %s", s->applied);
    if (p->step == s->applied_after)
        send_command(p, text, "applied", NULL);
    if (p->step == s->applied_until)
        send_command(p, "why restore", "applied", NULL);
}

static void after_step(struct player *p) {
    const struct stream_script *s = p->script;
    change_rule(p);
    if (p->step == s->alarm_at) {
        struct event event = event_new(EVENT_ALARM);
        event.alarm.level = "error";
        event.alarm.step = p->step;
        event.alarm.tower = p->towers - 1;
        event.alarm.tensor = "local3/weights";
        event.alarm.text = "the gradient is not finite: went back to step 100 and paused; try a smaller lr";
        send(p, &event);
        send_state(p, "paused");
    }
    if (p->step == s->refused_at)
        send_command(p, "set lr -1", "refused", "the rate must be above 0");
    if (p->step == s->commands_at) {
        static const char *const told[] = {"set lr 0.05", "set momentum 0.9", "set clip-norm 2"};
        for (int i = 0; i < 3; i++) {
            send_command(p, told[i], "applied", NULL);
            send_command_of(p, "Why", i ? "phase next" : "why on", "applied", NULL);
        }
    }
    if (p->step == s->pause_at) {
        send_command(p, "pause", "applied", NULL);
        send_state(p, "paused");
        if (s->towers_paused)
            change_towers(p, s->towers_paused);
    }
    if (s->eval_every && p->step % s->eval_every == 0)
        send_eval(p);
    if (s->checkpoint_every && p->step % s->checkpoint_every == 0)
        send_checkpoint(p);
}

/* ---- a frozen step */

static void send_losses(struct player *p, int64_t step, const struct event_step_tower *towers) {
    static char names[MOST_TOWERS * 3][64];
    static struct event_term terms[MOST_TOWERS * 3];
    static struct event_losses_tower losses[MOST_TOWERS];
    static const char *const words[] = {"local3/weight_loss", "local4/weight_loss", "cross_entropy"};
    for (int k = 0; k < p->towers; k++) {
        double wd = towers[k].weight_decay, values[] = {0.92 * wd, 0.08 * wd, towers[k].cross_entropy};
        for (int i = 0; i < 3; i++) {
            snprintf(names[3 * k + i], sizeof names[0], "tower_%d/%s", k, words[i]);
            terms[3 * k + i] = (struct event_term){names[3 * k + i], values[i]};
        }
        losses[k] = (struct event_losses_tower){k, 3, terms + 3 * (size_t)k};
    }
    struct event event = event_new(EVENT_LOSSES);
    event.losses.step = step;
    event.losses.tower_count = p->towers;
    event.losses.towers = losses;
    send(p, &event);
}

static void send_why(struct player *p, const struct event_step *s) {
    static struct event_why_tower towers[MOST_TOWERS];
    struct event event = event_new(EVENT_WHY);
    struct event_why *e = &event.why;
    double sum = 0, n = p->towers, g = s->grad_norm, differs = p->script->proof_differs;
    for (int k = 0; k < p->towers; k++) {
        const struct event_step_tower *t = &s->towers[k];
        towers[k] = (struct event_why_tower){k, t->images, t->loss, t->grad_norm, t->cosine};
        sum += t->loss;
    }
    const struct event_step_tower *last = &s->towers[p->towers - 1];
    bool one = p->towers == 1, even = s->images % p->towers == 0;
    struct event_alternative alternatives[] = {
        {"unscoped", sum, one ? g : 0.645 * n * g, one ? 1 : 0.968, one ? 1 : 0.645 * n, one},
        {"sum", sum, n * g, 1, n, one},
        {"last", last->loss, one ? g : last->grad_norm, one ? 1 : last->cosine, one ? 1 : last->grad_norm / g,
         one},
        {"print-last", last->loss, g, 1, 1, one},
        {"decay-per-tower", s->cross_entropy + n * s->weight_decay, one ? g : 1.05 * g, one ? 1 : 0.99,
         one ? 1 : 1.05, one},
        {"plain-mean", even ? s->loss : sum / n, even ? g : 1.004 * g, even ? 1 : 0.998, even ? 1 : 1.004,
         even},
        {"clip-before", s->loss, g, 1, 1, true},
    };
    e->step = s->step;
    e->images = s->images;
    e->lr = s->lr;
    e->loss = s->loss;
    e->grad_norm = g;
    e->momentum = p->script->momentum;
    e->clip_norm = p->script->clip_norm;
    e->ema = 0.9999;
    e->tower_count = p->towers;
    e->towers = towers;
    e->proof_loss = s->loss;
    e->proof_loss_difference = differs > 0 ? differs : 1.7e-7;
    e->proof_gradient_difference = differs > 0 ? differs : 4.2e-7;
    e->proof_bytes = 14500000;
    e->alternatives = alternatives;
    e->alternative_count = sizeof alternatives / sizeof *alternatives;
    send(p, &event);
}

static void send_gradients(struct player *p, const struct event_step *s) {
    static struct event_why_tower towers[MOST_TOWERS];
    struct event event = event_new(EVENT_WHY);
    for (int k = 0; k < p->towers; k++) {
        const struct event_step_tower *t = &s->towers[k];
        towers[k] = (struct event_why_tower){k, t->images, t->loss, t->grad_norm, wire_unknown()};
    }
    event.why.step = s->step;
    event.why.images = s->images;
    event.why.lr = s->lr;
    event.why.momentum = p->script->momentum;
    event.why.clip_norm = p->script->clip_norm;
    event.why.ema = 0.9999;
    event.why.tower_count = p->towers;
    event.why.towers = towers;
    send(p, &event);
}

static void send_images(struct player *p, int64_t step, int64_t tower) {
    enum { SIDE = 12, COUNT = 4 };
    static char text[COUNT][(SIDE * SIDE + 2) / 3 * 4 + 1];
    struct event_image images[COUNT];
    for (int i = 0; i < COUNT; i++) {
        uint8_t pixels[SIDE * SIDE];
        for (int j = 0; j < SIDE * SIDE; j++)
            pixels[j] = (uint8_t)(i % 2 ? 255 * (j % SIDE) / (SIDE - 1) : 255 * (j / SIDE) / (SIDE - 1));
        base64_encode(pixels, sizeof pixels, text[i]);
        images[i] = (struct event_image){.label = i,
                                         .prediction = i == 2 ? 7 : i,
                                         .probability = 0.91 - 0.2 * i,
                                         .width = SIDE,
                                         .height = SIDE,
                                         .channels = 1,
                                         .pixels = text[i]};
    }
    struct event event = event_new(EVENT_IMAGES);
    event.images.step = step;
    event.images.tower = tower;
    event.images.first = 0;
    event.images.image_count = COUNT;
    event.images.images = images;
    send(p, &event);
}

/* The next step, phase by phase up to the one it stands after. */
static void freeze(struct player *p) {
    static const char *const phases[] = {"load", "forward", "losses", "backward", "average", "update"};
    static struct event_step_tower towers[MOST_TOWERS];
    int64_t at = p->step;
    send_state(p, "paused");
    struct event whole = event_new(EVENT_STEP);
    fill_step(p, &whole.step, towers, at + 1);
    p->step = at;
    for (int i = 0; i < 6; i++) {
        if (i == 2)
            send_losses(p, at + 1, towers);
        if (i == 3)
            send_gradients(p, &whole.step);
        if (i == 4)
            send_why(p, &whole.step);
        if (i == 5) {
            send(p, &whole);
            p->step = at + 1;
        }
        struct event event = event_new(EVENT_PHASE);
        event.phase.step = at + 1;
        event.phase.images = whole.step.images;
        event.phase.phase = phases[i];
        send(p, &event);
        if (i == 0)
            send_images(p, at + 1, 0);
        if (!strcmp(phases[i], p->script->frozen))
            return;
    }
}

enum status stream_play(const struct stream_script *script, stream_sink *sink, void *context) {
    struct player p = {.script = script, .sink = sink, .context = context, .towers = script->towers};
    p.random = random_begin(7, RANDOM_TEST, (uint64_t)script->towers);
    int64_t every = script->every ? script->every : 1;
    send_start(&p);
    send_state(&p, "starting");
    if (script->steps > 0)
        send_state(&p, "training");
    for (int64_t i = 1; i <= script->steps && p.status == STATUS_OK; i++) {
        int64_t step = i * every;
        if (script->towers_at && step >= script->towers_at && p.towers != script->towers_to)
            change_towers(&p, script->towers_to);
        send_step(&p, step);
        after_step(&p);
        if (script->layers && (step % LAYERS_EVERY == 0 || i == script->steps))
            send_layers(&p);
    }
    if (script->frozen && script->towers > 0)
        freeze(&p);
    if (script->ended) {
        struct event event = event_new(EVENT_RUN_END);
        event.run_end.step = p.step;
        event.run_end.reason = "done";
        send(&p, &event);
    }
    return p.status;
}

static enum status fold(void *context, const struct event *event) {
    return state_apply(context, event);
}

struct run_state *stream_state(const struct stream_script *script) {
    struct run_state *state = state_new();
    if (state && stream_play(script, fold, state) != STATUS_OK) {
        state_free(state);
        return NULL;
    }
    return state;
}

struct writer {
    FILE *file;
    struct arena arena;
};

static enum status write_line(void *context, const struct event *event) {
    struct writer *writer = context;
    char *line;
    size_t length;
    arena_reset(&writer->arena);
    STATUS_TRY(event_encode(event, &writer->arena, &line, &length));
    if (fwrite(line, 1, length, writer->file) != length)
        return status_fail(STATUS_IO, "writing a record failed");
    return STATUS_OK;
}

enum status stream_write(const struct stream_script *script, const char *path) {
    struct writer writer = {.file = fopen(path, "w")};
    if (!writer.file)
        return status_fail(STATUS_IO, "%s: can't be made", path);
    enum status status = stream_play(script, write_line, &writer);
    if (fclose(writer.file) && status == STATUS_OK)
        status = status_fail(STATUS_IO, "%s: can't be written", path);
    arena_free(&writer.arena);
    return status;
}
