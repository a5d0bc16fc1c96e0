/* A model file's text into layers, operations and parameters. */
#include "engine/base/inifile.h"
#include "engine/base/printable.h"
#include "engine/base/text.h"
#include "engine/model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDE_MAX = 4096,
    CHANNELS_MAX = 1 << 20,
    KERNEL_MAX = 63,
    IMAGE_VALUES_MAX = 1 << 27, /* of one image at one place of the network */
    LAYERS_MAX = 512,
    OPS_PER_LAYER = 3,
    PARAMETERS_PER_LAYER = 2,
    TENSOR_ALIGNMENT = 16, /* elements: a tensor begins on a cache line whatever it follows */
};

#define PARAMETERS_MAX INT64_C(2147483647)

struct parser {
    const char *file;
    struct model_ends ends;
    double weight_decay; /* replaces each non-zero one; NaN: the file's hold */
    struct model *model;
    struct shape at; /* what the next layer reads */
    struct model_layer *layer;
    struct inifile_section *section;
};

/* ---- settings */

static enum status refuse(const struct parser *p, const struct inifile_pair *pair, const char *expected) {
    return status_fail(STATUS_BAD_INPUT, "%s:%d: [%s] %s = %s: expected %s", p->file, pair->line,
                       p->section->name, pair->key, pair->value, expected);
}

static enum status missing(const struct parser *p, const char *key, const char *expected) {
    return status_fail(STATUS_BAD_INPUT, "%s:%d: [%s] needs %s: %s", p->file, p->section->line,
                       p->section->name, key, expected);
}

enum { REQUIRED = -1 };

/* A whole number from low to high; `otherwise` when absent, unless that is REQUIRED. */
static enum status get_whole(struct parser *p, const char *key, int low, int high, int otherwise, int *out) {
    char expected[64];
    snprintf(expected, sizeof expected, "a whole number from %d to %d", low, high);
    const struct inifile_pair *pair = inifile_find(p->section, key);
    if (!pair && otherwise == REQUIRED)
        return missing(p, key, expected);
    int64_t value = otherwise;
    if (pair && (!text_integer(pair->value, &value) || value < low || value > high))
        return refuse(p, pair, expected);
    *out = (int)value;
    return STATUS_OK;
}

struct range {
    double low, high;
    bool low_open, high_open;
    const char *words;
};

static const struct range ANY = {-1e6, 1e6, false, false, "a number from -1000000 to 1000000"};
static const struct range POSITIVE = {0, 1e6, true, false, "a number above 0 and at most 1000000"};
static const struct range NOT_NEGATIVE = {0, 1e6, false, false, "a number from 0 to 1000000"};
static const struct range SHARE = {0, 1, false, true, "a number from 0 to below 1"};
static const struct range FACTOR = {0, 1, true, false, "a number above 0 and at most 1"};

/* A number in the range, which may be a quotient; absent: *out stays, and *given (may be NULL) says so. */
static enum status get_real(struct parser *p, const char *key, struct range range, bool required, double *out,
                            bool *given) {
    const struct inifile_pair *pair = inifile_find(p->section, key);
    if (given)
        *given = pair != NULL;
    if (!pair)
        return required ? missing(p, key, range.words) : STATUS_OK;
    double value;
    if (!text_quotient(pair->value, &value) || value < range.low || value > range.high ||
        (range.low_open && value == range.low) || (range.high_open && value == range.high))
        return refuse(p, pair, range.words);
    *out = value;
    return STATUS_OK;
}

static enum status get_flag(struct parser *p, const char *key, bool *out) {
    const struct inifile_pair *pair = inifile_find(p->section, key);
    *out = false;
    if (!pair)
        return STATUS_OK;
    *out = strcmp(pair->value, "yes") == 0;
    return *out || strcmp(pair->value, "no") == 0 ? STATUS_OK : refuse(p, pair, "yes or no");
}

