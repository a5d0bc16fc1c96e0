/* The settings of a run: one table of keys, types, ranges and sentences. Command line options, config.ini,
 * --set and --help are made from it; an unknown key is refused and the nearest one named. */
#ifndef TOWERSCOPE_ENGINE_TRAIN_SETTINGS_H
#define TOWERSCOPE_ENGINE_TRAIN_SETTINGS_H

#include "kernels/status.h"

#include <stdint.h>
#include <stdio.h>

struct settings { /* NaN and -1: not given, the model's or the program's default holds */
    char model[256], data[512], devices[256], runs[512], isa[16], precision[8], distort[64];
    int64_t towers, batch, batch_per_tower, steps, epochs, seed, threads;
    int64_t checkpoint_every, keep, eval_every, log_every, record_every;
    double lr, lr_decay, decay_epochs, momentum, weight_decay, clip_norm, ema;
    bool resume, deterministic;
};

enum setting_type { SETTING_TEXT, SETTING_INTEGER, SETTING_REAL, SETTING_FLAG };

struct setting_key {
    const char *key;      /* "lr", "batch-per-tower": the option is --KEY */
    enum setting_type type;
    size_t offset, size;  /* in struct settings */
    double low, high;     /* range of numbers, inclusive */
    bool low_open;        /* > low rather than >= */
    const char *value;    /* "N", "X", "NAME|FILE.ini": for --help */
    const char *sentence;
};

/* The table; *count entries. */
const struct setting_key *settings_keys(int *count);

/* The program's defaults. */
void settings_default(struct settings *settings);

/* Set one key from text. `where` ("--lr", "config.ini:3") begins the message. STATUS_BAD_INPUT: unknown key (the
 * nearest is named), not a number, out of range; nothing is changed then. */
enum status settings_set(struct settings *settings, const char *where, const char *key, const char *value);

/* Read `key = value` lines of an INI file. */
enum status settings_read(struct settings *settings, const char *path);

/* Environment: TOWERSCOPE_RUNS. */
enum status settings_environment(struct settings *settings);

/* Everything needed to run it again, as config.ini. */
enum status settings_write(const struct settings *settings, FILE *file);

/* Rules between settings (batch with batch-per-tower, steps with epochs, ...). */
enum status settings_check(const struct settings *settings);

#endif
