/* Kernels of the layers against ref64, one operation each: values and gradients, odd sizes, one image, many
 * channels, wide and narrow loads, both orders of threads. test-skip-under: thread (fibres) */
#include "kernels/cuda/kernels.h"
#include "kernels/registry.h"
#include "tests/cudasim/room.h"
#include "tests/support/chain.h"
#include "tests/support/cmocka.h"
#include "tests/support/make_op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum cuda_type f32 = CUDA_TYPE_F32; /* bfloat16: test_kernels_bf16.c */

static void ok(cudaError_t error) {
    assert_int_equal(error, cudaSuccess);
}

/* What ref64 gives for an operation. */
struct expected {
    double *y, *dx, *parameter;
};

static double *copy_double(struct device_handle device, const struct guarded *from, size_t count) {
    double *to = malloc((count + 1) * sizeof *to);
    assert_non_null(to);
    device_finish(device);
    if (count)
        memcpy(to, from->span.data, count * sizeof *to); /* ref64's memory is the host's */
    return to;
}

/* Of operations that follow one another, of which the first may have a parameter. */
static struct expected expected_of_chain(const struct op *ops, int count, int images, const float *x,
                                         const float *parameter, const float *dy) {
    const struct op *op = &ops[0], *last = &ops[count - 1];
    struct device_handle device = {0};
    struct chain chain;
    expect_ok(device_open("ref64", 1, NULL, &device), "ref64");
    expect_ok(chain_open(&chain, device, ops, count, images, true, true, NULL), "a chain of ref64");
    size_t in = (size_t)images * shape_size(op->in), out = (size_t)images * shape_size(last->out);
    guarded_write(device, &chain.value[0], x, in);
    if (parameter)
        guarded_write(device, &chain.parameter[0], parameter, op_parameter_size(op));
    chain_run(&chain, chain_forward, "forward");
    struct expected e = {.y = copy_double(device, &chain.value[count], out)};
    guarded_write(device, &chain.gradient[count], dy, out);
    chain_run(&chain, chain_backward, "backward");
    e.dx = copy_double(device, &chain.gradient[0], in);
    e.parameter = copy_double(device, &chain.parameter_gradient[0], op_parameter_size(op));
    chain_close(&chain);
    device_close(&device);
    return e;
}

static struct expected expected_of(const struct op *op, int images, const float *x, const float *parameter,
                                   const float *dy) {
    return expected_of_chain(op, 1, images, x, parameter, dy);
}

static void expected_free(struct expected *e) {
    free(e->y);
    free(e->dx);
    free(e->parameter);
}

/* One operation on some images. shift: bytes that x, y and their gradients lie off a 64-byte border. */
struct layer {
    struct op op;
    int images;
    size_t shift;
    bool quantised; /* few different values: ties */
};

struct buffers {
    struct room x, y, dx, dy;
    size_t in, out;
};

static struct buffers buffers_of(const struct layer *l) {
    struct buffers b = {.in = (size_t)l->images * shape_size(l->op.in),
                        .out = (size_t)l->images * shape_size(l->op.out)};
    b.x = room_normal(b.in, l->shift, 1, 1);
    b.dy = room_normal(b.out, l->shift, 1, 2);
    b.y = room_new(b.out * sizeof(float), l->shift);
    b.dx = room_new(b.in * sizeof(float), l->shift);
    for (size_t i = 0; l->quantised && i < b.in; i++)
        ((float *)b.x.data)[i] = rintf(2 * ((float *)b.x.data)[i]) / 2;
    return b;
}

static void end_buffers(struct buffers *b) {
    both_orders_keep("y", b->y.data, b->y.bytes);
    both_orders_keep("dx", b->dx.data, b->dx.bytes);
    room_end(&b->x, "x");
    room_end(&b->y, "y");
    room_end(&b->dx, "dx");
    room_end(&b->dy, "dy");
}

/* ---- bias and ReLU */

