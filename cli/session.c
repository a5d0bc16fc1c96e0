#include "cli/session.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/memory.h"
#include "engine/wire/live.h"
#include "kernels/registry.h"

static const char *given(const char *text) {
    return *text ? text : NULL;
}

/* Where what was measured on a GPU is kept: beside the folder of live runs. NULL: no such place is known. */
static const char *kept_file(char *path, size_t size) {
    char *slash;
    if (live_folder_path(path, size) != STATUS_OK || !(slash = strrchr(path, '/')))
        return NULL;
    size_t left = size - (size_t)(slash - path);
    return (size_t)snprintf(slash, left, "/cudnn-engines") < left ? path : NULL;
}

enum status session_open_device(const struct settings *settings, struct device_handle *out) {
    char kept[PATH_MAX];
    const struct device_options options = {
        .kept = kept_file(kept, sizeof kept),
        .threads = settings->threads > 0 ? (int)settings->threads : 0,
        .isa = given(settings->isa),
        .precision = given(settings->precision),
        .deterministic = settings->deterministic,
        .eager = settings->no_graphs,
    };
    const char *names = given(settings->devices);
    return names ? device_open_with(names, &options, out) : device_open_default(&options, out);
}

enum status session_open_data(const struct settings *settings, struct dataset **out) {
    struct dataset_options options = {.seed = settings->seed >= 0 ? (uint64_t)settings->seed : 1};
    return dataset_open(given(settings->data), &options, out);
}

/* A path as it holds from any folder: what a run keeps of its settings. Links on the way stay what they are.
 * STATUS_BAD_INPUT: it is longer than can be kept; kept as it is, the run could not be resumed from
 * elsewhere.
 */
static enum status make_absolute(const char *key, char *path, size_t size) {
    char absolute[2 * PATH_MAX], here[PATH_MAX];
    const char *rest = path;
    if (path[0] == '/' || !getcwd(here, sizeof here))
        return STATUS_OK;
    while (rest[0] == '.' && rest[1] == '/')
        rest += 2;
    int length = snprintf(absolute, sizeof absolute, "%s/%s", strcmp(here, "/") ? here : "", rest);
    if (length < 0 || (size_t)length >= size)
        return status_fail(STATUS_BAD_INPUT,
                           "%s: %.60s, written out from /, is a path of %d bytes, and a run "
                           "keeps at most %zu of it; give a link with a shorter path, or move it",
                           key, path, length, size - 1);
    memcpy(path, absolute, (size_t)length + 1);
    return STATUS_OK;
}

static bool is_builtin(const char *model) {
    const char *name;
    for (int i = 0; (name = model_builtin(i)); i++)
        if (!strcmp(name, model))
            return true;
    return false;
}

/* Names are names; everything else is a path. */
static enum status keep_paths(struct settings *settings) {
    const char *data = settings->data;
    if (*settings->model && !is_builtin(settings->model))
        STATUS_TRY(make_absolute("model", settings->model, sizeof settings->model));
    if (*data && strcmp(data, "generated") != 0 && strcmp(data, "fashion-mnist") != 0)
        STATUS_TRY(make_absolute("data", settings->data, sizeof settings->data));
    return STATUS_OK;
}

/* Whether the model's file still says what it did; a run goes on with what it was saved with. */
static enum status compare_model(const struct model *model, const char *name, struct model_ends ends,
                                 struct resume *resume) {
    struct model *other;
    enum status status = model_read(name, ends, NAN, &other);
    bool same = status == STATUS_OK && !strcmp(other->source, model->source);
    if (status == STATUS_OK)
        model_free(other);
    if (same)
        return STATUS_OK;
    if (resume->model_given)
        return status == STATUS_OK
                   ? status_fail(STATUS_REFUSED,
                                 "the run is of the model %s and can't go on with %s; start another run",
                                 model->name, name)
                   : status;
    resume_note(resume, "%s %s: the run goes on with the model it was saved with", name,
                status == STATUS_OK ? "was changed" : "can't be read any more");
    return STATUS_OK;
}

/* The model: of a resumed run the one it was saved with, and no other. */
static enum status open_model(const char *name, struct resume *resume, struct model_ends ends,
                              struct model **out) {
    if (!resume || !resume->about.model_text)
        return model_read(name, ends, NAN, out);
    char file[MODEL_NAME_MAX + 32];
    snprintf(file, sizeof file, "%s.ini of the checkpoint", resume->about.model);
    STATUS_TRY(model_parse(file, resume->about.model_text, ends, NAN, out));
    return resume->only_values ? STATUS_OK : compare_model(*out, name, ends, resume);
}

