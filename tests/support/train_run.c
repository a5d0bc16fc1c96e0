#include "tests/support/train_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"
#include "kernels/registry.h"
#include "tests/support/cmocka.h"

const char *const mlp_text = "[model]\nname = small\ninput = 6\n"
                             "[one]\ntype = dense\nunits = 9\ndeviation = 0.2\nbias = 0.1\nrelu = yes\n"
                             "weight_decay = 0.004\n"
                             "[two]\ntype = dense\nunits = 7\ndeviation = 0.3\nbias = 0.1\nrelu = yes\n"
                             "weight_decay = 0.0\n"
                             "[out]\ntype = dense\nunits = classes\ndeviation = 0.3\nbias = 0\n"
                             "weight_decay = 0.01\n";

const char *const conv_text =
    "[model]\nname = small-conv\ninput = 8\n"
    "[conv]\ntype = conv\nkernel = 3\nchannels = 16\ndeviation = 0.2\nbias = 0.1\nrelu = yes\n"
    "[pool]\ntype = pool\nkernel = 3\nstride = 2\n"
    "[norm]\ntype = lrn\nradius = 4\nbias = 1\nalpha = 0.001/9\nbeta = 0.75\n"
    "[out]\ntype = dense\nunits = classes\ndeviation = 0.1\nbias = 0\nweight_decay = 0.004\n";

const char *const convs_text =
    "[model]\nname = two-convs\ninput = 6\n"
    "[conv1]\ntype = conv\nkernel = 3\nchannels = 4\ndeviation = 0.2\nbias = 0.1\nrelu = yes\n"
    "[pool1]\ntype = pool\nkernel = 3\nstride = 2\n"
    "[conv2]\ntype = conv\nkernel = 3\nchannels = 4\ndeviation = 0.2\nbias = 0.1\nrelu = yes\n"
    "[norm2]\ntype = lrn\nradius = 4\nbias = 1\nalpha = 0.001/9\nbeta = 0.75\n"
    "[pool2]\ntype = pool\nkernel = 3\nstride = 2\n"
    "[out]\ntype = dense\nunits = classes\ndeviation = 0.1\nbias = 0\n";

static struct image_set made_set(int64_t count, int side, int channels, int classes, uint64_t stream) {
    struct image_set set = {.count = count, .shape = {side, side, channels}};
    size_t values = shape_size(set.shape);
    set.pixels = malloc((size_t)count * values);
    set.labels = malloc((size_t)count);
    assert_non_null(set.pixels);
    assert_non_null(set.labels);
    struct random random = random_begin(11, RANDOM_TEST, stream);
    for (int64_t i = 0; i < count; i++) {
        set.labels[i] = (uint8_t)random_below(&random, (uint32_t)classes);
        for (size_t j = 0; j < values; j++) /* a stripe that depends on the label, and noise */
            set.pixels[(size_t)i * values + j] =
                (uint8_t)(random_below(&random, 160) + ((int)j % classes == set.labels[i] ? 90 : 0));
    }
    return set;
}

struct dataset made_data(int64_t train, int64_t test, int side, int channels, int classes) {
    struct dataset data = {.name = "made", .format = "generated", .classes = classes};
    data.train = made_set(train, side, channels, classes, 0);
    data.test = made_set(test, side, channels, classes, 1);
    data.notes = strdup("");
    return data;
}

void made_data_free(struct dataset *data) {
    free(data->train.pixels);
    free(data->train.labels);
    free(data->test.pixels);
    free(data->test.labels);
    free(data->notes);
}

static void set_words(struct settings *settings, const char *const *words) {
    for (; words && *words; words++) {
        char key[64];
        const char *equals = strchr(*words, '=');
        assert_non_null(equals);
        snprintf(key, sizeof key, "%.*s", (int)(equals - *words), *words);
        if (settings_set(settings, "test", key, equals + 1) != STATUS_OK)
            fail_msg("%s", status_text());
    }
}

struct settings made_settings(const char *const *words) {
    struct settings settings;
    settings_clear(&settings);
    assert_int_equal(settings_set(&settings, "test", "eval-every", "0"), STATUS_OK);
    assert_int_equal(settings_set(&settings, "test", "checkpoint-every", "0"), STATUS_OK);
    set_words(&settings, words);
    return settings;
}

static void keep_text(char *to, size_t size, const char *text) {
    snprintf(to, size, "%s", text ? text : "");
}

