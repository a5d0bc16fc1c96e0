#include "tests/support/golden_train.h"

#include "engine/train/schedule.h"
#include "tests/support/cmocka.h"
#include "tests/support/guarded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool golden_device_does(struct device_handle device, const struct model *model) {
    struct net *net = NULL;
    enum status status = net_plan(model, device, &(struct net_options){.images = 2, .training = true}, &net);
    net_free(net);
    if (status != STATUS_UNSUPPORTED || strncmp(device.ops->name, "ref", 3) == 0)
        expect_ok(status, "planning the model");
    else
        printf("  not compared: %s\n", status_text());
    return status == STATUS_OK;
}

static struct span flat(struct golden_train *t, const double *values) {
    struct span span;
    size_t count = t->model->flat_count, element = t->run[0].element;
    expect_ok(t->device.ops->buffer_new(t->device.device, count * element, PLACE_SHARED, &span),
              "a flat buffer");
    for (size_t i = 0; values && i < count; i++)
        if (element == sizeof(double))
            ((double *)span.data)[i] = values[i];
        else
            ((float *)span.data)[i] = (float)values[i];
    return span;
}

/* The squared norms of the tensors before the first update, which measures them from then on. */
static void measure(struct golden_train *t, const double *parameters) {
    for (int i = 0; i < t->model->parameter_count; i++) {
        const struct segment *s = &t->model->segments[i];
        t->parameter_norms2[i] = 0;
        for (size_t k = 0; k < s->count; k++)
            t->parameter_norms2[i] += parameters[s->offset + k] * parameters[s->offset + k];
    }
}

void golden_train_open(struct golden_train *t, struct device_handle device, const struct model *model,
                       struct golden_settings settings, const int shards[GOLDEN_TOWERS],
                       const double *parameters) {
    *t = (struct golden_train){.device = device, .model = model, .settings = settings};
    /* The towers run one after the other, each in as many lanes as a tower that is alone has. */
    struct net_options options = {
        .lanes = net_lanes_for(device, 1), .training = true, .force = settings.force};
    for (int k = 0; k < GOLDEN_TOWERS && shards[k]; k++) {
        t->images[t->towers] = options.images = shards[k];
        net_run_open_with(&t->run[t->towers++], device, model, &options);
    }
    t->parameters = flat(t, parameters);
    t->average = flat(t, NULL);
    if (settings.momentum > 0)
        t->velocity = flat(t, NULL);
    if (settings.ema > 0)
        t->shadow = flat(t, parameters);
    t->values = malloc(model->flat_count * sizeof *t->values);
    t->parameter_norms2 = malloc((size_t)model->parameter_count * sizeof *t->parameter_norms2);
    assert_non_null(t->values);
    assert_non_null(t->parameter_norms2);
    measure(t, parameters);
    expect_ok(collection_new(model, t->towers, &t->collection), "the collection of losses");
}

void golden_train_close(struct golden_train *t) {
    struct span *spans[] = {&t->parameters, &t->average, &t->velocity, &t->shadow};
    for (int i = 0; i < 4; i++)
        if (spans[i]->data)
            t->device.ops->buffer_free(t->device.device, *spans[i]);
    for (int k = 0; k < t->towers; k++)
        net_run_close(&t->run[k]);
    collection_free(&t->collection);
    free(t->values);
    free(t->parameter_norms2);
}

void golden_train_read(const struct golden_train *t, struct span span, double *out) {
    for (size_t i = 0; i < t->model->flat_count; i++)
        out[i] = net_run_value(&t->run[0], span, i);
}

/* Forward, losses, backward of each tower; its terms into the collection. */
static void run_towers(struct golden_train *t, const double *pixels, const int32_t *labels) {
    golden_train_read(t, t->parameters, t->values);
    int first = 0;
    for (int k = 0; k < t->towers; k++) {
        net_run_step(&t->run[k], t->values, pixels + (size_t)first * shape_size(t->model->input),
                     labels + first);
        collection_fill(&t->collection, k, t->model->segments, t->parameter_norms2,
                        net_run_mean_loss(&t->run[k]));
        first += t->images[k];
    }
}

/* What each tower's scope selects, and the weighted mean of it. */
static void total_losses(struct golden_train *t, const double *weights) {
    int *chosen = malloc((size_t)t->collection.count * sizeof *chosen);
    assert_non_null(chosen);
    t->loss = 0;
    for (int k = 0; k < t->towers; k++) {
        char scope[24];
        snprintf(scope, sizeof scope, "tower_%d/", k);
        int count = collection_select(&t->collection, scope, chosen);
        t->totals[k] = collection_sum(&t->collection, chosen, count);
        t->loss += weights[k] * t->totals[k];
    }
    free(chosen);
}

static void combine(struct golden_train *t, const double *weights) {
    struct span gradients[GOLDEN_TOWERS];
    double norms2[GOLDEN_TOWERS], norm2;
    for (int k = 0; k < t->towers; k++)
        gradients[k] = t->run[k].memory.gradient;
    struct combine_args args = {.towers = t->towers,
                                .gradients = gradients,
                                .weights = weights,
                                .parameters = t->parameters,
                                .segments = t->model->segments,
                                .segment_count = t->model->parameter_count,
                                .average = t->average,
                                .norms2 = norms2,
                                .average_norm2 = &norm2};
    expect_ok(t->device.ops->combine(t->device.device, &args), "combine");
    t->norm = sqrt(norm2);
    for (int k = 0; k < t->towers; k++)
        t->norms[k] = sqrt(norms2[k]);
}

static void update(struct golden_train *t) {
    const struct golden_settings *s = &t->settings;
    double *update_norms2 = malloc((size_t)t->model->parameter_count * sizeof *update_norms2);
    assert_non_null(update_norms2);
    struct update_args args = {.parameters = t->parameters,
                               .average = t->average,
                               .velocity = t->velocity,
                               .shadow = t->shadow,
                               .segments = t->model->segments,
                               .segment_count = t->model->parameter_count,
                               .learning_rate = s->lr,
                               .momentum = s->momentum,
                               .gradient_scale = s->clip > 0 && t->norm > s->clip ? s->clip / t->norm : 1,
                               .ema_decay = average_decay(s->ema, t->steps),
                               .parameter_norms2 = t->parameter_norms2,
                               .update_norms2 = update_norms2};
    expect_ok(t->device.ops->update(t->device.device, &args), "update");
    free(update_norms2);
}

void golden_train_step(struct golden_train *t, const double *pixels, const int32_t *labels) {
    double weights[GOLDEN_TOWERS];
    int all = 0;
    for (int k = 0; k < t->towers; k++)
        all += t->images[k];
    for (int k = 0; k < t->towers; k++)
        weights[k] = (double)t->images[k] / all;
    run_towers(t, pixels, labels);
    total_losses(t, weights);
    combine(t, weights);
    update(t);
    t->steps++;
}