static void run_bias_relu(const void *args) {
    const struct layer *l = args;
    struct op relu = make_relu(l->op.in);
    struct buffers b = buffers_of(l);
    int channels = l->op.in.c;
    size_t rows = b.in / (size_t)channels;
    struct room bias = room_normal((size_t)channels, l->shift, 0.3, 3),
                dbias = room_new((size_t)channels * 4, 0),
                scratch = room_new(cuda_bias_relu_scratch(rows, channels), 0);
    struct expected e = expected_of(&l->op, l->images, b.x.data, bias.data, b.dy.data);

    ok(cuda_bias_relu(NULL, f32, b.x.data, bias.data, f32, b.y.data, rows, channels, false));
    expect_near("bias", b.y.data, e.y, b.out, 1e-7);
    ok(cuda_bias_relu_backward(NULL, f32, b.dy.data, NULL, b.dx.data, dbias.data, scratch.data, rows,
                               channels));
    expect_near("bias: dx", b.dx.data, e.dx, b.in, 0);
    expect_near("bias: db", dbias.data, e.parameter, (size_t)channels, 1e-6);
    both_orders_keep("bias: db", dbias.data, dbias.bytes);
    expected_free(&e);

    /* now with the ReLU, in place, where y is what the bias gave */
    struct room copy = room_new(b.out * sizeof(float), l->shift);
    memcpy(copy.data, b.y.data, copy.bytes);
    e = expected_of(&relu, l->images, b.y.data, NULL, b.dy.data);
    memcpy(b.y.data, b.x.data, b.y.bytes);
    ok(cuda_bias_relu(NULL, f32, b.y.data, bias.data, f32, b.y.data, rows, channels, true));
    expect_near("bias and ReLU", b.y.data, e.y, b.out, 0);
    ok(cuda_bias_relu(NULL, f32, copy.data, NULL, f32, copy.data, rows, channels, true));
    expect_near("ReLU alone", copy.data, e.y, b.out, 0);
    struct room in_place = room_normal(b.out, l->shift, 1, 2);
    memset(b.dx.data, 0xFF, b.dx.bytes);
    ok(cuda_bias_relu_backward(NULL, f32, b.dy.data, b.y.data, b.dx.data, NULL, NULL, rows, channels));
    expect_near("ReLU: dx", b.dx.data, e.dx, b.in, 0);
    ok(cuda_bias_relu_backward(NULL, f32, in_place.data, b.y.data, in_place.data, dbias.data, scratch.data,
                               rows, channels));
    expect_near("ReLU: dx in place", in_place.data, e.dx, b.in, 0);
    double *db = calloc((size_t)channels, sizeof *db);
    assert_non_null(db);
    for (size_t i = 0; i < b.in; i++)
        db[i % (size_t)channels] += e.dx[i];
    expect_near("bias and ReLU: db", dbias.data, db, (size_t)channels, 1e-6);
    memset(dbias.data, 0xFF, dbias.bytes);
    ok(cuda_bias_relu_backward(NULL, f32, b.dy.data, b.y.data, NULL, dbias.data, scratch.data, rows,
                               channels));
    expect_near("bias and ReLU: db alone", dbias.data, db, (size_t)channels, 1e-6);
    both_orders_keep("bias and ReLU: db", dbias.data, dbias.bytes);
    free(db);
    expected_free(&e);
    room_end(&bias, "bias");
    room_end(&dbias, "dbias");
    room_end(&scratch, "scratch");
    room_end(&copy, "a copy of y");
    room_end(&in_place, "a gradient in place");
    end_buffers(&b);
}

static void test_bias_relu(void **state) {
    (void)state;
    static const struct shape shapes[] = {{1, 1, 1},  {1, 1, 10},  {5, 7, 3},    {6, 6, 64},
                                          {3, 2, 66}, {1, 1, 384}, {1, 2, 1028}, {1, 1, 1500}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int images = 1; images <= 33; images += 16)
            for (size_t shift = 0; shift <= 4; shift += 4) {
                struct layer l = {.op = make_bias(shapes[i]), .images = images, .shift = shift};
                both_orders(run_bias_relu, &l);
            }
}

