/* Batch normalisation against plain loops in double, and its gradients against differences of those; both
 * orders of threads. test-skip-under: thread (fibres) */
#include "kernels/cuda/batch_norm.h"
#include "tests/cudasim/room.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void ok(cudaError_t error) {
    assert_int_equal(error, cudaSuccess);
}

static double *doubles(size_t count) {
    double *to = calloc(count + 1, sizeof *to);
    assert_non_null(to);
    return to;
}

struct norm_case {
    size_t rows;
    int channels;
    double mean; /* of x, whose deviation is 1 */
    bool relu;
    size_t shift;
};

static const float epsilon = 1e-3f;

/* Of channel c: mean and biased variance. */
static void statistics(const float *x, size_t rows, int channels, int c, double *mean, double *variance) {
    double sum = 0, squares = 0;
    for (size_t r = 0; r < rows; r++)
        sum += x[r * (size_t)channels + (size_t)c];
    *mean = sum / (double)rows;
    for (size_t r = 0; r < rows; r++) {
        double distance = x[r * (size_t)channels + (size_t)c] - *mean;
        squares += distance * distance;
    }
    *variance = squares / (double)rows;
}

/* y of channel c before the ReLU, from the values' own statistics. */
static void normalise(const float *x, size_t rows, int channels, int c, double gamma, double beta,
                      double *y) {
    double mean, variance;
    statistics(x, rows, channels, c, &mean, &variance);
    for (size_t r = 0; r < rows; r++) {
        size_t at = r * (size_t)channels + (size_t)c;
        y[at] = gamma * (x[at] - mean) / sqrt(variance + (double)epsilon) + beta;
    }
}

/* The gradients as the formulas of the paper have them, step by step (section 3). */
static void gradients(const float *x, const double *g, size_t rows, int channels, int c, double gamma,
                      double *dx, double *dgamma, double *dbeta) {
    double mean, variance, of_variance = 0, of_mean = 0;
    statistics(x, rows, channels, c, &mean, &variance);
    double inverse = 1 / sqrt(variance + (double)epsilon);
    dgamma[c] = dbeta[c] = 0;
    for (size_t r = 0; r < rows; r++) {
        size_t at = r * (size_t)channels + (size_t)c;
        dgamma[c] += g[at] * (x[at] - mean) * inverse;
        dbeta[c] += g[at];
        of_variance += g[at] * gamma * (x[at] - mean) * -0.5 * inverse * inverse * inverse;
        of_mean -= g[at] * gamma * inverse;
    }
    for (size_t r = 0; r < rows; r++) {
        size_t at = r * (size_t)channels + (size_t)c;
        dx[at] = g[at] * gamma * inverse + of_variance * 2 * (x[at] - mean) / (double)rows +
                 of_mean / (double)rows;
    }
}

struct rooms {
    struct room x, y, dy, dx, gamma, beta, mean, variance, dgamma, dbeta, scratch;
};

static struct rooms rooms_of(const struct norm_case *c) {
    size_t channels = (size_t)c->channels, count = c->rows * channels;
    struct rooms r = {.x = room_normal(count, c->shift, 1, 81),
                      .y = room_new(count * sizeof(float), c->shift),
                      .dy = room_normal(count, c->shift, 1, 82),
                      .dx = room_new(count * sizeof(float), c->shift),
                      .gamma = room_normal(channels, 0, 1, 83),
                      .beta = room_normal(channels, 0, 1, 84),
                      .mean = room_new(channels * sizeof(float), 0),
                      .variance = room_new(channels * sizeof(float), 0),
                      .dgamma = room_new(channels * sizeof(float), 0),
                      .dbeta = room_new(channels * sizeof(float), 0),
                      .scratch = room_new(cuda_batch_norm_scratch(c->rows, c->channels), 0)};
    for (size_t i = 0; i < count; i++)
        ((float *)r.x.data)[i] += (float)c->mean;
    return r;
}