static enum status check_keys(const struct parser *p, const char *what, const char *const *keys) {
    int count = 0;
    while (keys[count])
        count++;
    for (const struct inifile_pair *pair = p->section->pairs; pair; pair = pair->next) {
        bool known = false;
        for (int i = 0; i < count && !known; i++)
            known = strcmp(pair->key, keys[i]) == 0;
        const char *near = known ? NULL : text_near(pair->key, keys, count);
        if (near)
            return status_fail(STATUS_BAD_INPUT, "%s:%d: [%s] %s has no setting \"%s\": did you mean %s?",
                               p->file, pair->line, p->section->name, what, pair->key, near);
        if (!known) {
            char all[256];
            text_list(all, sizeof all, keys, count);
            return status_fail(STATUS_BAD_INPUT, "%s:%d: [%s] %s has no setting \"%s\"; there are %s",
                               p->file, pair->line, p->section->name, what, pair->key, all);
        }
    }
    return STATUS_OK;
}

/* ---- operations and parameters */

static struct op *add_op(struct parser *p, enum op_kind kind, struct shape out) {
    struct op *op = &p->model->ops[p->model->op_count++];
    *op = (struct op){.kind = kind, .in = p->at, .out = out};
    p->layer->op_count++;
    p->at = out;
    return op;
}

static enum status check_size(const struct parser *p, struct shape shape) {
    /* Sides and channels are bounded, so this product of three fits 64 bits. */
    int64_t values = (int64_t)shape.h * shape.w * shape.c;
    if (values > IMAGE_VALUES_MAX)
        return status_fail(STATUS_BAD_INPUT, "%s:%d: [%s] makes %d x %d x %d values of an image: at most %d",
                           p->file, p->section->line, p->section->name, shape.h, shape.w, shape.c,
                           IMAGE_VALUES_MAX);
    return STATUS_OK;
}

/* A tensor of the last operation. `what` is "weights" or "biases"; dims end with 0. */
static enum status add_parameter(struct parser *p, const char *what, const int *dims,
                                 struct model_parameter **out) {
    struct model *model = p->model;
    struct model_parameter *parameter = &model->parameters[model->parameter_count];
    snprintf(parameter->name, sizeof parameter->name, "%s/%s", p->layer->name, what);
    int64_t count = 1;
    bool fits = true;
    for (int i = 0; i < 4 && dims[i] != 0; i++) {
        parameter->dims[parameter->dim_count++] = dims[i];
        fits = fits && !__builtin_mul_overflow(count, (int64_t)dims[i], &count) && count <= PARAMETERS_MAX;
    }
    if (!fits || model->parameter_total + count > PARAMETERS_MAX)
        return status_fail(STATUS_BAD_INPUT, "%s:%d: [%s]: with %s the model has more than %lld parameters",
                           p->file, p->section->line, p->section->name, parameter->name,
                           (long long)PARAMETERS_MAX);
    parameter->offset = model->flat_count;
    parameter->count = (size_t)count;
    parameter->layer = model->layer_count;
    parameter->op = model->op_count - 1;
    model->parameter_total += count;
    model->flat_count += ((size_t)count + TENSOR_ALIGNMENT - 1) / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT;
    model->parameter_count++;
    *out = parameter;
    return STATUS_OK;
}

/* What conv and dense share: weights, then biases, then ReLU. The weighted operation is added already. */
static enum status add_weights(struct parser *p, const int *dims) {
    struct model_layer *layer = p->layer;
    struct model_parameter *weights, *biases;
    layer->weights = p->model->parameter_count;
    STATUS_TRY(add_parameter(p, "weights", dims, &weights));
    STATUS_TRY(get_real(p, "deviation", POSITIVE, true, &weights->deviation, NULL));
    STATUS_TRY(get_real(p, "weight_decay", NOT_NEGATIVE, false, &weights->weight_decay, &weights->has_decay));
    if (weights->weight_decay != 0 && !isnan(p->weight_decay))
        weights->weight_decay = p->weight_decay;

    add_op(p, OP_BIAS, p->at);
    layer->biases = p->model->parameter_count;
    STATUS_TRY(add_parameter(p, "biases", (const int[4]){p->at.c}, &biases));
    biases->is_bias = true;
    STATUS_TRY(get_real(p, "bias", ANY, false, &biases->constant, NULL));

