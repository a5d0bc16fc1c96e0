#include "engine/base/hash.h"
#include "engine/train/checkpoint_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(field) offsetof(struct snapshot, field)

const struct checkpoint_slot checkpoint_slots[CHECKPOINT_SLOTS] = {{"", "values", AT(parameters)},
                                                                   {"/momentum", "momentum", AT(velocity)},
                                                                   {"/average", "average", AT(average)}};

const struct checkpoint_counter checkpoint_counters[] = {
    {"counters/step", CHECKPOINT_WHOLE, AT(progress.steps), false},
    {"counters/images", CHECKPOINT_WHOLE, AT(progress.images), false},
    {"counters/epoch", CHECKPOINT_WHOLE, AT(progress.place.epoch), false},
    {"counters/position", CHECKPOINT_WHOLE, AT(progress.place.position), false},
    {"counters/epoch_images", CHECKPOINT_WHOLE, AT(epoch_images), false},
    {"counters/best_precision", CHECKPOINT_REAL, AT(best), true},
    {"schedule/base", CHECKPOINT_REAL, AT(schedule.base), false},
    {"schedule/decay", CHECKPOINT_REAL, AT(schedule.decay), false},
    {"schedule/period_images", CHECKPOINT_REAL, AT(schedule.period_images), false},
    {"schedule/start", CHECKPOINT_WHOLE, AT(schedule.start), false},
    {"noise_scale/gradient2", CHECKPOINT_REAL, AT(noise.gradient2), true},
    {"noise_scale/spread", CHECKPOINT_REAL, AT(noise.spread), true},
    {"running/steps", CHECKPOINT_WHOLE, AT(running.steps), false},
    {"running/loss", CHECKPOINT_REAL, AT(running.loss), true},
    {"running/any", CHECKPOINT_FLAG, AT(running.any), false},
    {"running/loss_min", CHECKPOINT_REAL, AT(running.loss_min), true},
    {"running/loss_max", CHECKPOINT_REAL, AT(running.loss_max), true},
    {"running/grad_norm_max", CHECKPOINT_REAL, AT(running.grad_norm_max), true},
};
const int checkpoint_counter_count = sizeof checkpoint_counters / sizeof *checkpoint_counters;

enum status checkpoint_finite(const char *where, const char *tensor, const float *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return status_fail(STATUS_NON_FINITE,
                               "%s: value %zu of %s is %s: a checkpoint holds finite numbers", where, i,
                               tensor, isnan(values[i]) ? "NaN" : "infinite");
    return STATUS_OK;
}

uint32_t checkpoint_sum(const float *values, size_t count) {
    uint64_t hash = hash_bytes(values, count * sizeof *values);
    return (uint32_t)(hash ^ hash >> 32);
}

uint64_t checkpoint_state_part(const char *name, const void *value, size_t size) {
    return hash_step(hash_bytes(name, strlen(name)), hash_bytes(value, size));
}

/* ---- contents */

enum { SUM_CHARS = 9 }; /* eight digits and a space */

/* Everything the writer points at while a file is made. */
struct contents {
    struct arena arena;
    struct safetensors_tensor *tensors;
    struct safetensors_word words[12];
    int tensor_count, word_count;
    char *config;
};

static enum status add_counters(struct contents *c, const char *path, const struct snapshot *snapshot) {
    for (int i = 0; i < checkpoint_counter_count; i++) {
        const struct checkpoint_counter *counter = &checkpoint_counters[i];
        const char *at = (const char *)snapshot + counter->offset;
        struct safetensors_tensor *tensor = &c->tensors[c->tensor_count++];
        *tensor = (struct safetensors_tensor){
            .name = counter->name, .type = SAFETENSORS_I64, .dims = {1}, .dim_count = 1, .data = at};
        if (counter->number == CHECKPOINT_REAL) {
            tensor->type = SAFETENSORS_F64;
            if (!isfinite(*(const double *)at))
                return status_fail(STATUS_NON_FINITE,
                                   "%s: %s is not finite: a checkpoint holds finite numbers", path,
                                   counter->name);
        } else if (counter->number == CHECKPOINT_FLAG) {
            int64_t *flag = arena_alloc(&c->arena, sizeof *flag);
            if (!flag)
                return status_fail(STATUS_NO_MEMORY, "%s: no memory to save it", path);
            *flag = *(const bool *)at;
            tensor->data = flag;
        }
    }
    return STATUS_OK;
}

