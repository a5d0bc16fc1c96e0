#include "engine/base/text.h"
#include "engine/train/checkpoint_parts.h"
#include "engine/train/rules.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is added to a counter from here on does not overflow, and as a double it is exact. */
#define WHOLE_MAX (INT64_C(1) << 53)

static enum status no_memory(const char *path) {
    return status_fail(STATUS_NO_MEMORY, "%s: no memory to read it", path);
}

/* ---- metadata */

static enum status need_word(const struct safetensors *file, const char *key, const char **out) {
    *out = safetensors_word(file, key);
    return *out ? STATUS_OK
                : status_fail(STATUS_BAD_INPUT,
                              "%s: its metadata has no \"%s\": it is no checkpoint of towerscope", file->path,
                              key);
}

static enum status check_format(const struct safetensors *file) {
    const char *format;
    STATUS_TRY(need_word(file, "format", &format));
    if (strcmp(format, CHECKPOINT_FORMAT) != 0)
        return status_fail(STATUS_BAD_INPUT,
                           "%s: its format is \"%.60s\"; \"" CHECKPOINT_FORMAT "\" is expected", file->path,
                           format);
    return STATUS_OK;
}

/* The precision of an evaluation at this step; NaN: there was none, and the word is empty. */
static enum status read_precision(const struct safetensors *file, double *out) {
    const char *word = safetensors_word(file, "precision");
    *out = NAN;
    if (!word || !*word || (text_real(word, out) && *out >= 0 && *out <= 1))
        return STATUS_OK;
    return status_fail(STATUS_BAD_INPUT, "%s: its precision is \"%.40s\"; a number from 0 to 1 is expected",
                       file->path, word);
}

/* Hashes of the images it was made from; files of earlier versions say nothing of that. */
static enum status read_content(const struct safetensors *file, struct snapshot *out) {
    const char *word = safetensors_word(file, "content");
    unsigned long long train, test;
    int end = 0;
    if (!word)
        return STATUS_OK;
    if (strlen(word) != 33 || strspn(word, "0123456789abcdef ") != 33 || word[16] != ' ' ||
        sscanf(word, "%16llx %16llx%n", &train, &test, &end) != 2 || end != 33)
        return status_fail(STATUS_BAD_INPUT,
                           "%s: its content is \"%.40s\"; two numbers of 16 hexadecimal digits are expected",
                           file->path, word);
    out->train_content = train;
    out->test_content = test;
    return STATUS_OK;
}

/* The wrong rule that it was saved under. */
static enum status read_applied(const struct safetensors *file, struct snapshot *out) {
    const char *word = safetensors_word(file, "applied");
    out->applied = NULL;
    if (!word)
        return STATUS_OK;
    out->applied = rule_name(rule_find(word));
    return out->applied
               ? STATUS_OK
               : status_fail(STATUS_BAD_INPUT,
                             "%s: it was saved under the wrong rule \"%.40s\", which is none of those known",
                             file->path, word);
}

/* Settings in force when it was saved. */
static enum status read_settings(const struct safetensors *file, struct settings *out) {
    const char *config;
    STATUS_TRY(need_word(file, "config", &config));
    settings_clear(out);
    char *where;
    if (asprintf(&where, "%s, config", file->path) < 0)
        return no_memory(file->path);
    enum status status = settings_read_text(out, where, config);
    free(where);
    return status;
}

enum status checkpoint_look(const char *path, struct checkpoint_about *out) {
    *out = (struct checkpoint_about){.precision = NAN};
    struct safetensors file;
    const char *model, *text, *step;
    enum status status = safetensors_open(path, &file);
    if (status == STATUS_OK)
        status = check_format(&file);
    if (status == STATUS_OK)
        status = need_word(&file, "model", &model);
    if (status == STATUS_OK)
        status = need_word(&file, "model_text", &text);
    if (status == STATUS_OK)
        status = need_word(&file, "step", &step);
    if (status == STATUS_OK)
        status = read_settings(&file, &out->settings);
    if (status == STATUS_OK && !text_integer(step, &out->step))
        status = status_fail(STATUS_BAD_INPUT, "%s: its step is \"%.40s\"; a whole number is expected", path,
                             step);
    if (status == STATUS_OK)
        status = read_precision(&file, &out->precision);
    if (status == STATUS_OK) {
        snprintf(out->model, sizeof out->model, "%s", model);
        out->model_text = strdup(text);
        if (!out->model_text)
            status = no_memory(path);
    }
    safetensors_close(&file);
    return status;
}