/* The number of training images stays the same as long as a run lasts. */
static enum status check_images(const struct resume *resume, const struct snapshot *from) {
    if (resume->only_values || resume->record.train == WIRE_UNKNOWN_INT ||
        resume->record.train == from->epoch_images)
        return STATUS_OK;
    return status_fail(STATUS_BAD_INPUT,
                       "%s is of another run: its data have %lld training images, this run's %lld; move it "
                       "away to go on from the checkpoint before it",
                       resume->checkpoint, (long long)from->epoch_images, (long long)resume->record.train);
}

static enum status open_all(const struct trainer_options *options, struct resume *resume, struct session *s) {
    const struct settings *settings = &options->settings;
    const char *model = *settings->model ? settings->model : settings_find("model")->fallback;
    STATUS_TRY(session_open_device(settings, &s->device));
    STATUS_TRY(session_open_data(settings, &s->data));
    struct model_ends ends = {s->data->train.shape.h, s->data->train.shape.w, s->data->train.shape.c,
                              s->data->classes};
    STATUS_TRY(open_model(model, resume, ends, &s->model));
    struct trainer_options complete = *options;
    if (resume && *resume->checkpoint) {
        STATUS_TRY(checkpoint_read(resume->checkpoint, s->model, &s->from));
        STATUS_TRY(check_images(resume, &s->from.snapshot));
        /* of a checkpoint that was saved before paths were kept whole */
        STATUS_TRY(keep_paths(&s->from.snapshot.settings));
        complete.resume = &s->from.snapshot;
        if (resume->only_values) { /* other data are welcome */
            s->from.snapshot.epoch_images = s->data->train.count;
            s->from.snapshot.progress.place = (struct loader_place){0};
            s->from.snapshot.applied = NULL;
        }
    }
    complete.device = s->device;
    complete.data = s->data;
    complete.model = s->model;
    /* config.ini names what was really taken */
    snprintf(complete.settings.model, sizeof complete.settings.model, "%s", model);
    if (!*settings->data)
        snprintf(complete.settings.data, sizeof complete.settings.data, "%s", s->data->name);
    STATUS_TRY(keep_paths(&complete.settings));
    if (resume && *resume->notes)
        complete.resume_notes = resume->notes;
    return trainer_open(&complete, &s->trainer);
}

enum status session_open(const struct trainer_options *options, struct resume *resume, struct session *out) {
    *out = (struct session){0};
    enum status status = open_all(options, resume, out);
    if (status != STATUS_OK)
        session_close(out);
    return status;
}

void session_close(struct session *session) {
    trainer_close(session->trainer);
    checkpoint_free(&session->from);
    model_free(session->model);
    dataset_close(session->data);
    device_close(&session->device);
    *session = (struct session){0};
}

void session_describe(const struct session *session, FILE *to) {
    const struct settings *settings = trainer_settings(session->trainer);
    struct trainer_sizes sizes = trainer_sizes(session->trainer);
    struct device_info info;
    char words[5][32];
    const struct dataset *data = session->data;
    int64_t batch = settings_batch(settings, settings->towers);
    int64_t images = batch < data->train.count ? batch : data->train.count;
    fprintf(to, "model   %s, %lld parameters, %d x %d x %d in, %d classes out\n", session->model->name,
            (long long)session->model->parameter_total, session->model->input.h, session->model->input.w,
            session->model->input.c, session->model->classes);
    fprintf(to, "data    %s (%s), %lld training and %lld test images of %d x %d x %d; distortions: %s\n",
            data->name, data->format, (long long)data->train.count, (long long)data->test.count,
            data->train.shape.h, data->train.shape.w, data->train.shape.c, settings->distort);
    if (session->device.ops->describe(session->device.device, &info) == STATUS_OK)
        fprintf(to, "device  %s: %s%s%s, %d thread%s\n", info.name, info.description, *info.isa ? ", " : "",
                info.isa, info.threads, info.threads == 1 ? "" : "s");
    if (settings->batch_per_tower > 0)
        fprintf(to,
                "batch   %lld images for each of %lld towers, %lld in all: more towers make the batch larger "
                "and the "
                "epoch shorter\n",
                (long long)settings->batch_per_tower, (long long)settings->towers, (long long)batch);
    else
        fprintf(to, "batch   %lld images, shared by %lld towers\n", (long long)settings->batch,
                (long long)settings->towers);
    if (images < settings->towers)
        fprintf(to, "idle    %lld towers: a step has %lld images\n", (long long)(settings->towers - images),
                (long long)images);
    fprintf(to, "memory  %d towers of %s, %d workers of %s, shared %s, evaluation %s: %s\n", sizes.towers,
            memory_words(sizes.tower_bytes, words[0]), sizes.workers,
            memory_words(sizes.worker_bytes, words[1]), memory_words(sizes.shared_bytes, words[2]),
            memory_words(sizes.evaluation_bytes, words[3]), memory_words(sizes.total_bytes, words[4]));
    if (*data->notes)
        fprintf(to, "%s", data->notes);
}