/* More rows than the first pass has blocks for. */
static void test_bias_of_many_rows(void **state) {
    (void)state;
    struct layer l = {.op = make_bias((struct shape){24, 24, 4}), .images = 70};
    both_orders(run_bias_relu, &l);
    l = (struct layer){.op = make_bias((struct shape){1, 4, 1028}), .images = 129};
    both_orders(run_bias_relu, &l);
}

/* ---- max pool */

static void run_max_pool(const void *args) {
    const struct layer *l = args;
    struct buffers b = buffers_of(l);
    struct room places = room_new(cuda_max_pool_places(&l->op, l->images), 0);
    struct expected e = expected_of(&l->op, l->images, b.x.data, NULL, b.dy.data);
    ok(cuda_max_pool(NULL, f32, &l->op, l->images, b.x.data, b.y.data, NULL));
    expect_near("max pool for evaluation", b.y.data, e.y, b.out, 0);
    memset(b.y.data, 0xFF, b.y.bytes);
    ok(cuda_max_pool(NULL, f32, &l->op, l->images, b.x.data, b.y.data, places.data));
    expect_near("max pool", b.y.data, e.y, b.out, 0);
    ok(cuda_max_pool_backward(NULL, f32, &l->op, l->images, b.dy.data, places.data, b.dx.data));
    expect_near("max pool: dx", b.dx.data, e.dx, b.in, 1e-7);
    both_orders_keep("places", places.data, places.bytes);
    expected_free(&e);
    room_end(&places, "places");
    end_buffers(&b);
}