void checkpoint_about_free(struct checkpoint_about *about) {
    free(about->model_text);
    *about = (struct checkpoint_about){.precision = NAN};
}

/* ---- tensors */

struct reader {
    struct safetensors file;
    const struct model *model;
    struct checkpoint *out;
    bool has[CHECKPOINT_SLOTS];
    int expected;     /* tensors seen so far that belong in it */
    const char *sums; /* of the tensors that are still to be compared */
    uint64_t counted; /* what the counters add to the sum of the state */
};

static enum status find(struct reader *r, const struct safetensors_tensor *expected,
                        const struct safetensors_tensor **out) {
    *out = safetensors_find(&r->file, expected->name);
    char found[256], wanted[256];
    safetensors_describe(expected, wanted, sizeof wanted);
    if (!*out)
        return status_fail(STATUS_BAD_INPUT, "%s: the tensor %s, %s, is missing", r->file.path,
                           expected->name, wanted);
    safetensors_describe(*out, found, sizeof found);
    if (strcmp(found, wanted) != 0)
        return status_fail(STATUS_BAD_INPUT, "%s: the tensor %s is %s; the model %s needs %s", r->file.path,
                           expected->name, found, r->model->name, wanted);
    r->expected++;
    return STATUS_OK;
}

static enum status read_counters(struct reader *r) {
    for (int i = 0; i < checkpoint_counter_count; i++) {
        const struct checkpoint_counter *counter = &checkpoint_counters[i];
        bool real = counter->number == CHECKPOINT_REAL;
        const struct safetensors_tensor *tensor, expected = {.name = counter->name,
                                                             .type = real ? SAFETENSORS_F64 : SAFETENSORS_I64,
                                                             .dims = {1},
                                                             .dim_count = 1};
        union {
            int64_t whole;
            double real;
        } value = {0};
        STATUS_TRY(find(r, &expected, &tensor));
        STATUS_TRY(safetensors_read(&r->file, tensor, &value));
        r->counted += checkpoint_state_part(counter->name, &value, CHECKPOINT_COUNTER_BYTES);
        bool good = real ? isfinite(value.real) && (counter->may_be_negative || value.real >= 0)
                         : value.whole >= 0 && value.whole <= WHOLE_MAX;
        if (!good)
            return status_fail(STATUS_BAD_INPUT, "%s: %s is %.16g; %s is expected", r->file.path,
                               counter->name, real ? value.real : (double)value.whole,
                               counter->may_be_negative ? "a finite number" : "a number from 0 to 2^53");
        void *at = (char *)&r->out->snapshot + counter->offset;
        if (real)
            *(double *)at = value.real;
        else if (counter->number == CHECKPOINT_FLAG)
            *(bool *)at = value.whole != 0;
        else
            *(int64_t *)at = value.whole;
    }
    return STATUS_OK;
}

/* Which slots the file says it has. */
static enum status read_slots(struct reader *r) {
    const char *words;
    STATUS_TRY(need_word(&r->file, "slots", &words));
    for (const char *word = words; *word;) {
        size_t length = strcspn(word, " ");
        int slot = 0;
        while (slot < CHECKPOINT_SLOTS && (strlen(checkpoint_slots[slot].word) != length ||
                                           strncmp(checkpoint_slots[slot].word, word, length) != 0))
            slot++;
        if (slot == CHECKPOINT_SLOTS)
            return status_fail(STATUS_BAD_INPUT,
                               "%s: its slots are \"%.60s\"; only values, momentum and average are known",
                               r->file.path, words);
        r->has[slot] = true;
        word += length;
        word += strspn(word, " ");
    }
    if (!r->has[0])
        return status_fail(STATUS_BAD_INPUT, "%s: its slots are \"%.60s\", without values", r->file.path,
                           words);
    return STATUS_OK;
}

