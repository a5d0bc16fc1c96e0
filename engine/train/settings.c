#include "engine/train/settings.h"

#include "engine/base/inifile.h"
#include "engine/base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(field)       SETTING_TEXT, offsetof(struct settings, field), sizeof(((struct settings *)0)->field)
#define CHOICE(field)     SETTING_CHOICE, offsetof(struct settings, field), sizeof(((struct settings *)0)->field)
#define INTEGER(field)    SETTING_INTEGER, offsetof(struct settings, field), sizeof(int64_t)
#define REAL(field)       SETTING_REAL, offsetof(struct settings, field), sizeof(double)
#define FLAG(field)       SETTING_FLAG, offsetof(struct settings, field), sizeof(bool)
#define CLOSED(low, high) low, high, false, false
#define ANY               0, 0, false, false

static const double most = 1e15; /* of a counter: exact in double */

enum { KEEP = true, PASS = false };

/* clang-format off */
static const struct setting_key keys[] = {
    {"model", TEXT(model), ANY, KEEP, "NAME|FILE.ini", "cifar10", "the network"},
    {"data", TEXT(data), ANY, KEEP, "NAME|PATH", NULL,
     "fashion-mnist, generated, or a folder of images (default: fashion-mnist where installed)"},
    {"towers", INTEGER(towers), CLOSED(1, COMBINE_MAX_TOWERS), KEEP, "N", "2", "replicas that share each batch"},
    {"devices", TEXT(devices), ANY, KEEP, "NAME", NULL, "cpu, ref, cuda:0, or several GPUs, cuda:0,cuda:1 (default: the best there is)"},
    {"batch", INTEGER(batch), CLOSED(1, 1048576), KEEP, "N", "128", "images of a step, over all towers"},
    {"batch-per-tower", INTEGER(batch_per_tower), CLOSED(1, 1048576), KEEP, "N", NULL,
     "images of a step for each tower: more towers make the batch larger (the tutorial's rule)"},
    {"steps", INTEGER(steps), CLOSED(1, most), KEEP, "N", NULL, "end after N steps (default: no end)"},
    {"epochs", INTEGER(epochs), CLOSED(1, 1e9), KEEP, "N", NULL, "end after N passes over the training images"},
    {"lr", REAL(lr), CLOSED(0, 1e30), KEEP, "X", "0.1", "learning rate at the start"},
    {"lr-decay", REAL(lr_decay), 0, 1, true, false, KEEP, "X", "0.1", "factor of the learning rate each time it falls"},
    {"decay-epochs", REAL(decay_epochs), 0, 1e9, true, false, KEEP, "N", "350",
     "passes over the training images between two falls"},
    {"momentum", REAL(momentum), 0, 1, false, true, KEEP, "X", "0", "of the optimizer"},
    {"weight-decay", REAL(weight_decay), CLOSED(0, 1000), KEEP, "X", NULL,
     "replaces every weight decay of the model that is not 0"},
    {"clip-norm", REAL(clip_norm), CLOSED(0, 1e30), KEEP, "X", "0",
     "largest norm of the averaged gradient; 0: no limit"},
    {"ema", REAL(ema), 0, 1, false, true, KEEP, "X", "0.9999", "decay of the parameters' moving average; 0: none"},
    {"seed", INTEGER(seed), CLOSED(0, 9007199254740992.0), KEEP, "N", "1", "of every random number of the run"},
    {"distort", TEXT(distort), ANY, KEEP, "on|off|LIST", NULL,
     "of crop,flip,brightness,contrast (default: on; grey images other than fashion-mnist are not flipped)"},
    {"checkpoint-every", INTEGER(checkpoint_every), CLOSED(0, most), KEEP, "N", "1000",
     "steps between two saves; 0: only at the end"},
    {"keep", INTEGER(keep), CLOSED(1, 1e6), KEEP, "N", "3", "newest checkpoints that are kept"},
    {"eval-every", INTEGER(eval_every), CLOSED(0, most), KEEP, "N", "1000",
     "steps between two evaluations on the test images; 0: none"},
    {"log-every", INTEGER(log_every), CLOSED(1, most), KEEP, "N", "10", "steps between two printed lines"},
    {"record-every", INTEGER(record_every), CLOSED(0, most), KEEP, "N", "0",
     "steps between two recorded ones; 0: each up to 1,000, then some 20,000 in all"},
    {"resume", FLAG(resume), ANY, PASS, "", NULL, "go on from the newest checkpoint of the run NAME"},
    {"begin-again", FLAG(begin_again), ANY, PASS, "", NULL,
     "with --resume: at step 0, when the checkpoints of the run are gone"},
    {"threads", INTEGER(threads), CLOSED(0, 4096), KEEP, "N", "0", "of the processor; 0: one for each it has"},
    {"precision", CHOICE(precision), ANY, KEEP, "f32|tf32|bf16", "f32", "of matrix products and convolutions"},
    {"isa", CHOICE(isa), ANY, KEEP, "avx512|avx2|plain", NULL, "vectors of the processor (default: the widest it has)"},
    {"deterministic", FLAG(deterministic), ANY, KEEP, "", "no", "only kernels that give the same bytes each time"},
    {"no-graphs", FLAG(no_graphs), ANY, KEEP, "", "no", "on a GPU: launch every kernel by itself"},
    {"runs", TEXT(runs), ANY, PASS, "DIR", "runs", "where run folders are (else $TOWERSCOPE_RUNS)"},
};
/* clang-format on */

