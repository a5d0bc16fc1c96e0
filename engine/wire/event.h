/* The events of a run, as structures: what the engine says and what every view is made from.
 *
 * One table of fields (fields.c) describes them; encoder, decoder, PROTOCOL.md and `towerscope diff` are made
 * from that table. An event with seq > 0 is part of the record; seq 0 is live only.
 *
 * Unknown values: a number that is not known is wire_unknown() (a NaN with a payload, see wire_is_unknown())
 * or WIRE_UNKNOWN_INT, a string NULL; unknown fields are left out of the line. A value that is known and not
 * finite is written as null and read back as a plain NaN. */
#ifndef TOWERSCOPE_ENGINE_WIRE_EVENT_H
#define TOWERSCOPE_ENGINE_WIRE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "kernels/status.h"

#define WIRE_PROTOCOL    1
#define WIRE_LINE_MAX    65536 /* bytes of a line, newline included */
#define WIRE_UNKNOWN_INT INT64_MIN
#define WIRE_INT_MAX     (INT64_C(1) << 53) /* up to here every reader of JSON keeps whole numbers apart */
#define WHY_TOWERS       256                /* of a frozen step told one by one */

/* Steps between two events of the layers (the first comes with step 1), and between two states that a rewind
 * may go back to. */
enum { LAYERS_EVERY = 100, GOOD_EVERY = 100 };

/* The NaN that stands for a number nobody knows, and whether a value is that one: any other NaN is a value
 * that is known and not finite. */
double wire_unknown(void);
bool wire_is_unknown(double value);

enum event_kind {
    EVENT_NONE = 0,
    EVENT_RUN_START,
    EVENT_STEP,
    EVENT_LOSSES,
    EVENT_LAYERS,
    EVENT_PHASE,
    EVENT_WHY,
    EVENT_IMAGES,
    EVENT_EVAL,
    EVENT_COMMAND,
    EVENT_TOWERS,
    EVENT_CHECKPOINT,
    EVENT_REWIND,
    EVENT_NOTE,
    EVENT_ALARM,
    EVENT_STATE,
    EVENT_DEVICE,  /* live only */
    EVENT_CONTROL, /* live only */
    EVENT_HELLO,   /* live only */
    EVENT_GAP,     /* live only */
    EVENT_RUN_END,
    EVENT_KINDS
};

struct event_run_device {
    const char *device, *name; /* "cpu", the processor in words */
    int64_t threads, memory;   /* memory in bytes */
};

struct event_run_class {
    const char *name;
};

struct event_run_start {
    const char *run, *model;
    int64_t parameters;
    const char *data_name;
    int64_t data_train, data_test, data_classes;
    int64_t class_name_count; /* data_classes, or 0: they have no names */
    struct event_run_class *class_names;
    int64_t data_shape[3]; /* height, width, channels as the network sees an image */
    int64_t batch;
    const char *batch_rule; /* "global" or "per-tower" */
    int64_t towers;
    int64_t device_count;
    struct event_run_device *devices;
    int64_t seed;
    double lr, momentum, weight_decay; /* weight_decay: the largest of the model's layers */
    int64_t steps;                     /* planned; unknown: no limit */
    int64_t resumed_from;              /* step */
};

struct event_step_tower {
    int64_t tower;
    const char *device;
    int64_t images;
    double cross_entropy, weight_decay, loss, grad_norm, cosine;
    double load_ms, forward_ms, backward_ms, wait_ms;
};

struct event_step {
    int64_t step;
    double epoch, lr;
    int64_t images;
    double seconds, images_per_second;
    double cross_entropy, weight_decay, loss; /* averaged, weighted by images */
    double grad_norm;                         /* of the average */
    double grad_norm_mean;                    /* mean of the towers' norms */
    double update_ratio, noise_scale;
    const char *applied; /* name of a wrong rule in force */
    double spread; /* under no-average: sqrt(mean_k |w_k - mean|^2) / |mean| of the towers' parameters */
    double loss_min, loss_max, grad_norm_max; /* since the last recorded step */
    int64_t tower_count;
    struct event_step_tower *towers;
    double average_ms, update_ms;
};

struct event_term {
    const char *name; /* with its scope: "tower_0/local3/weight_loss" */
    double value;
};

struct event_losses_tower {
    int64_t tower, term_count;
    struct event_term *terms;
};

struct event_losses {
    int64_t step, tower_count;
    struct event_losses_tower *towers;
};

struct event_layer {
    const char *name;
    int64_t parameters;
    double param_norm, grad_norm, update_ratio, zeros; /* zeros: share of zero activations */
};