    bool relu;
    STATUS_TRY(get_flag(p, "relu", &relu));
    if (relu)
        add_op(p, OP_RELU, p->at);
    return STATUS_OK;
}

/* ---- layers */

static int side(struct shape shape) {
    return shape.h < shape.w ? shape.h : shape.w;
}

static enum status parse_conv(struct parser *p) {
    struct op_window window = {0};
    int channels;
    STATUS_TRY(get_whole(p, "kernel", 1, KERNEL_MAX, REQUIRED, &window.kernel_h));
    STATUS_TRY(get_whole(p, "channels", 1, CHANNELS_MAX, REQUIRED, &channels));
    STATUS_TRY(get_whole(p, "stride", 1, KERNEL_MAX, 1, &window.stride));
    if (window.kernel_h > 2 * side(p->at) - 1)
        return status_fail(STATUS_BAD_INPUT,
                           "%s:%d: [%s] kernel = %d reads beyond both edges of %d x %d: at most %d", p->file,
                           p->section->line, p->section->name, window.kernel_h, p->at.h, p->at.w,
                           2 * side(p->at) - 1);
    window.kernel_w = window.kernel_h;
    struct shape in = p->at, out = op_same_padding(in, channels, &window);
    STATUS_TRY(check_size(p, out));
    add_op(p, OP_CONV, out)->window = window;
    return add_weights(p, (const int[4]){window.kernel_h, window.kernel_w, in.c, channels});
}

static enum status parse_pool(struct parser *p) {
    struct op_window window = {0};
    STATUS_TRY(get_whole(p, "kernel", 1, KERNEL_MAX, REQUIRED, &window.kernel_h));
    STATUS_TRY(get_whole(p, "stride", 1, KERNEL_MAX, 1, &window.stride));
    if (window.kernel_h > side(p->at))
        return status_fail(STATUS_BAD_INPUT, "%s:%d: [%s] kernel = %d is larger than its input of %d x %d",
                           p->file, p->section->line, p->section->name, window.kernel_h, p->at.h, p->at.w);
    window.kernel_w = window.kernel_h;
    struct shape out = op_same_padding(p->at, p->at.c, &window);
    add_op(p, OP_MAX_POOL, out)->window = window;
    return STATUS_OK;
}

static enum status parse_lrn(struct parser *p) {
    struct op_lrn lrn = {.radius = 0, .bias = 1};
    STATUS_TRY(get_whole(p, "radius", 0, KERNEL_MAX, REQUIRED, &lrn.radius));
    STATUS_TRY(get_real(p, "bias", POSITIVE, true, &lrn.bias, NULL));
    STATUS_TRY(get_real(p, "alpha", NOT_NEGATIVE, true, &lrn.alpha, NULL));
    STATUS_TRY(get_real(p, "beta", NOT_NEGATIVE, true, &lrn.beta, NULL));
    add_op(p, OP_LRN, p->at)->lrn = lrn;
    return STATUS_OK;
}

static enum status parse_dense(struct parser *p) {
    int units = p->ends.classes;
    const struct inifile_pair *pair = inifile_find(p->section, "units");
    if (!pair || strcmp(pair->value, "classes") != 0)
        STATUS_TRY(get_whole(p, "units", 1, CHANNELS_MAX, REQUIRED, &units));
    struct shape in = p->at;
    add_op(p, OP_DENSE, (struct shape){1, 1, units});
    return add_weights(p, (const int[4]){(int)shape_size(in), units});
}