enum { KEYS = sizeof keys / sizeof keys[0] };
_Static_assert(KEYS <= 64, "a bit of settings.given for each key");

static const char *const pairs[][2] = {{"batch", "batch-per-tower"}, {"steps", "epochs"}};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

const struct setting_key *settings_keys(int *count) {
    *count = KEYS;
    return keys;
}

static bool same_name(const char *a, const char *b) {
    for (; *a || *b; a++, b++)
        if ((*a == '_' ? '-' : *a) != (*b == '_' ? '-' : *b))
            return false;
    return true;
}

const struct setting_key *settings_find(const char *key) {
    for (int i = 0; i < KEYS; i++)
        if (same_name(key, keys[i].key))
            return &keys[i];
    return NULL;
}

static uint64_t bit(const struct setting_key *key) {
    return (uint64_t)1 << (key - keys);
}

static void *field(struct settings *settings, const struct setting_key *key) {
    return (char *)settings + key->offset;
}

static const void *field_of(const struct settings *settings, const struct setting_key *key) {
    return (const char *)settings + key->offset;
}

static void clear_key(struct settings *settings, const struct setting_key *key) {
    settings->given &= ~bit(key);
    switch (key->type) {
    case SETTING_TEXT:
    case SETTING_CHOICE:
        *(char *)field(settings, key) = 0;
        break;
    case SETTING_INTEGER:
        *(int64_t *)field(settings, key) = -1;
        break;
    case SETTING_REAL:
        *(double *)field(settings, key) = NAN;
        break;
    case SETTING_FLAG:
        *(bool *)field(settings, key) = false;
        break;
    }
}

void settings_clear(struct settings *settings) {
    *settings = (struct settings){0};
    for (int i = 0; i < KEYS; i++)
        clear_key(settings, &keys[i]);
}

static enum status unknown_key(const char *where, const char *key) {
    const char *names[KEYS];
    for (int i = 0; i < KEYS; i++)
        names[i] = keys[i].key;
    const char *near = text_near(key, names, KEYS);
    if (!near)
        return status_fail(STATUS_BAD_INPUT, "%s: there is no setting \"%s\"", where, key);
    return status_fail(STATUS_BAD_INPUT, "%s: there is no setting \"%s\"; the nearest is \"%s\"", where, key,
                       near);
}

static enum status out_of_range(const char *where, const struct setting_key *key, const char *value) {
    return status_fail(STATUS_BAD_INPUT, "%s: %s is %s, which is out of its range: %s %.16g and %s %.16g",
                       where, key->key, value, key->low_open ? "more than" : "at least", key->low,
                       key->high_open ? "less than" : "at most", key->high);
}