struct event_layers {
    int64_t step, layer_count;
    struct event_layer *layers;
};

struct event_phase {
    int64_t step, images; /* images of the step's batch */
    const char *phase;    /* the one just done: load, forward, losses, backward, average, update; start */
};

struct event_alternative {
    const char *name;
    double printed_loss, grad_norm, cosine, step_size;
    bool identical;
};

struct event_why_tower {
    int64_t tower, images;
    double loss, grad_norm, cosine; /* of the gradient of its total; with the right average */
};

struct event_why {
    int64_t step, images;
    double lr, loss, grad_norm;      /* of the right average, whatever rule is in force */
    double momentum, clip_norm, ema; /* of the update that is to come */
    int64_t tower_count;
    struct event_why_tower *towers; /* the first WHY_TOWERS of them */
    /* The same images on one tower: its loss, and relative differences of loss, gradient, updated parameters.
     */
    double proof_loss, proof_loss_difference, proof_gradient_difference, proof_parameter_difference;
    int64_t proof_bytes;
    int64_t alternative_count;
    struct event_alternative *alternatives;
};

struct event_image {
    int64_t label, prediction;
    double probability;
    int64_t width, height, channels;
    const char *pixels; /* base64 of height x width x channels bytes */
};

struct event_images {
    int64_t step, tower, first, image_count;
    struct event_image *images;
};

struct event_eval {
    int64_t step;
    double precision, loss; /* precision @ 1, 0..1; loss: mean cross-entropy */
    int64_t correct, images;
    bool averaged;   /* with the moving averages of the parameters */
    int64_t classes; /* rows of the confusion matrix; 0: not asked for */
    int64_t confusion_count;
    int64_t *confusion; /* [label * classes + prediction] */
};

struct event_command {
    const char *id, *from;
    const char *screen; /* "Why": the console's that sent it to draw what it shows; NULL: a person's */
    const char *text;
    const char *status; /* pending (live only), applied, refused */
    int64_t step;
    const char *reason; /* why refused, or what applying it meant */
    double lr;          /* of the next step, where applying it set it */
    int64_t batch;      /* images of the next steps, where applying it set them */
};

struct event_towers {
    int64_t step, from, to;
    const char *reason;
};

struct event_checkpoint {
    int64_t step;
    const char *path;
    int64_t bytes;
    double seconds;
};

struct event_rewind {
    int64_t step, to;
    const char *reason;
};

struct event_note {
    int64_t step;
    const char *text;
};

struct event_alarm {
    const char *level; /* info, warning, error */
    int64_t step, tower;
    const char *tensor, *text;
};

struct event_state {
    const char *state; /* starting, training, paused, evaluating, saving, ended */
    int64_t step;
};

struct event_device {
    const char *device;
    int64_t memory_used, memory_total;             /* bytes */
    double utilization, temperature, power, clock; /* 0..1, degrees Celsius, watts, MHz */
};

struct event_control {
    const char *holder_user, *holder_terminal; /* NULL: nobody */
    int64_t watchers;                          /* consoles beside the holder */
    bool yours;                                /* the client that this was sent to is the holder */
    const char *asking_user, *asking_terminal; /* who asks for control; NULL: nobody */
};

struct event_hello {
    int64_t protocol;
    const char *version, *run;
    int64_t last_seq, offset; /* the record up to this byte holds all up to last_seq */
};

struct event_gap {
    int64_t last_seq, offset;
};

struct event_run_end {
    int64_t step;
    const char *reason; /* done, stopped, failed */
    const char *text;
};

struct event {
    enum event_kind kind;
    int64_t seq; /* 0: live only */
    double time; /* seconds since 1970 */
    union {
        struct event_run_start run_start;
        struct event_step step;
        struct event_losses losses;
        struct event_layers layers;
        struct event_phase phase;
        struct event_why why;
        struct event_images images;
        struct event_eval eval;
        struct event_command command;
        struct event_towers towers;
        struct event_checkpoint checkpoint;
        struct event_rewind rewind;
        struct event_note note;
        struct event_alarm alarm;
        struct event_state state;
        struct event_device device;
        struct event_control control;
        struct event_hello hello;
        struct event_gap gap;
        struct event_run_end run_end;
    };
};

/* "run_start", ...; NULL for a number that is no kind. */
const char *event_kind_name(enum event_kind kind);

/* An event of `kind` with every number unknown and every string NULL. */
struct event event_new(enum event_kind kind);

/* A copy of an event with all it points to, in memory of the arena. STATUS_NO_MEMORY leaves *out alone. */
enum status event_copy(const struct event *event, struct arena *arena, struct event *out);

#endif