static void keep_losses(struct train_run *run, const struct event_losses *losses) {
    run->terms = 0;
    for (int64_t k = 0; k < losses->tower_count; k++)
        for (int64_t i = 0; i < losses->towers[k].term_count; i++) {
            const struct event_term *term = &losses->towers[k].terms[i];
            assert_int_equal(losses->towers[k].tower, k);
            assert_true(run->terms < KEPT_TOWERS * 8);
            run->term[run->terms] = term->value;
            keep_text(run->term_name[run->terms++], sizeof run->term_name[0], term->name);
        }
}

static void keep(void *context, const struct event *event, bool recorded) {
    struct train_run *run = context;
    run->counts[event->kind]++;
    switch (event->kind) {
    case EVENT_STEP:
        if (run->steps < KEPT_STEPS) {
            struct kept_step *kept = &run->kept[run->steps++];
            kept->recorded = recorded;
            kept->step = event->step;
            assert_true(event->step.tower_count <= KEPT_TOWERS);
            memcpy(kept->towers, event->step.towers,
                   (size_t)event->step.tower_count * sizeof kept->towers[0]);
            kept->step.towers = kept->towers;
        }
        break;
    case EVENT_WHY:
        run->why = event->why;
        assert_true(event->why.alternative_count <= 16);
        if (event->why.alternative_count > 0)
            memcpy(run->alternatives, event->why.alternatives,
                   (size_t)event->why.alternative_count * sizeof *run->alternatives);
        run->why.alternatives = run->alternatives;
        break;
    case EVENT_PHASE:
        snprintf(run->phase, sizeof run->phase, "%s", event->phase.phase);
        break;
    case EVENT_IMAGES:
        run->image = event->images.images[0];
        run->image_count = event->images.image_count;
        break;
    case EVENT_EVAL:
        run->eval = event->eval;
        break;
    case EVENT_LOSSES:
        keep_losses(run, &event->losses);
        break;
    case EVENT_LAYERS:
        assert_true(event->layers.layer_count <= KEPT_LAYERS);
        run->layer_count = event->layers.layer_count;
        memcpy(run->layers, event->layers.layers, (size_t)run->layer_count * sizeof run->layers[0]);
        break;
    case EVENT_COMMAND:
        run->applied = !strcmp(event->command.status, "applied");
        keep_text(run->reason, sizeof run->reason, event->command.reason);
        run->set_lr = event->command.lr;
        run->set_batch = event->command.batch;
        break;
    case EVENT_ALARM:
        if (!strcmp(event->alarm.level, "info")) {
            keep_text(run->info, sizeof run->info, event->alarm.text);
            break;
        }
        keep_text(run->alarm, sizeof run->alarm, event->alarm.text);
        keep_text(run->alarm_tensor, sizeof run->alarm_tensor, event->alarm.tensor);
        run->alarm_step = event->alarm.step;
        run->alarm_tower = event->alarm.tower;
        break;
    case EVENT_REWIND:
        run->rewound_to = event->rewind.to;
        keep_text(run->rewind_reason, sizeof run->rewind_reason, event->rewind.reason);
        break;
    case EVENT_STATE:
        keep_text(run->state, sizeof run->state, event->state.state);
        break;
    default:
        break;
    }
}

static enum status save(void *context, const struct snapshot *snapshot, struct event_checkpoint *out) {
    return checkpoint_save(context, snapshot, out);
}

static bool making(void *context, int made, int of) {
    struct train_run *run = context;
    run->made = made;
    return run->most_made == 0 || made < run->most_made || made == of;
}

static bool interrupted(void *context) {
    return ((struct train_run *)context)->interrupt;
}

/* Everything but the trainer. */
static enum status open_device(const char *device, const char *const *words, struct device_handle *out) {
    struct settings settings = made_settings(words);
    struct device_options options = {.count = 1,
                                     .threads = 2,
                                     .precision = *settings.precision ? settings.precision : NULL,
                                     .deterministic = settings.deterministic,
                                     .eager = settings.no_graphs};
    return device_open_with(device, &options, out);
}

