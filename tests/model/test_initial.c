/* Initial parameters: their distribution, the same from the same seed, and the decay terms they give. */
#include "engine/model/model.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct model *model;

static int open_model(void **state) {
    (void)state;
    return model_read("cifar10", (struct model_ends){32, 32, 3, 10}, NAN, &model) == STATUS_OK ? 0 : -1;
}

static int close_model(void **state) {
    (void)state;
    model_free(model);
    return 0;
}

static float *initial(uint64_t seed) {
    float *values = malloc(model->flat_count * sizeof *values);
    assert_non_null(values);
    memset(values, 0xFF, model->flat_count * sizeof *values);
    model_initialise(model, seed, values);
    return values;
}

/* The mean and deviation of n values: an independent formula for what a normal cut at 2 has. */
static void test_distribution(void **state) {
    (void)state;
    /* variance of a standard normal cut at +-2: 1 - 2*2*phi(2) / (2*Phi(2) - 1) */
    double phi = exp(-2.0) / sqrt(2 * M_PI), inside = erf(2 / sqrt(2.0));
    double deviation = sqrt(1 - 4 * phi / inside);
    assert_true(fabs(deviation - 0.8796) < 5e-5);
    float *values = initial(1);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct model_parameter *p = &model->parameters[i];
        double sum = 0, squares = 0, largest = 0;
        for (size_t k = 0; k < p->count; k++) {
            double v = values[p->offset + k];
            sum += v;
            squares += v * v;
            largest = fmax(largest, fabs(v));
        }
        double n = (double)p->count, mean = sum / n;
        if (p->is_bias) {
            assert_true(largest == (double)(float)p->constant);
            assert_true(fabs(mean - (double)(float)p->constant) < 1e-9);
            continue;
        }
        double nominal = p->deviation;
        assert_true(largest < 2 * nominal * (1 + 1e-6));
        assert_true(largest > 1.95 * nominal);
        assert_true(fabs(mean) < 5 * deviation * nominal / sqrt(n));
        /* four deviations of the estimate; its kurtosis is below a normal's, so 1/sqrt(2n) bounds it */
        assert_true(fabs(sqrt(squares / n) / nominal / deviation - 1) < 4 / sqrt(2 * n));
    }
    free(values);
}

static void test_decay_terms(void **state) {
    (void)state;
    static const double published[] = {2.1906, 0.1825};
    for (uint64_t seed = 0; seed < 3; seed++) {
        float *values = initial(seed);
        double sum = 0;
        for (int i = 0, k = 0; i < model->parameter_count; i++) {
            const struct model_parameter *p = &model->parameters[i];
            double squares = 0;
            for (size_t j = 0; j < p->count; j++)
                squares += (double)values[p->offset + j] * (double)values[p->offset + j];
            if (!p->has_decay)
                continue;
            double term = p->weight_decay * squares / 2;
            assert_true(fabs(term / published[k++] - 1) < 0.01);
            sum += term;
        }
        assert_true(fabs(sum + log(10) - 4.676) < 0.02);
        free(values);
    }
}

static void test_repeats(void **state) {
    (void)state;
    float *a = initial(7), *b = initial(7), *c = initial(8);
    assert_memory_equal(a, b, model->flat_count * sizeof *a);
    const struct model_parameter *p = &model->parameters[0], *q = &model->parameters[2];
    assert_true(memcmp(a + p->offset, c + p->offset, p->count * sizeof *a) != 0);
    int same = 0; /* two tensors of one seed must not be the same numbers */
    for (size_t k = 0; k < p->count; k++)
        same += a[p->offset + k] == a[q->offset + k];
    assert_true(same < 10);
    for (int i = 0; i < model->parameter_count; i++) { /* the padding between tensors is 0 */
        size_t end = i + 1 < model->parameter_count ? model->parameters[i + 1].offset : model->flat_count;
        for (size_t k = model->parameters[i].offset + model->parameters[i].count; k < end; k++)
            assert_true(a[k] == 0);
    }
    free(a);
    free(b);
    free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_decay_terms),
        cmocka_unit_test(test_repeats),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
