/* towerscope data order: what each tower is given, image by image, as the training loop would give it. */
#include "cli/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "datasets/distort.h"
#include "datasets/order.h"

static const char help[] =
    "usage: towerscope data order PATH [options]\n\n"
    "Prints, for each epoch and tower, its first images in the order of training: the image's number in the "
    "set, where\n"
    "it is cut out, whether it is flipped, what is added to it and by how much its contrast is changed.\n\n"
    "  --towers N     1 to 64 (default 2)\n"
    "  --batch N      images of a step, over all towers (default 128)\n"
    "  --epochs N     (default 2)\n"
    "  --images N     images of each tower and epoch to print (default 32)\n"
    "  --seed N       the run's seed (default 1)\n"
    "  --size N       side of the cut-out (default 24)\n"
    "  --distort X    on, off, or a comma list of crop, flip, brightness, contrast (default on)\n";

struct request {
    int64_t towers, batch, epochs, images, seed, size;
    unsigned distortions;
};

static void print_image(const struct image_set *set, const struct request *r, int64_t epoch, int tower,
                        int64_t sample) {
    const struct distort_options options = {
        .seed = (uint64_t)r->seed, .size = (int)r->size, .distortions = r->distortions};
    struct distortion_draw draw = distort_draw(set, &options, sample, epoch);
    printf("epoch %lld tower %d image %lld top %d left %d flip %d brightness %.3f contrast %.4f\n",
           (long long)epoch, tower, (long long)sample, draw.top, draw.left, draw.flip,
           (double)draw.brightness, (double)draw.contrast);
}

/* One tower's images of an epoch: its shards of one batch after the other. */
static void print_tower(const struct image_set *set, const struct request *r, int64_t epoch, int tower,
                        const uint32_t *order) {
    int64_t printed = 0;
    for (int64_t at = 0; at < set->count && printed < r->images; at += r->batch) {
        int64_t left = set->count - at, first;
        int64_t size = order_shard(left < r->batch ? left : r->batch, (int)r->towers, tower, &first);
        for (int64_t i = 0; i < size && printed < r->images; i++, printed++)
            print_image(set, r, epoch, tower, order[at + first + i]);
    }
}

static int print_order(const struct dataset *data, const struct request *r) {
    const struct image_set *set = &data->train;
    if (r->size > set->shape.h || r->size > set->shape.w)
        return cli_fail(status_fail(STATUS_BAD_INPUT, "--size %lld: the images of %s are %dx%d",
                                    (long long)r->size, data->name, set->shape.h, set->shape.w));
    uint32_t *order = malloc((size_t)set->count * sizeof *order);
    if (!order)
        return cli_fail(
            status_fail(STATUS_NO_MEMORY, "no memory for the order of %lld images", (long long)set->count));
    for (int64_t epoch = 0; epoch < r->epochs; epoch++) {
        order_epoch((uint64_t)r->seed, epoch, set->count, order);
        for (int tower = 0; tower < r->towers; tower++)
            print_tower(set, r, epoch, tower, order);
    }
    free(order);
    return EXIT_DONE;
}

int data_order(int argc, char **argv) {
    struct request r = {.towers = 2, .batch = 128, .epochs = 2, .images = 32, .seed = 1, .size = 24};
    const char *distort = "on", *path;
    const struct argument options[] = {
        {.name = "--towers", .value = "a number", .integer = &r.towers, .low = 1, .high = 64},
        {.name = "--batch", .value = "a number", .integer = &r.batch, .low = 1, .high = 1000000},
        {.name = "--epochs", .value = "a number", .integer = &r.epochs, .low = 1, .high = 1000000},
        {.name = "--images", .value = "a number", .integer = &r.images, .low = 1, .high = INFINITY},
        {.name = "--seed", .value = "a number", .integer = &r.seed, .high = INFINITY},
        {.name = "--size", .value = "a number", .integer = &r.size, .low = 1, .high = 4096},
        {.name = "--distort", .value = "on, off or a list", .text = &distort},
    };
    const struct data_part part = {"data order", help, "a PATH", options, sizeof options / sizeof *options};
    int rc = data_arguments(argc, argv, &part, &path);
    if (rc >= 0)
        return rc;
    if (distort_parse(distort, &r.distortions) != STATUS_OK) {
        cli_fail(STATUS_BAD_INPUT);
        return EXIT_USAGE;
    }
    struct dataset *data;
    enum status status = dataset_open(path, NULL, &data);
    if (status != STATUS_OK)
        return cli_fail(status);
    rc = print_order(data, &r);
    dataset_close(data);
    return rc;
}