/* Call `visit` for each tensor of a parameter that must be there, with its description. */
static enum status each_tensor(struct reader *r,
                               enum status (*visit)(struct reader *r,
                                                    const struct safetensors_tensor *expected,
                                                    const struct model_parameter *parameter, int slot)) {
    for (int i = 0; i < r->model->parameter_count; i++)
        for (int slot = 0; slot < CHECKPOINT_SLOTS; slot++) {
            if (!r->has[slot])
                continue;
            const struct model_parameter *parameter = &r->model->parameters[i];
            char name[CHECKPOINT_NAME_MAX];
            snprintf(name, sizeof name, "%s%s", parameter->name, checkpoint_slots[slot].suffix);
            struct safetensors_tensor expected = {
                .name = name, .type = SAFETENSORS_F32, .dim_count = parameter->dim_count};
            for (int d = 0; d < parameter->dim_count; d++)
                expected.dims[d] = parameter->dims[d];
            STATUS_TRY(visit(r, &expected, parameter, slot));
        }
    return STATUS_OK;
}

static enum status check_tensor(struct reader *r, const struct safetensors_tensor *expected,
                                const struct model_parameter *parameter, int slot) {
    (void)parameter, (void)slot;
    const struct safetensors_tensor *tensor;
    return find(r, expected, &tensor);
}

/* Where the values of a tensor go. */
static float *place(const struct reader *r, const struct model_parameter *parameter, int slot) {
    int before = 0; /* slots whose arrays lie before this one's */
    for (int s = 0; s < slot; s++)
        before += r->has[s];
    return r->out->values + (size_t)before * r->model->flat_count + parameter->offset;
}

static enum status read_tensor(struct reader *r, const struct safetensors_tensor *expected,
                               const struct model_parameter *parameter, int slot) {
    float *values = place(r, parameter, slot);
    STATUS_TRY(safetensors_read(&r->file, safetensors_find(&r->file, expected->name), values));
    return checkpoint_finite(r->file.path, expected->name, values, parameter->count);
}

/* The values are those that were saved: a disk or a copy may have put zeros or a past into the file. */
static enum status check_sum(struct reader *r, const struct safetensors_tensor *expected,
                             const struct model_parameter *parameter, int slot) {
    uint32_t found = checkpoint_sum(place(r, parameter, slot), parameter->count);
    unsigned saved;
    int length = 0;
    if (sscanf(r->sums, "%8x%n", &saved, &length) != 1)
        return status_fail(STATUS_BAD_INPUT, "%s: its sums have no number for the tensor %s", r->file.path,
                           expected->name);
    r->sums += length;
    if (saved == found)
        return STATUS_OK;
    return status_fail(STATUS_BAD_INPUT,
                       "%s: the tensor %s is not as it was saved (its sum is %08x; %08x is expected): the "
                       "file is damaged; a run goes on from the checkpoint before it when this one is moved "
                       "away",
                       r->file.path, expected->name, (unsigned)found, saved);
}

/* The same of the words and counters, good as each of them may look. Files of earlier versions have no sum.
 */
static enum status check_state(const struct reader *r) {
    const char *saved = safetensors_word(&r->file, "state");
    char found[17];
    uint64_t state = r->counted;
    for (int i = 0; i < r->file.word_count; i++) {
        const struct safetensors_word *word = &r->file.words[i];
        if (strcmp(word->key, "state") != 0)
            state += checkpoint_state_part(word->key, word->value, strlen(word->value));
    }
    snprintf(found, sizeof found, "%016" PRIx64, state);
    if (!saved || strcmp(saved, found) == 0)
        return STATUS_OK;
    return status_fail(
        STATUS_BAD_INPUT,
        "%s: its metadata or counters are not as they were saved (their sum is %s; %.16s is "
        "expected): the file is damaged; a run goes on from the checkpoint before it when this one "
        "is moved away",
        r->file.path, found, saved);
}