static void add_word(struct contents *c, const char *key, const char *value) {
    c->words[c->word_count++] = (struct safetensors_word){key, value};
}

static enum status add_parameters(struct contents *c, const char *path, const struct snapshot *snapshot) {
    const struct model *model = snapshot->model;
    size_t most = (size_t)model->parameter_count * CHECKPOINT_SLOTS * SUM_CHARS, used = 0;
    char *sums = arena_array(&c->arena, most + 1, 1);
    if (!sums)
        return status_fail(STATUS_NO_MEMORY, "%s: no memory to save it", path);
    *sums = 0;
    for (int i = 0; i < model->parameter_count; i++)
        for (int slot = 0; slot < CHECKPOINT_SLOTS; slot++) {
            const struct model_parameter *parameter = &model->parameters[i];
            const float *values = checkpoint_slot_values(snapshot, slot);
            if (!values)
                continue;
            values += parameter->offset;
            struct safetensors_tensor *tensor = &c->tensors[c->tensor_count++];
            tensor->name = arena_format(&c->arena, "%s%s", parameter->name, checkpoint_slots[slot].suffix);
            if (!tensor->name)
                return status_fail(STATUS_NO_MEMORY, "%s: no memory to save it", path);
            tensor->type = SAFETENSORS_F32;
            tensor->data = values;
            tensor->dim_count = parameter->dim_count;
            for (int d = 0; d < parameter->dim_count; d++)
                tensor->dims[d] = parameter->dims[d];
            STATUS_TRY(checkpoint_finite(path, tensor->name, values, parameter->count));
            snprintf(sums + used, most + 1 - used, " %08" PRIx32, checkpoint_sum(values, parameter->count));
            used += SUM_CHARS;
        }
    add_word(c, "sums", used ? sums + 1 : sums);
    return STATUS_OK;
}

static enum status add_words(struct contents *c, const char *path, const struct snapshot *snapshot) {
    size_t size;
    FILE *memory = open_memstream(&c->config, &size);
    if (!memory)
        return status_fail(STATUS_NO_MEMORY, "%s: no memory to save it", path);
    enum status status = settings_write(&snapshot->settings, memory);
    if (fclose(memory) != 0 && status == STATUS_OK)
        status = status_fail(STATUS_NO_MEMORY, "%s: no memory to save it", path);
    if (status != STATUS_OK)
        return status;
    const char *step = arena_format(&c->arena, "%lld", (long long)snapshot->progress.steps);
    const char *seed = arena_format(&c->arena, "%lld", (long long)snapshot->settings.seed);
    const char *slots = arena_format(&c->arena, "values%s%s", snapshot->velocity ? " momentum" : "",
                                     snapshot->average ? " average" : "");
    /* seven digits: the number of right images of up to a million tells itself apart */
    const char *precision =
        isnan(snapshot->precision) ? "" : arena_format(&c->arena, "%.7f", snapshot->precision);
    if (!step || !seed || !slots || !precision)
        return status_fail(STATUS_NO_MEMORY, "%s: no memory to save it", path);
    add_word(c, "format", CHECKPOINT_FORMAT);
    add_word(c, "model", snapshot->model->name);
    add_word(c, "model_text", snapshot->model->source);
    add_word(c, "step", step);
    add_word(c, "seed", seed);
    add_word(c, "slots", slots);
    add_word(c, "precision", precision);
    add_word(c, "config", c->config);
    if (snapshot->applied)
        add_word(c, "applied", snapshot->applied);
    if (!snapshot->train_content)
        return STATUS_OK;
    const char *content =
        arena_format(&c->arena, "%016llx %016llx", (unsigned long long)snapshot->train_content,
                     (unsigned long long)snapshot->test_content);
    if (!content)
        return status_fail(STATUS_NO_MEMORY, "%s: no memory to save it", path);
    add_word(c, "content", content);
    return STATUS_OK;
}