static void rooms_end(struct rooms *r) {
    struct room *all[] = {&r->x,    &r->y,        &r->dy,     &r->dx,    &r->gamma,  &r->beta,
                          &r->mean, &r->variance, &r->dgamma, &r->dbeta, &r->scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        room_end(all[i], "batch normalisation");
}

/* What is expected of everything. */
struct expected {
    double *mean, *variance, *y, *dx, *dgamma, *dbeta, *g;
};

static struct expected expected_of(const struct norm_case *c, const struct rooms *r, const float *found_y) {
    size_t channels = (size_t)c->channels, count = c->rows * channels;
    struct expected e = {doubles(channels), doubles(channels), doubles(count), doubles(count),
                         doubles(channels), doubles(channels), doubles(count)};
    const float *gamma = r->gamma.data, *beta = r->beta.data, *dy = r->dy.data;
    for (int i = 0; i < c->channels; i++) {
        statistics(r->x.data, c->rows, c->channels, i, &e.mean[i], &e.variance[i]);
        normalise(r->x.data, c->rows, c->channels, i, gamma[i], beta[i], e.y);
    }
    for (size_t i = 0; i < count; i++) {
        e.g[i] = c->relu && !(found_y[i] > 0) ? 0 : dy[i];
        e.y[i] = c->relu ? fmax(e.y[i], 0) : e.y[i];
    }
    for (int i = 0; i < c->channels; i++)
        gradients(r->x.data, e.g, c->rows, c->channels, i, gamma[i], e.dx, e.dgamma, e.dbeta);
    return e;
}

static void expected_free(struct expected *e) {
    double *all[] = {e->mean, e->variance, e->y, e->dx, e->dgamma, e->dbeta, e->g};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void run(const void *args) {
    const struct norm_case *c = args;
    size_t channels = (size_t)c->channels, count = c->rows * channels;
    struct rooms r = rooms_of(c);
    struct cuda_batch_norm b = {c->channels,     epsilon,      r.mean.data,
                                r.variance.data, r.gamma.data, r.beta.data};
    const float *y = c->relu ? r.y.data : NULL;
    double loss = 1 + fabs(c->mean); /* x itself is rounded relative to its mean */
    ok(cuda_batch_norm_statistics(NULL, r.x.data, c->rows, c->channels, r.scratch.data, r.mean.data,
                                  r.variance.data));
    ok(cuda_batch_norm_forward(NULL, &b, r.x.data, c->rows, c->relu, r.y.data));
    ok(cuda_batch_norm_sums(NULL, &b, r.x.data, r.dy.data, y, c->rows, r.scratch.data, r.dgamma.data,
                            r.dbeta.data));
    ok(cuda_batch_norm_backward(NULL, &b, r.x.data, r.dy.data, y, r.dgamma.data, r.dbeta.data, c->rows,
                                c->rows, r.dx.data));
    struct expected e = expected_of(c, &r, r.y.data);
    expect_near("mean", r.mean.data, e.mean, channels, 1e-6 + (c->mean == 0 ? 1e-6 : 0));
    if (c->rows > 1)
        expect_near("variance", r.variance.data, e.variance, channels, 1e-6);
    else
        for (size_t i = 0; i < channels; i++)
            assert_true(((float *)r.variance.data)[i] == 0);
    expect_near("y", r.y.data, e.y, count, 1e-6 * loss);
    if (c->rows > 1) {
        expect_near("dgamma", r.dgamma.data, e.dgamma, channels, 2e-6 * loss);
        expect_near("dbeta", r.dbeta.data, e.dbeta, channels, 2e-6);
        expect_near("dx", r.dx.data, e.dx, count, 2e-6 * loss);
    }
    both_orders_keep("mean", r.mean.data, r.mean.bytes);
    both_orders_keep("variance", r.variance.data, r.variance.bytes);
    both_orders_keep("y", r.y.data, r.y.bytes);
    both_orders_keep("dgamma", r.dgamma.data, r.dgamma.bytes);
    both_orders_keep("dx", r.dx.data, r.dx.bytes);
    expected_free(&e);
    rooms_end(&r);
}

static void test_training(void **state) {
    (void)state;
    static const struct norm_case cases[] = {
        {.rows = 500, .channels = 16},
        {.rows = 37, .channels = 7, .relu = true},
        {.rows = 1500, .channels = 64, .relu = true},
        {.rows = 5, .channels = 3},
        {.rows = 1, .channels = 8},
        {.rows = 300, .channels = 300, .shift = 4},
        {.rows = 33000, .channels = 4, .relu = true},
        {.rows = 1000, .channels = 8, .mean = 100},
        {.rows = 33, .channels = 1028},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        both_orders(run, &cases[i]);
}

/* Half of the rows by each of two towers, with the statistics and the sums of all: the gradient of the whole.
 */
static void test_joined_towers(void **state) {
    (void)state;
    struct norm_case c = {.rows = 64, .channels = 12};
    struct rooms r = rooms_of(&c);
    size_t half = c.rows / 2 * (size_t)c.channels;
    struct cuda_batch_norm b = {c.channels, epsilon, r.mean.data, r.variance.data, r.gamma.data, r.beta.data};
    ok(cuda_batch_norm_statistics(NULL, r.x.data, c.rows, c.channels, r.scratch.data, r.mean.data,
                                  r.variance.data));
    ok(cuda_batch_norm_sums(NULL, &b, r.x.data, r.dy.data, NULL, c.rows, r.scratch.data, r.dgamma.data,
                            r.dbeta.data));
    for (size_t tower = 0; tower < 2; tower++)
        ok(cuda_batch_norm_backward(NULL, &b, (float *)r.x.data + tower * half,
                                    (float *)r.dy.data + tower * half, NULL, r.dgamma.data, r.dbeta.data,
                                    c.rows, c.rows / 2, (float *)r.dx.data + tower * half));
    struct expected e = expected_of(&c, &r, NULL);
    expect_near("dx of two towers", r.dx.data, e.dx, 2 * half, 2e-6);
    expected_free(&e);
    rooms_end(&r);
}

static void test_running(void **state) {
    (void)state;
    enum { CHANNELS = 300 };
    struct room mean = room_normal(CHANNELS, 0, 1, 91), variance = room_normal(CHANNELS, 0, 1, 92),
                running_mean = room_normal(CHANNELS, 0, 1, 93),
                running_variance = room_normal(CHANNELS, 0, 1, 94);
    double expected_mean[CHANNELS], expected_variance[CHANNELS];
    for (int i = 0; i < CHANNELS; i++) {
        expected_mean[i] = 0.9 * ((float *)running_mean.data)[i] + 0.1 * ((float *)mean.data)[i];
        expected_variance[i] =
            0.9 * ((float *)running_variance.data)[i] + 0.1 * 8 / 7 * ((float *)variance.data)[i];
    }
    ok(cuda_batch_norm_running(NULL, CHANNELS, 8, mean.data, variance.data, 0.9, running_mean.data,
                               running_variance.data));
    expect_near("running mean", running_mean.data, expected_mean, CHANNELS, 1e-6);
    expect_near("running variance", running_variance.data, expected_variance, CHANNELS, 1e-6);
    struct room *all[] = {&mean, &variance, &running_mean, &running_variance};
    for (int i = 0; i < 4; i++)
        room_end(all[i], "running statistics");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_joined_towers),
        cmocka_unit_test(test_running),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
