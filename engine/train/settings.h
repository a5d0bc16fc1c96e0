/* The settings of a run: one table of keys, types, ranges and sentences. Command line options, config.ini,
 * --set and --help are made from it; an unknown key is refused and the nearest one named.
 *
 * Settings come in layers, each a struct of its own that knows what it was given: config file, environment,
 * flags. settings_overlay() puts one on another; settings_complete() fills in what nobody gave, from the
 * model's defaults and then from the program's. */
#ifndef TOWERSCOPE_ENGINE_TRAIN_SETTINGS_H
#define TOWERSCOPE_ENGINE_TRAIN_SETTINGS_H

#include "engine/model/model.h"
#include "kernels/status.h"

#include <stdint.h>
#include <stdio.h>

struct settings {   /* not given: NaN, -1, "" or false */
    uint64_t given; /* bit i: key i of the table was set */
    char model[1024], data[1024], devices[256], runs[512], isa[16], precision[8], distort[64];
    int64_t towers, batch, batch_per_tower, steps, epochs, seed, threads;
    int64_t checkpoint_every, keep, eval_every, log_every, record_every;
    double lr, lr_decay, decay_epochs, momentum, weight_decay, clip_norm, ema;
    bool resume, begin_again, deterministic, no_graphs;
};

enum setting_type {
    SETTING_TEXT,
    SETTING_CHOICE, /* text: one of the words of `value`, "f32|tf32" */
    SETTING_INTEGER,
    SETTING_REAL,
    SETTING_FLAG, /* yes or no; as an option it may stand without a value */
};

struct setting_key {
    const char *key; /* "lr", "batch-per-tower": the option is --KEY */
    enum setting_type type;
    size_t offset, size;  /* in struct settings */
    double low, high;     /* range of numbers, inclusive */
    bool low_open;        /* > low rather than >= */
    bool high_open;       /* < high rather than <= */
    bool kept;            /* part of config.ini: what it takes to run the same again */
    const char *value;    /* "N", "X", "NAME|FILE.ini": for --help */
    const char *fallback; /* the program's default as text; NULL: none */
    const char *sentence;
};

/* The table; *count entries. */
const struct setting_key *settings_keys(int *count);

/* The entry of that name, or NULL. Underlines count as dashes. */
const struct setting_key *settings_find(const char *key);

/* A layer that gives nothing. */
void settings_clear(struct settings *settings);

/* Set one key from text. `where` ("--lr", "config.ini:3") begins the message. STATUS_BAD_INPUT: unknown key
 * (the nearest is named), not a number, out of range; nothing is changed then. */
enum status settings_set(struct settings *settings, const char *where, const char *key, const char *value);

/* Whether a number may be the value of a key, as settings_set() would check it: STATUS_BAD_INPUT says why
 * not. */
enum status settings_allow(const char *where, const char *key, double value);

/* Read `key = value` lines of an INI file. On failure nothing is changed. */
enum status settings_read(struct settings *settings, const char *path);

/* The same from text; `file` is for messages. */
enum status settings_read_text(struct settings *settings, const char *file, const char *text);

/* Environment: TOWERSCOPE_RUNS. */
enum status settings_environment(struct settings *settings);

/* Put what `over` gives on top of `settings`. Of two keys that exclude one another (batch and
 * batch-per-tower, steps and epochs) the one in `over` takes the other's place. */
void settings_overlay(struct settings *settings, const struct settings *over);

/* Rules within a layer: keys that exclude one another. STATUS_BAD_INPUT names both. */
enum status settings_check(const struct settings *settings, const char *where);

/* Fill in what was not given: the model's defaults, then the program's. Afterwards every number is known but
 * steps, epochs, batch, batch_per_tower (-1: none of that pair) and weight_decay (NaN: as in the model file).
 */
void settings_complete(struct settings *settings, const struct model_defaults *defaults);

/* Images of a step with that many towers, under the settings' rule; the settings are complete. */
int64_t settings_batch(const struct settings *settings, int64_t towers);

/* Everything needed to run it again, as config.ini. STATUS_IO; STATUS_BAD_INPUT: a text that an INI file
 * can't hold. */
enum status settings_write(const struct settings *settings, FILE *file);

/* The value of a key as text that settings_set() reads back to the same value, into out[size]. */
void settings_format(const struct settings *settings, const struct setting_key *key, char *out, size_t size);

/* Kept keys whose values differ, "towers from 2 to 3, lr from 0.1 to 0.05", into out[size] (cut when it is
 * too small); "none" stands for a value that is not given. Returns how many. */
int settings_changes(const struct settings *old, const struct settings *now, char *out, size_t size);

/* `towerscope train --help`'s list of options, one line each. */
void settings_help(FILE *file);

#endif