/* When all words and counters are there. */
static enum status add_state(struct contents *c, const char *path) {
    uint64_t state = 0;
    for (int i = 0; i < c->word_count; i++) {
        char *clean = safetensors_clean(c->words[i].value);
        if (!clean)
            return status_fail(STATUS_NO_MEMORY, "%s: no memory to save it", path);
        state += checkpoint_state_part(c->words[i].key, clean, strlen(clean));
        free(clean);
    }
    for (int i = 0; i < checkpoint_counter_count; i++)
        state += checkpoint_state_part(c->tensors[i].name, c->tensors[i].data, CHECKPOINT_COUNTER_BYTES);
    const char *word = arena_format(&c->arena, "%016" PRIx64, state);
    if (!word)
        return status_fail(STATUS_NO_MEMORY, "%s: no memory to save it", path);
    add_word(c, "state", word);
    return STATUS_OK;
}

static enum status fill(struct contents *c, const char *path, const struct snapshot *snapshot) {
    size_t most =
        (size_t)checkpoint_counter_count + (size_t)snapshot->model->parameter_count * CHECKPOINT_SLOTS;
    c->tensors = arena_array(&c->arena, most, sizeof *c->tensors);
    if (!c->tensors)
        return status_fail(STATUS_NO_MEMORY, "%s: no memory to save it", path);
    STATUS_TRY(add_words(c, path, snapshot));
    /* first, so that eight-byte values lie at multiples of eight */
    STATUS_TRY(add_counters(c, path, snapshot));
    STATUS_TRY(add_parameters(c, path, snapshot));
    return add_state(c, path);
}

/* ---- the file */

static enum status failed(const char *path, const char *doing, uint64_t bytes) {
    return status_fail(status_of_write(errno), "%s: can't %s (%llu bytes): %s", path, doing,
                       (unsigned long long)bytes, strerror(errno));
}

/* Some file systems give up waiting when a signal comes. */
static bool synced(int fd) {
    int result;
    do
        result = fsync(fd);
    while (result != 0 && errno == EINTR);
    return result == 0;
}

static enum status write_aside(int folder, const char *aside, const char *name, const char *path,
                               const struct contents *c, uint64_t *bytes) {
    /* a killed writer's, or a pipe that would hold us up, or a link elsewhere */
    (void)unlinkat(folder, aside, 0);
    int fd = openat(folder, aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return status_fail(status_of_write(errno),
                           "%s.tmp: can't make this file, which is to become the checkpoint: %s", path,
                           strerror(errno));
    enum status status =
        safetensors_write(fd, path, c->words, c->word_count, c->tensors, c->tensor_count, bytes);
    if (status == STATUS_OK && !synced(fd))
        status = failed(path, "bring it to the disk", *bytes);
    if (close(fd) != 0 && errno != EINTR && status == STATUS_OK) /* with EINTR it is closed all the same */
        status = failed(path, "close it", *bytes);
    if (status == STATUS_OK && renameat(folder, aside, folder, name) != 0)
        status = failed(path, "give it its name", *bytes);
    if (status != STATUS_OK)
        (void)unlinkat(folder, aside, 0);
    else if (!synced(folder)) /* its entry is on the disk only then */
        status = failed(path, "bring its name to the disk", *bytes);
    return status;
}

enum status checkpoint_write_in(int folder, const char *name, const char *path,
                                const struct snapshot *snapshot, uint64_t *bytes) {
    struct contents c = {0};
    uint64_t written = 0;
    enum status status = fill(&c, path, snapshot);
    char *aside = status == STATUS_OK ? arena_format(&c.arena, "%s.tmp", name) : NULL;
    if (status == STATUS_OK && !aside)
        status = status_fail(STATUS_NO_MEMORY, "%s: no memory to save it", path);
    if (status == STATUS_OK)
        status = write_aside(folder, aside, name, path, &c, &written);
    if (bytes)
        *bytes = written;
    free(c.config);
    arena_free(&c.arena);
    return status;
}