/* Whether a name is one that a checkpoint of this model holds. */
static bool belongs(const struct reader *r, const char *name) {
    for (int i = 0; i < checkpoint_counter_count; i++)
        if (strcmp(name, checkpoint_counters[i].name) == 0)
            return true;
    for (int i = 0; i < r->model->parameter_count; i++) {
        size_t length = strlen(r->model->parameters[i].name);
        if (strncmp(name, r->model->parameters[i].name, length) != 0)
            continue;
        for (int slot = 0; slot < CHECKPOINT_SLOTS; slot++)
            if (r->has[slot] && strcmp(name + length, checkpoint_slots[slot].suffix) == 0)
                return true;
    }
    return false;
}

static enum status check_strangers(const struct reader *r) {
    for (int i = 0; r->file.tensor_count != r->expected && i < r->file.tensor_count; i++)
        if (!belongs(r, r->file.tensors[i].name))
            return status_fail(STATUS_BAD_INPUT,
                               "%s: the tensor %.200s belongs to no parameter of the model %s", r->file.path,
                               r->file.tensors[i].name, r->model->name);
    return STATUS_OK;
}

/* A whole number that stands in the metadata too. */
static enum status check_word(const struct safetensors *file, const char *key, const char *where,
                              int64_t value) {
    const char *word;
    int64_t said;
    STATUS_TRY(need_word(file, key, &word));
    if (text_integer(word, &said) && said == value)
        return STATUS_OK;
    return status_fail(STATUS_BAD_INPUT, "%s: its %s is \"%.40s\" in the metadata and %lld in %s", file->path,
                       key, word, (long long)value, where);
}

static enum status read_all(struct reader *r) {
    struct snapshot *snapshot = &r->out->snapshot;
    STATUS_TRY(check_format(&r->file));
    STATUS_TRY(read_settings(&r->file, &snapshot->settings));
    STATUS_TRY(read_slots(r));
    STATUS_TRY(each_tensor(r, check_tensor));
    STATUS_TRY(read_counters(r));
    STATUS_TRY(check_strangers(r));
    STATUS_TRY(read_precision(&r->file, &snapshot->precision));
    STATUS_TRY(read_content(&r->file, snapshot));
    STATUS_TRY(read_applied(&r->file, snapshot));
    STATUS_TRY(check_word(&r->file, "step", "counters/step", snapshot->progress.steps));
    STATUS_TRY(check_word(&r->file, "seed", "config, seed", snapshot->settings.seed));
    size_t slots = 0;
    for (int slot = 0; slot < CHECKPOINT_SLOTS; slot++)
        slots += r->has[slot];
    /* no more than the file's own size */
    r->out->values = calloc(slots * r->model->flat_count, sizeof(float));
    if (!r->out->values)
        return no_memory(r->file.path);
    STATUS_TRY(each_tensor(r, read_tensor));
    const float *next = r->out->values;
    for (int slot = 0; slot < CHECKPOINT_SLOTS; slot++)
        if (r->has[slot]) {
            memcpy((char *)snapshot + checkpoint_slots[slot].offset, &next, sizeof next);
            next += r->model->flat_count;
        }
    STATUS_TRY(checkpoint_check(r->file.path, snapshot));
    STATUS_TRY(check_state(r));
    r->sums = safetensors_word(&r->file, "sums");
    return r->sums ? each_tensor(r, check_sum) : STATUS_OK;
}

enum status checkpoint_read(const char *path, const struct model *model, struct checkpoint *out) {
    *out = (struct checkpoint){.snapshot.model = model};
    struct reader r = {.model = model, .out = out};
    enum status status = safetensors_open(path, &r.file);
    if (status == STATUS_OK)
        status = read_all(&r);
    safetensors_close(&r.file);
    return status;
}

void checkpoint_free(struct checkpoint *checkpoint) {
    free(checkpoint->values);
    *checkpoint = (struct checkpoint){0};
}
