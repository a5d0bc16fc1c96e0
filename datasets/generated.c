#include "datasets/format.h"
#include "datasets/shapes.h"

enum { PIECES = 64 };

struct generation {
    struct dataset *data;
    uint64_t seed;
};

static void draw_piece(const struct image_set *set, uint64_t seed, uint64_t stream, int piece) {
    int64_t first = set->count * piece / PIECES, end = set->count * (piece + 1) / PIECES;
    for (int64_t i = first; i < end; i++) {
        set->labels[i] = (uint8_t)(i % SHAPE_KINDS);
        shape_draw((enum shape_kind)set->labels[i], seed, stream + (uint64_t)i,
                   set->pixels + (size_t)i * shape_size(set->shape));
    }
}

static enum status draw(void *context, int piece) {
    struct generation *g = context;
    draw_piece(&g->data->train, g->seed, 0, piece);
    /* Test pictures are other ones than any training picture, however many there are of each. */
    draw_piece(&g->data->test, g->seed, UINT64_C(1) << 32, piece);
    return STATUS_OK;
}

enum status generated_make(const struct dataset_options *options, struct dataset *data) {
    const struct shape shape = {SHAPE_SIDE, SHAPE_SIDE, 3};
    int64_t train = options && options->generated_train ? options->generated_train : 10000;
    int64_t test = options && options->generated_test ? options->generated_test : 2000;
    if (train < 1 || test < 1 || train > UINT32_MAX || test > UINT32_MAX)
        return status_fail(STATUS_BAD_INPUT,
                           "a generated set of %lld and %lld images is not possible; at least 1 of each",
                           (long long)train, (long long)test);
    STATUS_TRY(names_copy(data, shape_names, SHAPE_KINDS));
    STATUS_TRY(images_allocate(&data->train, train, shape, "generated"));
    STATUS_TRY(images_allocate(&data->test, test, shape, "generated"));
    struct generation generation = {data, options ? options->seed : 0};
    return parallel_run(PIECES, draw, &generation);
}