static bool in_range(const struct setting_key *key, double x) {
    return (key->low_open ? x > key->low : x >= key->low) &&
           (key->high_open ? x < key->high : x <= key->high);
}

/* As whole numbers: the double next to 2^53 + 1 is 2^53. */
static bool integer_in_range(const struct setting_key *key, int64_t x) {
    return x >= (int64_t)key->low && x <= (int64_t)key->high;
}

static bool is_choice(const struct setting_key *key, const char *value) {
    size_t length = strlen(value);
    for (const char *word = key->value; word;) {
        const char *end = strchrnul(word, '|');
        if ((size_t)(end - word) == length && !strncmp(word, value, length))
            return true;
        word = *end ? end + 1 : NULL;
    }
    return false;
}

static bool read_flag(const char *value, bool *out) {
    static const char *const words[] = {"yes", "no", "true", "false", "on", "off", "1", "0"};
    for (int i = 0; i < 8; i++)
        if (!strcmp(value, words[i])) {
            *out = i % 2 == 0;
            return true;
        }
    return false;
}

static enum status set_value(struct settings *settings, const char *where, const struct setting_key *key,
                             const char *value) {
    void *at = field(settings, key);
    double real;
    int64_t integer;
    bool flag;
    switch (key->type) {
    case SETTING_CHOICE:
        if (!is_choice(key, value))
            return status_fail(STATUS_BAD_INPUT, "%s: %s is \"%s\"; it is one of %s", where, key->key, value,
                               key->value);
        /* fall through */
    case SETTING_TEXT:
        if (!*value)
            return status_fail(STATUS_BAD_INPUT, "%s: %s is empty; give %s", where, key->key, key->value);
        if (strlen(value) >= key->size)
            return status_fail(STATUS_BAD_INPUT, "%s: %s has %zu bytes; at most %zu are read", where,
                               key->key, strlen(value), key->size - 1);
        memcpy(at, value, strlen(value) + 1);
        return STATUS_OK;
    case SETTING_INTEGER:
        if (!text_integer(value, &integer))
            return status_fail(STATUS_BAD_INPUT, "%s: %s is \"%s\"; a whole number is needed", where,
                               key->key, value);
        if (!integer_in_range(key, integer))
            return out_of_range(where, key, value);
        *(int64_t *)at = integer;
        return STATUS_OK;
    case SETTING_REAL:
        if (!text_real(value, &real))
            return status_fail(STATUS_BAD_INPUT, "%s: %s is \"%s\"; a number is needed", where, key->key,
                               value);
        if (!in_range(key, real))
            return out_of_range(where, key, value);
        *(double *)at = real;
        return STATUS_OK;
    case SETTING_FLAG:
        if (!read_flag(value, &flag))
            return status_fail(STATUS_BAD_INPUT, "%s: %s is \"%s\"; yes or no is needed", where, key->key,
                               value);
        *(bool *)at = flag;
        return STATUS_OK;
    }
    return status_fail(STATUS_INTERNAL, "%s: the setting %s has no type", where, key->key);
}

enum status settings_set(struct settings *settings, const char *where, const char *name, const char *value) {
    const struct setting_key *key = settings_find(name);
    if (!key)
        return unknown_key(where, name);
    STATUS_TRY(set_value(settings, where, key, value));
    settings->given |= bit(key);
    return STATUS_OK;
}

enum status settings_allow(const char *where, const char *name, double value) {
    const struct setting_key *key = settings_find(name);
    char text[32];
    snprintf(text, sizeof text, "%.10g", value);
    if (!key)
        return unknown_key(where, name);
    if (!(key->type == SETTING_REAL || (key->type == SETTING_INTEGER && value == floor(value))))
        return status_fail(STATUS_BAD_INPUT, "%s: %s can't be %s: it is a whole number", where, key->key,
                           text);
    return in_range(key, value) ? STATUS_OK : out_of_range(where, key, text);
}

