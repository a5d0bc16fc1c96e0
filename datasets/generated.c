/* Image i shows shape i mod 10. In the training set one label in twenty names another shape, as in sets that
 * people have labelled. That is on purpose: a network that can be right every time grows ever surer, until at
 * the tutorial's rate of 0.1 one odd image throws it off altogether, and with it the curves and the hundred
 * steps after it (seen at losses of 0.002, which were 5 to 40 three steps later). Test labels are all right.
 */
#include "datasets/format.h"
#include "datasets/shapes.h"
#include "engine/base/random.h"

enum { PIECES = 64, WRONG_ONE_IN = 20 };

/* Numbers of the streams: test images are other ones than any training image, however many there are of each.
 */
static const uint64_t test_images = UINT64_C(1) << 32, training_labels = UINT64_C(2) << 32;

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

static void mislabel_some(const struct image_set *set, uint64_t seed) {
    for (int64_t i = 0; i < set->count; i++) {
        struct random random = random_begin(seed, RANDOM_GENERATED_DATA, training_labels + (uint64_t)i);
        if (random_below(&random, WRONG_ONE_IN) == 0)
            set->labels[i] =
                (uint8_t)((set->labels[i] + 1 + random_below(&random, SHAPE_KINDS - 1)) % SHAPE_KINDS);
    }
}

static enum status draw(void *context, int piece) {
    struct generation *g = context;
    draw_piece(&g->data->train, g->seed, 0, piece);
    draw_piece(&g->data->test, g->seed, test_images, piece);
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
    STATUS_TRY(parallel_run(PIECES, draw, &generation));
    mislabel_some(&data->train, generation.seed);
    return STATUS_OK;
}
