#include "tests/support/golden.h"

#include "tests/support/cmocka.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS_MAX = 400, PARAMETER_STREAM = 1, PROBE_STREAM = 100, IMAGE_STREAM = 1000 };

struct golden {
    struct golden_record record[RECORDS_MAX];
    int count;
};

/* ---- the file */

static void take(FILE *file, void *to, size_t bytes) {
    if (fread(to, 1, bytes, file) != bytes)
        fail_msg("a golden file ends too early");
}

static void read_record(FILE *file, size_t name_length, struct golden_record *r) {
    uint64_t count;
    uint32_t stride;
    double head[3];
    assert_true(name_length < sizeof r->name);
    take(file, r->name, name_length);
    take(file, &count, sizeof count);
    take(file, &stride, sizeof stride);
    take(file, head, sizeof head);
    assert_in_range(count, 1, 10000000);
    assert_true(stride > 0);
    r->count = count;
    r->stride = stride;
    r->norm = head[0], r->largest = head[1], r->probe = head[2];
    r->sample_count = (r->count + stride - 1) / stride;
    r->samples = malloc(r->sample_count * sizeof *r->samples);
    assert_non_null(r->samples);
    take(file, r->samples, r->sample_count * sizeof *r->samples);
}

struct golden *golden_read(int channels) {
    static const char magic[] = "towerscope golden 1\n";
    char path[512], found[sizeof magic] = "";
    const char *source = getenv("SOURCE");
    snprintf(path, sizeof path, "%s/tests/golden/cifar10-%d.golden", source ? source : ".", channels);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s can't be read; make golden-values makes it", path);
    take(file, found, sizeof magic - 1);
    assert_string_equal(found, magic);
    struct golden *golden = calloc(1, sizeof *golden);
    assert_non_null(golden);
    uint16_t name_length;
    while (fread(&name_length, sizeof name_length, 1, file) == 1) {
        assert_true(golden->count < RECORDS_MAX);
        read_record(file, name_length, &golden->record[golden->count++]);
    }
    fclose(file);
    return golden;
}

void golden_free(struct golden *golden) {
    for (int i = 0; i < golden->count; i++)
        free(golden->record[i].samples);
    free(golden);
}

const struct golden_record *golden_find(const struct golden *golden, const char *format, ...) {
    char name[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    for (int i = 0; i < golden->count; i++)
        if (strcmp(golden->record[i].name, name) == 0)
            return &golden->record[i];
    fail_msg("no golden values \"%s\"", name);
    return NULL;
}

/* ---- numbers from the hash */

static uint32_t mix(uint32_t x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

/* The i-th 16-bit number of a stream. */
static uint32_t number(uint32_t stream, size_t i) {
    return mix(mix(stream) + (uint32_t)i) >> 16;
}

/* An odd multiple of 2^-16 between -1 and 1. */
static double spread(uint32_t stream, size_t i) {
    return (2.0 * number(stream, i) - 65535) / 65536;
}

void golden_parameters(const struct model *model, double *out) {
    memset(out, 0, model->flat_count * sizeof *out);
    for (int t = 0; t < model->parameter_count; t++) {
        const struct model_parameter *p = &model->parameters[t];
        bool last = strncmp(p->name, "softmax", 7) == 0;
        double scale = p->is_bias ? 0x1p-5 : last ? 0x1p-6 : 0x1p-4;
        double base = p->is_bias && !last && strncmp(p->name, "conv1", 5) != 0 ? 0.125 : 0;
        for (size_t i = 0; i < p->count; i++)
            out[p->offset + i] = base + scale * spread((uint32_t)(PARAMETER_STREAM + t), i);
    }
}

void golden_batch(const struct golden *golden, const char *trajectory, int step, const struct model *model,
                  double *pixels, int32_t *labels) {
    const struct golden_record *images = golden_find(golden, "%s/images", trajectory);
    const struct golden_record *expected = golden_find(golden, "%s/labels", trajectory);
    size_t size = shape_size(model->input);
    assert_int_equal(images->sample_count, GOLDEN_STEPS * GOLDEN_BATCH);
    for (int n = 0; n < GOLDEN_BATCH; n++) {
        int at = step * GOLDEN_BATCH + n;
        uint32_t stream = IMAGE_STREAM + 2 * (uint32_t)images->samples[at];
        labels[n] = (int32_t)(number(stream + 1, 0) % GOLDEN_CLASSES);
        assert_int_equal(labels[n], (int)expected->samples[at]);
        for (size_t i = 0; i < size; i++)
            pixels[(size_t)n * size + i] = 2 * spread(stream, i);
    }
}

/* ---- comparing */

struct golden_report golden_report(const char *device) {
    if (strcmp(device, "ref64") == 0)
        return (struct golden_report){.tolerance = 1e-9};
    if (strcmp(device, "ref") == 0)
        return (struct golden_report){.tolerance = 1e-5};
    return (struct golden_report){.tolerance = 1e-4, .of_norm = true};
}

/* One comparison: `difference` may be at most `allowed`. */
static void judge(struct golden_report *report, const struct golden_record *record, const char *what,
                  double difference, double allowed) {
    double ratio = difference == 0 ? 0 : difference / allowed;
    report->compared++;
    if (!(ratio <= report->worst))
        report->worst = ratio;
    if (!(difference <= allowed) && report->failed++ == 0)
        snprintf(report->first, sizeof report->first,
                 "%s of %s is off by %.4g; %.4g is allowed (largest value %.4g)", what, record->name,
                 difference, allowed, record->largest);
}

void golden_compare(struct golden_report *report, const struct golden_record *record, const double *values,
                    size_t count) {
    if (count != record->count)
        fail_msg("%s: %zu values, expected %zu", record->name, count, record->count);
    double norm2 = 0, probe = 0, difference2 = 0, samples2 = 0, worst = 0;
    for (size_t i = 0; i < count; i++) {
        norm2 += values[i] * values[i];
        probe += number(PROBE_STREAM, i) & 1 ? values[i] : -values[i];
    }
    for (size_t i = 0; i < record->sample_count; i++) {
        double d = fabs(values[i * record->stride] - record->samples[i]);
        difference2 += d * d;
        samples2 += record->samples[i] * record->samples[i];
        if (!(d <= worst))
            worst = d;
    }
    double size = report->of_norm ? record->norm : record->largest * sqrt((double)count);
    if (report->of_norm)
        judge(report, record, "the norm of the stored values", sqrt(difference2),
              report->tolerance * sqrt(samples2));
    else
        judge(report, record, "a value", worst, report->tolerance * record->largest);
    judge(report, record, "the norm", fabs(sqrt(norm2) - record->norm), report->tolerance * size);
    /* differences with random signs add up to their norm; four times that is 1 in 16,000 */
    judge(report, record, "the sum with random signs", fabs(probe - record->probe),
          4 * report->tolerance * size);
}

void golden_compare_flat(struct golden_report *report, const struct golden *golden, const char *prefix,
                         const struct model *model, const double *flat) {
    for (int t = 0; t < model->parameter_count; t++) {
        const struct model_parameter *p = &model->parameters[t];
        golden_compare(report, golden_find(golden, "%s/%s", prefix, p->name), flat + p->offset, p->count);
    }
}

void golden_expect(const struct golden_report *report, const char *what) {
    if (report->failed)
        fail_msg("%s: %d of %d comparisons failed; first: %s", what, report->failed, report->compared,
                 report->first);
    assert_true(report->compared > 0);
    printf("  %s: %d comparisons, the worst at %.2g of its tolerance\n", what, report->compared,
           report->worst);
}