static enum status read_pairs(struct settings *settings, const char *path, const struct inifile *ini) {
    for (const struct inifile_section *s = ini->sections; s; s = s->next) {
        if (*s->name)
            return status_fail(STATUS_BAD_INPUT,
                               "%s:%d: a section [%s]; settings stand as key = value without sections", path,
                               s->line, s->name);
        for (const struct inifile_pair *p = s->pairs; p; p = p->next) {
            char where[600];
            snprintf(where, sizeof where, "%.560s:%d", path, p->line);
            STATUS_TRY(settings_set(settings, where, p->key, p->value));
        }
    }
    return STATUS_OK;
}

enum status settings_read_text(struct settings *settings, const char *file, const char *text) {
    struct inifile ini;
    STATUS_TRY(inifile_parse(file, text, &ini));
    struct settings read = *settings;
    enum status status = read_pairs(&read, file, &ini);
    inifile_free(&ini);
    if (status == STATUS_OK)
        *settings = read;
    return status;
}

enum status settings_read(struct settings *settings, const char *path) {
    char *text;
    STATUS_TRY(inifile_load(path, &text));
    enum status status = settings_read_text(settings, path, text);
    free(text);
    return status;
}

enum status settings_environment(struct settings *settings) {
    const char *runs = getenv("TOWERSCOPE_RUNS");
    return runs && *runs ? settings_set(settings, "TOWERSCOPE_RUNS", "runs", runs) : STATUS_OK;
}

void settings_overlay(struct settings *settings, const struct settings *over) {
    for (int p = 0; p < PAIRS; p++)
        for (int side = 0; side < 2; side++)
            if (over->given & bit(settings_find(pairs[p][side])))
                clear_key(settings, settings_find(pairs[p][!side]));
    for (int i = 0; i < KEYS; i++)
        if (over->given & bit(&keys[i])) {
            memcpy(field(settings, &keys[i]), field_of(over, &keys[i]), keys[i].size);
            settings->given |= bit(&keys[i]);
        }
}

enum status settings_check(const struct settings *settings, const char *where) {
    for (int p = 0; p < PAIRS; p++) {
        uint64_t both = bit(settings_find(pairs[p][0])) | bit(settings_find(pairs[p][1]));
        if ((settings->given & both) == both)
            return status_fail(STATUS_BAD_INPUT, "%s: %s and %s are both given; give one of them", where,
                               pairs[p][0], pairs[p][1]);
    }
    return STATUS_OK;
}

/* A model's default, when the key was not given and the model has one. */
static void complete_real(struct settings *settings, const char *name, double value) {
    const struct setting_key *key = settings_find(name);
    if (!(settings->given & bit(key)) && !isnan(value))
        *(double *)field(settings, key) = value;
}

static bool is_set(const struct settings *settings, const struct setting_key *key) {
    switch (key->type) {
    case SETTING_TEXT:
    case SETTING_CHOICE:
        return *(const char *)field_of(settings, key) != 0;
    case SETTING_INTEGER:
        return *(const int64_t *)field_of(settings, key) >= 0;
    case SETTING_REAL:
        return !isnan(*(const double *)field_of(settings, key));
    case SETTING_FLAG:
        return (settings->given & bit(key)) != 0;
    }
    return false;
}

void settings_complete(struct settings *settings, const struct model_defaults *defaults) {
    complete_real(settings, "lr", defaults->lr);
    complete_real(settings, "lr-decay", defaults->lr_decay);
    complete_real(settings, "decay-epochs", defaults->decay_epochs);
    complete_real(settings, "momentum", defaults->momentum);
    complete_real(settings, "clip-norm", defaults->clip_norm);
    complete_real(settings, "ema", defaults->ema);
    if (settings->batch < 0 && settings->batch_per_tower < 0 && defaults->batch > 0)
        settings->batch = defaults->batch;
    for (int i = 0; i < KEYS; i++) {
        const struct setting_key *key = &keys[i];
        if (!key->fallback || is_set(settings, key))
            continue;
        if (!strcmp(key->key, "batch") && settings->batch_per_tower >= 0)
            continue;
        /* the table's own defaults are right by test */
        (void)set_value(settings, "default", key, key->fallback);
    }
}

