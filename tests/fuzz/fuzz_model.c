/* The reader of model files. The first byte chooses what the data is like at the network's two ends. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct model *model, struct model_ends ends) {
    size_t last = 0;
    int64_t total = 0;
    if (model->layer_count < 1 || model->classes != ends.classes)
        abort();
    for (int i = 0; i < model->parameter_count; i++) {
        const struct model_parameter *p = &model->parameters[i];
        size_t count = 1;
        for (int d = 0; d < p->dim_count; d++)
            count *= (size_t)p->dims[d];
        if (p->offset < last || p->count != count || p->offset + p->count > model->flat_count ||
            !memchr(p->name, 0, sizeof p->name))
            abort();
        last = p->offset + p->count;
        total += (int64_t)count;
    }
    if (total != model->parameter_total)
        abort();
    if (model->flat_count > 100000)
        return;
    float *values = malloc(model->flat_count * sizeof *values + 1);
    if (!values)
        return;
    model_initialise(model, 1, values);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct model_ends all[4] = {
        {28, 28, 1, 10}, {32, 32, 3, 10}, {32, 32, 3, 100}, {1, 1, 1, 2}};
    if (size == 0)
        return 0;
    struct model_ends ends = all[data[0] & 3];
    char *text = malloc(size);
    struct model *model;
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    enum status status = model_parse("model.ini", text, ends, data[0] & 4 ? 0.5 : NAN, &model);
    if (status == STATUS_OK) {
        check(model, ends);
        model_free(model);
    } else if (!*status_text()) {
        abort();
    }
    free(text);
    return 0;
}
