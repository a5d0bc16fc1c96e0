/* The reader of checkpoints, on files from strangers: what a checkpoint says of itself, and its values for a
 * model of few parameters. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "engine/train/checkpoint.h"
#include "tests/fuzz/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] = "[model]\nname = tiny\ninput = 2\n[layer]\ntype = dense\nunits = classes\n"
                           "deviation = 0.1\nweight_decay = 0.01\n";

static struct model *tiny(void) {
    static struct model *model;
    if (!model && model_parse("tiny.ini", text, (struct model_ends){2, 2, 1, 3}, NAN, &model) != STATUS_OK)
        abort();
    return model;
}

static void check_numbers(const struct checkpoint *checkpoint) {
    const struct snapshot *s = &checkpoint->snapshot;
    const float *slots[] = {s->parameters, s->velocity, s->average};
    if (s->progress.steps < 0 || s->progress.images < 0 || s->epoch_images < 0 || !s->parameters)
        abort();
    for (int slot = 0; slot < 3; slot++)
        for (size_t i = 0; slots[slot] && i < s->model->flat_count; i++)
            if (!isfinite(slots[slot][i]))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_clear();
    fuzz_put("file", data, size);
    struct checkpoint_about about;
    if (checkpoint_look(fuzz_path("file"), &about) != STATUS_OK && !*status_text())
        abort();
    checkpoint_about_free(&about);
    struct checkpoint checkpoint;
    enum status status = checkpoint_read(fuzz_path("file"), tiny(), &checkpoint);
    if (status == STATUS_OK)
        check_numbers(&checkpoint);
    else if (!*status_text())
        abort();
    checkpoint_free(&checkpoint);
    return 0;
}