/* Shortest text that reads back to the same number. */
static void format_real(double x, char *out, size_t size) {
    if (x == floor(x) && fabs(x) < 1e15) {
        snprintf(out, size, "%.0f", x);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, size, "%.*g", digits, x);
        char *comma = strchr(out, ',');
        if (comma) /* a locale with a comma: files have dots */
            *comma = '.';
        double back;
        if (text_real(out, &back) && back == x)
            return;
    }
}

int64_t settings_batch(const struct settings *settings, int64_t towers) {
    return settings->batch_per_tower > 0 ? settings->batch_per_tower * towers : settings->batch;
}

void settings_format(const struct settings *settings, const struct setting_key *key, char *out, size_t size) {
    const void *at = field_of(settings, key);
    switch (key->type) {
    case SETTING_TEXT:
    case SETTING_CHOICE:
        snprintf(out, size, "%s", (const char *)at);
        break;
    case SETTING_INTEGER:
        snprintf(out, size, "%lld", (long long)*(const int64_t *)at);
        break;
    case SETTING_REAL:
        format_real(*(const double *)at, out, size);
        break;
    case SETTING_FLAG:
        snprintf(out, size, "%s", *(const bool *)at ? "yes" : "no");
        break;
    }
}

/* Whether a value is read back from `key = value` as it is. */
static bool fits_line(const char *value) {
    char before = ' ';
    for (const char *s = value; *s; before = *s++)
        if ((*s == ';' && (before == ' ' || before == '\t')) || (unsigned char)*s < ' ')
            return false;
    return !*value || (*value != ' ' && before != ' ');
}

enum status settings_write(const struct settings *settings, FILE *file) {
    for (int i = 0; i < KEYS; i++) {
        const struct setting_key *key = &keys[i];
        if (!key->kept || !is_set(settings, key))
            continue;
        char value[1100];
        settings_format(settings, key, value, sizeof value);
        if (!fits_line(value))
            return status_fail(
                STATUS_BAD_INPUT,
                "%s is \"%s\": config.ini can't hold a control character, a \";\" that begins a word, or a "
                "space at an end",
                key->key, value);
        if (fprintf(file, "%s = %s\n", key->key, value) < 0)
            return status_fail(STATUS_IO, "config.ini: %m");
    }
    return STATUS_OK;
}

/* What a setting that is not given stands for. */
static const char *unset_words(const struct setting_key *key) {
    if (!strcmp(key->key, "weight-decay"))
        return "the model's";
    return key->type == SETTING_TEXT ? "the default" : "none";
}

int settings_changes(const struct settings *old, const struct settings *now, char *out, size_t size) {
    int count = 0;
    *out = 0;
    for (int i = 0; i < KEYS; i++) {
        const struct setting_key *key = &keys[i];
        char was[1100], is[1100];
        snprintf(was, sizeof was, "%s", unset_words(key));
        snprintf(is, sizeof is, "%s", was);
        if (is_set(old, key))
            settings_format(old, key, was, sizeof was);
        if (is_set(now, key))
            settings_format(now, key, is, sizeof is);
        if (!key->kept || !strcmp(was, is))
            continue;
        size_t used = strlen(out);
        snprintf(out + used, size - used, "%s%s from %s to %s", count ? ", " : "", key->key, was, is);
        count++;
    }
    return count;
}

/* Whether a model file can give the default. */
static bool model_may_say(const struct setting_key *key) {
    static const char *const names[] = {"lr",        "lr-decay", "decay-epochs", "momentum",
                                        "clip-norm", "ema",      "batch"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(key->key, names[i]))
            return true;
    return false;
}

void settings_help(FILE *file) {
    for (int i = 0; i < KEYS; i++) {
        const struct setting_key *key = &keys[i];
        char option[64];
        snprintf(option, sizeof option, "--%s%s%s", key->key, *key->value ? " " : "", key->value);
        fprintf(file, "  %-28s %s", option, key->sentence);
        if (key->fallback && key->type != SETTING_FLAG)
            fprintf(file, " (default %s%s)", model_may_say(key) ? "the model's, else " : "", key->fallback);
        fputc('\n', file);
    }
}
