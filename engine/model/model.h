/* A network as a model file (INI) describes it, with every shape inferred and checked.
 *
 *   [model]   name, input (side of the square). It stands first. For training it may give
 *             batch lr lr_decay decay_epochs momentum clip_norm ema
 *   [conv1]   type=conv kernel=5 channels=64 stride=1 deviation=0.05 bias=0 relu=yes weight_decay=0.0
 *   [pool1]   type=pool kernel=3 stride=2
 *   [norm1]   type=lrn radius=4 bias=1 alpha=0.001/9 beta=0.75
 *   [local3]  type=dense units=384 ...  (units=classes: as many as the data has)
 *
 * One setting a line. stride is 1, bias of conv and dense 0, relu no when absent; a number may be a quotient.
 * The padding is SAME (op.h). Section names are the layers' names and differ. The last layer gives {1, 1,
 * classes}.
 *
 * A layer becomes one to three operations (conv, bias, relu). A weight_decay that is given, even 0, makes a
 * term in the loss collection; one that is absent makes none. A tower's collection: the decay terms in the
 * order of the layers ("local3/weight_loss"), then cross_entropy. */
#ifndef TOWERSCOPE_ENGINE_MODEL_MODEL_H
#define TOWERSCOPE_ENGINE_MODEL_MODEL_H

#include "kernels/device.h"

#define MODEL_NAME_MAX 48

struct model_parameter {
    char name[MODEL_NAME_MAX + 16]; /* TensorFlow's variable name: "conv1/weights", "conv1/biases" */
    int dims[4], dim_count;         /* [kh][kw][in][out], [in][out] or [channels] */
    size_t offset, count; /* in the flat buffer, in elements; each tensor starts at a multiple of 16 */
    int layer, op;        /* which layer and operation it belongs to */
    bool has_decay;       /* the layer's weight_decay was given: a term in the collection */
    double weight_decay;
    double deviation; /* of the truncated normal; weights */
    double constant;  /* initial value; biases */
    bool is_bias;
};

struct model_layer {
    char name[MODEL_NAME_MAX];
    char type[16];
    int first_op, op_count;
    int weights, biases; /* index into parameters, or -1 */
    int line;            /* in the model file */
};

struct model_defaults { /* of the training settings; unknown: NaN */
    double lr, lr_decay, decay_epochs, momentum, clip_norm, ema;
    int batch; /* 0: not given */
};

struct model {
    char name[MODEL_NAME_MAX];
    char *source;       /* the text of the file, as read: kept with the run */
    struct shape input; /* input x input x channels of the data */
    int classes;
    int layer_count, op_count, parameter_count;
    struct model_layer *layers;
    struct op *ops;
    struct model_parameter *parameters;
    size_t flat_count;        /* elements of the flat buffer, padding between tensors included */
    int64_t parameter_total;  /* without the padding: 1,068,298 for cifar10 with 3 channels */
    struct segment *segments; /* [parameter_count], for combine and update */
    struct model_defaults defaults;
};

/* What the data says about the network's two ends. */
struct model_ends {
    int height, width, channels, classes;
};

/* Read a model: a name of those that come with the program ("cifar10"), or a path (with a / or ending in
 * .ini). Errors: STATUS_BAD_INPUT names file, line and section; STATUS_NOT_FOUND (the nearest name is named),
 * STATUS_IO, STATUS_NO_MEMORY. weight_decay_override: replaces every given non-zero weight_decay unless NaN.
 * Free with model_free (NULL is fine). */
enum status model_read(const char *name_or_path, struct model_ends ends, double weight_decay_override,
                       struct model **out);
/* The same from text; `file` is for messages. */
enum status model_parse(const char *file, const char *text, struct model_ends ends,
                        double weight_decay_override, struct model **out);
void model_free(struct model *model);

/* Names of the models that come with the program; NULL past the end. */
const char *model_builtin(int i);

/* Initial parameters into out[flat_count] (padding 0), the same for every machine and device: weights
 * truncated normal by (seed, number of the tensor), biases constant. Computed in double, rounded to float. */
void model_initialise(const struct model *model, uint64_t seed, float *out);

#endif
