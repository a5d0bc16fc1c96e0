/* The golden values of tests/golden: reading the files, the numbers that both sides make from a hash,
 * comparing. What is in the files and how it was made: tests/golden/make_golden.py. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_GOLDEN_H
#define TOWERSCOPE_TESTS_SUPPORT_GOLDEN_H

#include "engine/model/model.h"

#include <stdio.h>

enum { GOLDEN_STEPS = 10, GOLDEN_BATCH = 6, GOLDEN_CLASSES = 10 };

/* Plain C loops are ten times slower under the sanitizers, which look for other faults than wrong digits:
 * there the golden tests go through less. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GOLDEN_BRIEF 1
#else
#define GOLDEN_BRIEF 0
#endif

struct golden_record {
    char name[64];
    size_t count;                /* values of the tensor */
    size_t stride;               /* values[0], values[stride], ... are stored */
    double norm, largest, probe; /* of all values; probe: their sum with signs from the hash */
    double *samples;
    size_t sample_count;
};

struct golden;

/* The file for images with 3 or 1 channels, below $SOURCE; fails the test when it can't be read. */
struct golden *golden_read(int channels);
void golden_free(struct golden *golden);

/* A record by name; fails the test when there is none. */
const struct golden_record *golden_find(const struct golden *golden, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The initial parameters, flat, in the layout of a model of cifar10. */
void golden_parameters(const struct model *model, double *out);

/* GOLDEN_BATCH images of a trajectory ("plain" or "full") at step 0..GOLDEN_STEPS-1. */
void golden_batch(const struct golden *golden, const char *trajectory, int step, const struct model *model,
                  double *pixels, int32_t *labels);

/* How near values must be, and what came of comparing: make one, compare much, look at `failed`. */
struct golden_report {
    double tolerance;
    bool of_norm; /* of the tensor's norm; else every value, of the largest one */
    int compared, failed;
    double worst;    /* in tolerances: above 1 is a failure */
    char first[256]; /* sentence about the first failure */
};

/* Tolerances of the device called `name`: ref64 1e-9 and ref 1e-5 of the largest value, others 1e-4 of the
 * norm. */
struct golden_report golden_report(const char *device);

/* Compare `count` values with a record: the samples, the norm and the probe. */
void golden_compare(struct golden_report *report, const struct golden_record *record, const double *values,
                    size_t count);

/* Compare a flat buffer's tensors with the records PREFIX/TENSOR. */
void golden_compare_flat(struct golden_report *report, const struct golden *golden, const char *prefix,
                         const struct model *model, const double *flat);

/* Fail the test with the first failure, if any; else print how near the worst came. */
void golden_expect(const struct golden_report *report, const char *what);

#endif