static struct train_run *prepare(const char *device, const char *model_text, int64_t train, int64_t test,
                                 const char *const *words) {
    struct train_run *run = calloc(1, sizeof *run);
    assert_non_null(run);
    if (open_device(device, words, &run->device) != STATUS_OK)
        fail_msg("%s", status_text());
    bool conv = model_text == conv_text || model_text == convs_text;
    run->data = made_data(train, test, conv ? 10 : 8, conv ? 3 : 1, 5);
    struct model_ends ends = {run->data.train.shape.h, run->data.train.shape.w, run->data.train.shape.c, 5};
    if (model_parse("test.ini", model_text, ends, NAN, &run->model) != STATUS_OK)
        fail_msg("%s", status_text());
    return run;
}

static enum status open_trainer(struct train_run *run, const char *const *words, const char *folder,
                                const char *checkpoint) {
    struct trainer_options options = {
        .settings = made_settings(words),
        .run_name = "test",
        .data = run->lent ? run->lent : &run->data,
        .model = run->model,
        .device = run->device,
        .sink = {keep, run},
        .patience = {.interrupted = interrupted, .making = making, .context = run},
    };
    if (folder) {
        snprintf(run->store.path, sizeof run->store.path, "%s", folder);
        options.store = (struct trainer_store){.save = save, .context = &run->store};
    }
    if (checkpoint) {
        STATUS_TRY(checkpoint_read(checkpoint, run->model, &run->from));
        struct settings given;
        settings_clear(&given);
        set_words(&given, words);
        options.settings = run->from.snapshot.settings;
        settings_overlay(&options.settings, &given);
        options.resume = &run->from.snapshot;
    }
    return trainer_open(&options, &run->trainer);
}

struct train_run *train_run_resume(const char *device, const char *model_text, int64_t train, int64_t test,
                                   const char *const *words, const char *folder, const char *checkpoint) {
    struct train_run *run = prepare(device, model_text, train, test, words);
    if (open_trainer(run, words, folder, checkpoint) != STATUS_OK)
        fail_msg("%s", status_text());
    trainer_begin(run->trainer);
    return run;
}

struct train_run *train_run_open(const char *device, const char *model_text, int64_t train, int64_t test,
                                 const char *const *words) {
    return train_run_resume(device, model_text, train, test, words, NULL, NULL);
}

struct train_run *train_run_on(const char *device, const struct dataset *data, const char *model,
                               const char *const *words) {
    struct train_run *run = calloc(1, sizeof *run);
    assert_non_null(run);
    run->lent = data;
    struct model_ends ends = {data->train.shape.h, data->train.shape.w, data->train.shape.c, data->classes};
    if (open_device(device, words, &run->device) != STATUS_OK ||
        model_read(model, ends, NAN, &run->model) != STATUS_OK ||
        open_trainer(run, words, NULL, NULL) != STATUS_OK)
        fail_msg("%s", status_text());
    trainer_begin(run->trainer);
    return run;
}

enum status train_run_refusal(const char *device, const char *model_text, int64_t train, int64_t test,
                              const char *const *words, const char *checkpoint) {
    struct train_run *run = prepare(device, model_text, train, test, words);
    enum status status = open_trainer(run, words, NULL, checkpoint);
    train_run_close(run);
    return status;
}

void train_run_close(struct train_run *run) {
    trainer_close(run->trainer);
    checkpoint_free(&run->from);
    model_free(run->model);
    made_data_free(&run->data);
    device_close(&run->device);
    free(run);
}

void train_run_steps(struct train_run *run, int steps) {
    for (int i = 0; i < steps; i++)
        if (trainer_step(run->trainer) != STATUS_OK)
            fail_msg("step %d: %s", i + 1, status_text());
    if (trainer_settle(run->trainer) != STATUS_OK)
        fail_msg("%s", status_text());
}

bool train_run_command(struct train_run *run, const char *text) {
    struct command command;
    int before = run->counts[EVENT_COMMAND];
    if (command_parse(text, &command) != STATUS_OK) {
        keep_text(run->reason, sizeof run->reason, status_text());
        return false;
    }
    bool refused;
    assert_int_equal(trainer_command(run->trainer, &command, &refused), STATUS_OK);
    assert_int_equal(run->counts[EVENT_COMMAND], before + 1);
    assert_int_equal(refused, !run->applied);
    return run->applied;
}

void assert_near_at(double a, double b, double tolerance, const char *file, int line) {
    double scale = fabs(b) > 1 ? fabs(b) : 1;
    if (!(fabs(a - b) <= tolerance * scale)) {
        print_error("%.17g is not within %g of %.17g\n", a, tolerance, b);
        _fail(file, line);
    }
}