static void test_max_pool(void **state) {
    (void)state;
    static const struct shape shapes[] = {{24, 24, 8}, {12, 12, 64}, {7, 5, 3},
                                          {1, 1, 6},   {2, 9, 33},   {3, 3, 300}};
    static const int windows[][2] = {{3, 2}, {2, 2}, {3, 1}, {5, 3}, {2, 3}, {1, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t w = 0; w < sizeof windows / sizeof *windows; w++)
            for (int turn = 0; turn < 2; turn++) {
                struct layer l = {.op = make_max_pool(shapes[i], windows[w][0], windows[w][1]),
                                  .images = turn ? 3 : 1,
                                  .shift = turn && w < 2 ? 4 : 0,
                                  .quantised = turn};
                both_orders(run_max_pool, &l);
            }
}

/* What is not a number wins, wherever it stands, and is passed on; infinities are numbers. */
static void test_max_pool_not_a_number(void **state) {
    (void)state;
    struct op op = make_max_pool((struct shape){4, 4, 4}, 3, 2);
    struct room x = room_normal(64, 0, 1, 9), y = room_new(16 * sizeof(float), 0);
    float *value = x.data, *found = y.data;
    value[4 * 5 + 1] = NAN;       /* row 1, column 1, channel 1: in the first window only */
    value[4 * 10 + 2] = INFINITY; /* row 2, column 2: in all */
    for (int i = 0; i < 16; i++)
        value[4 * i + 3] = -INFINITY;
    ok(cuda_max_pool(NULL, f32, &op, 1, x.data, y.data, NULL));
    for (int i = 0; i < 4; i++) {
        assert_true(isnan(found[4 * i + 1]) == (i == 0));
        assert_true(found[4 * i + 2] == INFINITY);
        assert_true(found[4 * i + 3] == -INFINITY);
    }
    room_end(&x, "x");
    room_end(&y, "y");
}

static void test_max_pool_refused(void **state) {
    (void)state;
    float value = 0;
    struct op op = make_max_pool((struct shape){40, 40, 1}, 17, 17); /* 289 places do not fit into a byte */
    assert_int_equal(cuda_max_pool(NULL, f32, &op, 1, &value, &value, NULL), cudaErrorInvalidValue);
    assert_int_equal(cuda_max_pool_backward(NULL, f32, &op, 1, &value, &value, &value),
                     cudaErrorInvalidValue);
}

/* ---- local response normalisation */

static void run_lrn(const void *args) {
    const struct layer *l = args;
    struct buffers b = buffers_of(l);
    int channels = l->op.in.c;
    size_t pixels = b.in / (size_t)channels;
    struct expected e = expected_of(&l->op, l->images, b.x.data, NULL, b.dy.data);
    ok(cuda_lrn(NULL, f32, &l->op.lrn, pixels, channels, b.x.data, b.y.data));
    expect_near("LRN", b.y.data, e.y, b.out, 2.5e-7);
    ok(cuda_lrn_backward(NULL, f32, &l->op.lrn, pixels, channels, b.x.data, b.dy.data, b.dx.data));
    expect_near("LRN: dx", b.dx.data, e.dx, b.in, 3e-7);
    expected_free(&e);
    end_buffers(&b);
}

static void test_lrn(void **state) {
    (void)state;
    static const struct shape shapes[] = {{12, 12, 64}, {1, 1, 1},    {3, 5, 7},   {2, 2, 66},
                                          {1, 3, 4},    {1, 1, 1024}, {1, 2, 1023}};
    static const struct op_lrn settings[] = {{4, 1, 0.001 / 9, 0.75}, {4, 1, 0.3, 0.75},
                                             {1, 2, 0.5, 0.6},        {0, 1, 1, 1},
                                             {7, 1.5, 0.2, 0.5},      {CUDA_LRN_MOST_RADIUS, 1, 0.02, 0.75}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
            const struct op_lrn *lrn = &settings[s];
            struct layer l = {.op = make_lrn(shapes[i], lrn->radius, lrn->bias, lrn->alpha, lrn->beta),
                              .images = s % 2 ? 1 : 3,
                              .shift = s == 1 ? 4 : 0};
            both_orders(run_lrn, &l);
        }
}

static void test_lrn_refused(void **state) {
    (void)state;
    float value = 0;
    struct op_lrn lrn = {4, 1, 0.1, 0.75}, wide = {CUDA_LRN_MOST_RADIUS + 1, 1, 0.1, 0.75};
    int channels = CUDA_LRN_MOST_CHANNELS + 1;
    assert_int_equal(cuda_lrn(NULL, f32, &lrn, 1, channels, &value, &value), cudaErrorInvalidValue);
    assert_int_equal(cuda_lrn_backward(NULL, f32, &lrn, 1, channels, &value, &value, &value),
                     cudaErrorInvalidValue);
    assert_int_equal(cuda_lrn(NULL, f32, &wide, 1, 1, &value, &value), cudaErrorInvalidValue);
}

/* ---- a normalisation with its neighbours: bias, ReLU, then pool and LRN in either order. Values are
 * multiples of 1/64, so that ref64 and floats agree on what is above 0 and on which value of a window is the
 * largest. */

struct block {
    struct op bias, pool, lrn;
    int images;
    size_t shift;
};

static struct block block_of(struct shape in, int kernel, int stride, bool pool_first,
                             const struct op_lrn *s) {
    struct block b = {.bias = make_bias(in), .pool = make_max_pool(in, kernel, stride)};
    b.lrn = make_lrn(pool_first ? b.pool.out : in, s->radius, s->bias, s->alpha, s->beta);
    return b;
}

static void quantise(struct room *room) {
    float *value = room->data;
    for (size_t i = 0; i < room->bytes / sizeof *value; i++)
        value[i] = rintf(64 * value[i]) / 64;
}

/* What the kernels of both orders read and write. */
struct block_rooms {
    struct room x, bias, relu, dy, y, dx, dbias, scratch, places, pooled, between;
    size_t in, out, pixels; /* values before and behind; pixels of x */
    int channels;
};

static struct block_rooms block_rooms(const struct block *b) {
    size_t images = (size_t)b->images, in = images * shape_size(b->bias.in),
           out = images * shape_size(b->pool.out);
    int c = b->bias.in.c;
    struct block_rooms r = {.in = in, .out = out, .pixels = in / (size_t)c, .channels = c};
    r.x = room_normal(in, b->shift, 1, 31);
    r.bias = room_normal((size_t)c, 0, 0.3, 32);
    r.dy = room_normal(out, b->shift, 1, 33);
    quantise(&r.x);
    quantise(&r.bias);
    r.relu = room_new(in * sizeof(float), b->shift);
    r.y = room_new(out * sizeof(float), b->shift);
    r.dx = room_new(in * sizeof(float), b->shift);
    r.pooled = room_new(out * sizeof(float), b->shift);
    r.between = room_new(out * sizeof(float), b->shift);
    r.dbias = room_new((size_t)c * sizeof(float), 0);
    r.scratch = room_new(cuda_bias_relu_scratch(r.pixels, c), 0);
    r.places = room_new(cuda_max_pool_places(&b->pool, b->images), 0);
    return r;
}

static void compare_block(const char *what, struct block_rooms *r, const struct expected *e) {
    char name[64];
    snprintf(name, sizeof name, "%s: y", what);
    expect_near(name, r->y.data, e->y, r->out, 5e-7);
    both_orders_keep(name, r->y.data, r->y.bytes);
    snprintf(name, sizeof name, "%s: gradient", what);
    expect_near(name, r->dx.data, e->dx, r->in, 5e-7);
    both_orders_keep(name, r->dx.data, r->dx.bytes);
    snprintf(name, sizeof name, "%s: gradient of the bias", what);
    expect_near(name, r->dbias.data, e->parameter, (size_t)r->channels, 1e-6);
    both_orders_keep(name, r->dbias.data, r->dbias.bytes);
    struct room *all[] = {&r->x,     &r->bias,    &r->relu,   &r->dy,     &r->y,      &r->dx,
                          &r->dbias, &r->scratch, &r->places, &r->pooled, &r->between};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        room_end(all[i], what);
}

static void run_pool_lrn(const void *args) {
    const struct block *b = args;
    struct block_rooms r = block_rooms(b);
    struct op ops[] = {b->bias, make_relu(b->bias.in), b->pool, b->lrn};
    struct expected e = expected_of_chain(ops, 4, b->images, r.x.data, r.bias.data, r.dy.data);
    const struct op_lrn *lrn = &b->lrn.lrn;
    ok(cuda_bias_relu(NULL, f32, r.x.data, r.bias.data, f32, r.relu.data, r.pixels, r.channels, true));
    ok(cuda_pool_lrn(NULL, f32, &b->pool, lrn, b->images, r.relu.data, r.pooled.data, NULL, r.y.data));
    struct room again = room_new(r.y.bytes, b->shift); /* with places: the same bytes */
    memcpy(again.data, r.y.data, again.bytes);
    ok(cuda_pool_lrn(NULL, f32, &b->pool, lrn, b->images, r.relu.data, r.pooled.data, r.places.data,
                     r.y.data));
    assert_memory_equal(again.data, r.y.data, again.bytes);
    room_end(&again, "y again");
    size_t pixels = r.out / (size_t)r.channels;
    ok(cuda_lrn_relu_backward(NULL, f32, lrn, pixels, r.channels, r.pooled.data, r.dy.data, r.between.data,
                              r.dbias.data, r.scratch.data));
    ok(cuda_max_pool_backward(NULL, f32, &b->pool, b->images, r.between.data, r.places.data, r.dx.data));
    compare_block("pool, LRN", &r, &e);
    expected_free(&e);
}

static void run_lrn_pool(const void *args) {
    const struct block *b = args;
    struct block_rooms r = block_rooms(b);
    struct op ops[] = {b->bias, make_relu(b->bias.in), b->lrn, b->pool};
    struct expected e = expected_of_chain(ops, 4, b->images, r.x.data, r.bias.data, r.dy.data);
    const struct op_lrn *lrn = &b->lrn.lrn;
    ok(cuda_bias_relu(NULL, f32, r.x.data, r.bias.data, f32, r.relu.data, r.pixels, r.channels, true));
    assert_true(cuda_lrn_pool_fits(lrn, &b->pool));
    ok(cuda_lrn_pool(NULL, f32, lrn, &b->pool, b->images, r.relu.data, r.y.data, NULL));
    memset(r.y.data, 0xFF, r.y.bytes);
    ok(cuda_lrn_pool(NULL, f32, lrn, &b->pool, b->images, r.relu.data, r.y.data, r.places.data));
    ok(cuda_lrn_pool_relu_backward(NULL, f32, lrn, &b->pool, b->images, r.relu.data, r.dy.data, r.places.data,
                                   r.dx.data, NULL, NULL));
    memset(r.dx.data, 0xFF, r.dx.bytes);
    ok(cuda_lrn_pool_relu_backward(NULL, f32, lrn, &b->pool, b->images, r.relu.data, r.dy.data, r.places.data,
                                   r.dx.data, r.dbias.data, r.scratch.data));
    compare_block("LRN, pool", &r, &e);
    expected_free(&e);
}

static void test_neighbours(void **state) {
    (void)state;
    static const struct op_lrn settings[] = {{4, 1, 0.1, 0.75}, {2, 1.5, 0.3, 0.6}};
    static const struct shape shapes[] = {{12, 12, 64}, {7, 5, 12}, {5, 8, 7}, {3, 3, 260}, {1, 2, 33}};
    static const int windows[][2] = {{3, 2}, {2, 2}, {3, 3}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t w = 0; w < sizeof windows / sizeof *windows; w++)
            for (int first = 0; first < 2; first++) {
                struct block b = block_of(shapes[i], windows[w][0], windows[w][1], first, &settings[w % 2]);
                b.images = w ? 3 : 1;
                b.shift = w == 2 ? 4 : 0;
                both_orders(first ? run_pool_lrn : run_lrn_pool, &b);
            }
}

/* Enough pixels that each block of the bias' sums takes several turns. */
static void test_neighbours_of_many_pixels(void **state) {
    (void)state;
    static const struct op_lrn setting = {4, 1, 0.1, 0.75};
    struct block b = block_of((struct shape){24, 24, 64}, 3, 2, true, &setting);
    b.images = 3;
    both_orders(run_pool_lrn, &b);
}

static void test_neighbours_refused(void **state) {
    (void)state;
    static const struct op_lrn setting = {4, 1, 0.1, 0.75};
    struct block b = block_of((struct shape){64, 64, 64}, 3, 2, false, &setting);
    float value = 0;
    assert_false(cuda_lrn_pool_fits(&setting, &b.pool));
    assert_int_equal(cuda_lrn_pool(NULL, f32, &setting, &b.pool, 1, &value, &value, NULL),
                     cudaErrorInvalidValue);
}

/* ---- transpose */

static void run_transpose(const void *args) {
    const int *size = args;
    size_t rows = (size_t)size[0], columns = (size_t)size[1];
    struct room from = room_normal(rows * columns, 0, 1, 5), to = room_new(rows * columns * sizeof(float), 0);
    ok(cuda_transpose(NULL, f32, from.data, f32, to.data, rows, columns));
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            assert_true(((float *)to.data)[c * rows + r] == ((float *)from.data)[r * columns + c]);
    room_end(&from, "a matrix");
    room_end(&to, "its transpose");
}

static void test_transpose(void **state) {
    (void)state;
    static const int sizes[][2] = {{1, 1}, {75, 64}, {33, 31}, {1, 100}, {100, 1}, {32, 64}, {1600, 64}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        both_orders(run_transpose, sizes[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bias_relu),
        cmocka_unit_test(test_bias_of_many_rows),
        cmocka_unit_test(test_max_pool),
        cmocka_unit_test(test_max_pool_not_a_number),
        cmocka_unit_test(test_max_pool_refused),
        cmocka_unit_test(test_lrn),
        cmocka_unit_test(test_lrn_refused),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_neighbours_of_many_pixels),
        cmocka_unit_test(test_neighbours_refused),
        cmocka_unit_test(test_transpose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