static const struct layer_kind {
    const char *type;
    const char *keys[8];
    enum status (*parse)(struct parser *p);
} kinds[] = {
    {"conv",
     {"type", "kernel", "channels", "stride", "deviation", "bias", "relu", "weight_decay"},
     parse_conv},
    {"pool", {"type", "kernel", "stride"}, parse_pool},
    {"lrn", {"type", "radius", "bias", "alpha", "beta"}, parse_lrn},
    {"dense", {"type", "units", "deviation", "bias", "relu", "weight_decay"}, parse_dense},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static enum status find_kind(const struct parser *p, const struct layer_kind **out) {
    const char *types[KINDS];
    for (int i = 0; i < KINDS; i++)
        types[i] = kinds[i].type;
    const struct inifile_pair *pair = inifile_find(p->section, "type");
    if (!pair)
        return missing(p, "type", "conv, pool, lrn or dense");
    for (int i = 0; i < KINDS; i++)
        if (strcmp(pair->value, types[i]) == 0) {
            *out = &kinds[i];
            return STATUS_OK;
        }
    const char *near = text_near(pair->value, types, KINDS);
    return status_fail(STATUS_BAD_INPUT, "%s:%d: [%s] type = %s: expected conv, pool, lrn or dense%s%s%s",
                       p->file, pair->line, p->section->name, pair->value, near ? "; did you mean " : "",
                       near ? near : "", near ? "?" : "");
}

static enum status parse_layer(struct parser *p) {
    struct model *model = p->model;
    const struct layer_kind *kind = NULL;
    STATUS_TRY(find_kind(p, &kind));
    char what[32];
    snprintf(what, sizeof what, "type %s", kind->type);
    const char *keys[9] = {NULL}; /* kind->keys may be full, without a NULL at its end */
    memcpy(keys, kind->keys, sizeof kind->keys);
    STATUS_TRY(check_keys(p, what, keys));
    struct model_layer *layer = p->layer = &model->layers[model->layer_count];
    *layer = (struct model_layer){
        .first_op = model->op_count, .weights = -1, .biases = -1, .line = p->section->line};
    snprintf(layer->name, sizeof layer->name, "%s", p->section->name);
    snprintf(layer->type, sizeof layer->type, "%s", kind->type);
    STATUS_TRY(kind->parse(p));
    model->layer_count++;
    return STATUS_OK;
}

/* ---- the whole file */

static enum status parse_head(struct parser *p) {
    static const char *const keys[] = {"name",         "input",    "batch",     "lr",  "lr_decay",
                                       "decay_epochs", "momentum", "clip_norm", "ema", NULL};
    struct model *model = p->model;
    struct model_defaults *defaults = &model->defaults;
    STATUS_TRY(check_keys(p, "the model", keys));
    const struct inifile_pair *name = inifile_find(p->section, "name");
    if (!name)
        return missing(p, "name", "what to call the model");
    if (!*name->value || strlen(name->value) >= sizeof model->name || strpbrk(name->value, "/\\\"") ||
        !text_is_utf8(name->value))
        return refuse(p, name, "1 to 47 letters without / \\ \", in UTF-8");
    snprintf(model->name, sizeof model->name, "%s", name->value);
    int input;
    STATUS_TRY(get_whole(p, "input", 1, SIDE_MAX, REQUIRED, &input));
    if (input > p->ends.height || input > p->ends.width)
        return status_fail(STATUS_BAD_INPUT, "%s:%d: [model] input = %d: the data's images are only %d x %d",
                           p->file, inifile_find(p->section, "input")->line, input, p->ends.height,
                           p->ends.width);
    model->input = p->at = (struct shape){input, input, p->ends.channels};
    STATUS_TRY(check_size(p, p->at));
    STATUS_TRY(get_whole(p, "batch", 1, 1 << 24, 0, &defaults->batch));
    STATUS_TRY(get_real(p, "lr", POSITIVE, false, &defaults->lr, NULL));
    STATUS_TRY(get_real(p, "lr_decay", FACTOR, false, &defaults->lr_decay, NULL));
    STATUS_TRY(get_real(p, "decay_epochs", POSITIVE, false, &defaults->decay_epochs, NULL));
    STATUS_TRY(get_real(p, "momentum", SHARE, false, &defaults->momentum, NULL));
    STATUS_TRY(get_real(p, "clip_norm", POSITIVE, false, &defaults->clip_norm, NULL));
    return get_real(p, "ema", SHARE, false, &defaults->ema, NULL);
}

/* [model] must stand first; what is before any section is refused. Counts the layers. */
static enum status check_sections(const struct inifile *ini, int *layers) {
    const struct inifile_section *first = ini->sections;
    if (first->pairs)
        return status_fail(STATUS_BAD_INPUT, "%s:%d: %s stands before any section: expected [model] first",
                           ini->file, first->pairs->line, first->pairs->key);
    if (!first->next || strcmp(first->next->name, "model") != 0)
        return status_fail(STATUS_BAD_INPUT, "%s:%d: expected [model] as the first section", ini->file,
                           first->next ? first->next->line : 1);
    *layers = 0;
    for (const struct inifile_section *s = first->next->next; s; s = s->next)
        if (++*layers > LAYERS_MAX)
            return status_fail(STATUS_BAD_INPUT, "%s:%d: [%s] is one layer more than the %d that are read",
                               ini->file, s->line, s->name, LAYERS_MAX);
    if (*layers == 0)
        return status_fail(STATUS_BAD_INPUT, "%s:%d: [model] has no layers after it", ini->file,
                           first->next->line);
    return STATUS_OK;
}

static enum status check_ends(const struct parser *p) {
    const struct model_ends *e = &p->ends;
    if (e->height < 1 || e->height > SIDE_MAX || e->width < 1 || e->width > SIDE_MAX || e->channels < 1 ||
        e->channels > CHANNELS_MAX || e->classes < 2 || e->classes > CHANNELS_MAX)
        return status_fail(STATUS_BAD_INPUT,
                           "%s: no model fits data of %d x %d x %d and %d classes: sides 1 to %d, at least "
                           "one channel and two classes",
                           p->file, e->height, e->width, e->channels, e->classes, SIDE_MAX);
    return STATUS_OK;
}

static enum status allocate(struct parser *p, int layers, const char *text) {
    struct model *model = p->model;
    model->source = strdup(text);
    model->layers = calloc((size_t)layers, sizeof *model->layers);
    model->ops = calloc((size_t)layers * OPS_PER_LAYER, sizeof *model->ops);
    model->parameters = calloc((size_t)layers * PARAMETERS_PER_LAYER, sizeof *model->parameters);
    model->segments = calloc((size_t)layers * PARAMETERS_PER_LAYER, sizeof *model->segments);
    if (!model->source || !model->layers || !model->ops || !model->parameters || !model->segments)
        return status_fail(STATUS_NO_MEMORY, "%s: no memory for a model of %d layers", p->file, layers);
    model->defaults = (struct model_defaults){NAN, NAN, NAN, NAN, NAN, NAN, 0};
    model->classes = p->ends.classes;
    return STATUS_OK;
}

static enum status parse_sections(struct parser *p, const struct inifile *ini, const char *text) {
    struct model *model = p->model;
    int layers = 0;
    STATUS_TRY(check_sections(ini, &layers));
    STATUS_TRY(allocate(p, layers, text));
    p->section = ini->sections->next;
    STATUS_TRY(parse_head(p));
    for (struct inifile_section *s = p->section->next; s; s = s->next) {
        p->section = s;
        STATUS_TRY(parse_layer(p));
    }
    if (p->at.h != 1 || p->at.w != 1 || p->at.c != p->ends.classes)
        return status_fail(
            STATUS_BAD_INPUT,
            "%s:%d: [%s], the last layer, gives %d x %d x %d values for %d classes: end with a "
            "dense layer of units = classes",
            p->file, p->section->line, p->section->name, p->at.h, p->at.w, p->at.c, p->ends.classes);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct model_parameter *parameter = &model->parameters[i];
        model->segments[i] = (struct segment){parameter->offset, parameter->count, parameter->weight_decay};
    }
    return STATUS_OK;
}

enum status model_parse(const char *file, const char *text, struct model_ends ends,
                        double weight_decay_override, struct model **out) {
    *out = NULL;
    struct parser p = {.file = file, .ends = ends, .weight_decay = weight_decay_override};
    STATUS_TRY(check_ends(&p));
    struct inifile ini;
    STATUS_TRY(inifile_parse(file, text, &ini));
    p.model = calloc(1, sizeof *p.model);
    enum status status = p.model ? parse_sections(&p, &ini, text)
                                 : status_fail(STATUS_NO_MEMORY, "%s: no memory for a model", file);
    inifile_free(&ini);
    if (status == STATUS_OK)
        *out = p.model;
    else
        model_free(p.model);
    return status;
}
