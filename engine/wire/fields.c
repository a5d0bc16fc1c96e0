#include "engine/wire/fields.h"

#include <math.h>
#include <string.h>

#define FIELD(structure, member, name_, type_, flags_, sentence_)                                            \
    {                                                                                                        \
        .name = name_, .type = type_, .flags = flags_, .offset = offsetof(struct structure, member),         \
        .sentence = sentence_                                                                                \
    }
#define TEXT(structure, member, flags, sentence)                                                             \
    FIELD(structure, member, #member, FIELD_TEXT, flags, sentence)
#define INTEGER(structure, member, flags, sentence)                                                          \
    FIELD(structure, member, #member, FIELD_INTEGER, flags, sentence)
#define FLOAT(structure, member, flags, sentence)                                                            \
    FIELD(structure, member, #member, FIELD_FLOAT, flags, sentence)
#define DOUBLE(structure, member, flags, sentence)                                                           \
    FIELD(structure, member, #member, FIELD_DOUBLE, flags, sentence)
#define FLAG(structure, member, sentence) FIELD(structure, member, #member, FIELD_FLAG, 0, sentence)
#define GROUP(name_, inner_, sentence_)                                                                      \
    { .name = name_, .type = FIELD_GROUP, .inner = inner_, .sentence = sentence_ }
#define LIST(structure, member, count, element, inner_, flags_, sentence_)                                   \
    {                                                                                                        \
        .name = #member, .type = FIELD_LIST, .flags = flags_, .offset = offsetof(struct structure, member),  \
        .count_offset = offsetof(struct structure, count), .inner = inner_, .size = sizeof(struct element),  \
        .sentence = sentence_                                                                                \
    }
#define END                                                                                                  \
    { .name = NULL }

static const struct field run_device_fields[] = {
    TEXT(event_run_device, device, FIELD_MACHINE, "short name, \"cpu\""),
    TEXT(event_run_device, name, FIELD_MACHINE, "the device in words"),
    INTEGER(event_run_device, threads, FIELD_MACHINE, "worker threads"),
    INTEGER(event_run_device, memory, FIELD_MACHINE, "bytes"), END};

static const struct field run_class_fields[] = {TEXT(event_run_class, name, 0, ""), END};

static const struct field run_data_fields[] = {
    FIELD(event_run_start, data_name, "name", FIELD_TEXT, 0, "name of the data set"),
    FIELD(event_run_start, data_train, "train", FIELD_INTEGER, 0, "images to train on"),
    FIELD(event_run_start, data_test, "test", FIELD_INTEGER, 0, "images to test on"),
    FIELD(event_run_start, data_classes, "classes", FIELD_INTEGER, 0, ""),
    LIST(event_run_start, class_names, class_name_count, event_run_class, run_class_fields, 0,
         "of the classes in their order, where the data set has them"),
    FIELD(event_run_start, data_shape, "shape", FIELD_SHAPE, 0,
          "height, width, channels as the network sees it"),
    END};

static const struct field run_start_fields[] = {
    TEXT(event_run_start, run, FIELD_NAME, "name of the run"),
    TEXT(event_run_start, model, 0, "name of the model"),
    INTEGER(event_run_start, parameters, 0, "numbers that are trained"),
    GROUP("data", run_data_fields, "the data set"),
    INTEGER(event_run_start, batch, 0, "images of a step, all towers together"),
    TEXT(event_run_start, batch_rule, 0, "global: split over the towers; per-tower: grows with them"),
    INTEGER(event_run_start, towers, 0, ""),
    LIST(event_run_start, devices, device_count, event_run_device, run_device_fields, FIELD_MACHINE,
         "what the towers run on"),
    INTEGER(event_run_start, seed, 0, ""),
    DOUBLE(event_run_start, lr, 0, "learning rate of the first step"),
    DOUBLE(event_run_start, momentum, 0, ""),
    DOUBLE(event_run_start, weight_decay, 0, "the largest of the model's layers"),
    INTEGER(event_run_start, steps, 0, "planned; left out: no limit"),
    INTEGER(event_run_start, resumed_from, 0, "the step gone on from: readers drop what they have beyond it"),
    END};

static const struct field step_tower_fields[] = {
    INTEGER(event_step_tower, tower, 0, "from 0"),
    TEXT(event_step_tower, device, FIELD_MACHINE, ""),
    INTEGER(event_step_tower, images, 0, "its shard"),
    FLOAT(event_step_tower, cross_entropy, 0, "mean over its images"),
    FLOAT(event_step_tower, weight_decay, 0, "sum of its decay terms"),
    FLOAT(event_step_tower, loss, 0, "the sum of the two"),
    FLOAT(event_step_tower, grad_norm, 0, "of its own gradient"),
    FLOAT(event_step_tower, cosine, 0, "of its gradient with the average"),
    FLOAT(event_step_tower, load_ms, FIELD_WALL_CLOCK,
          "milliseconds; on a GPU these times are of the last step that it timed"),
    FLOAT(event_step_tower, forward_ms, FIELD_WALL_CLOCK, "milliseconds"),
    FLOAT(event_step_tower, backward_ms, FIELD_WALL_CLOCK, "milliseconds"),
    FLOAT(event_step_tower, wait_ms, FIELD_WALL_CLOCK, "milliseconds until the slowest tower was done"),
    END};

static const struct field step_fields[] = {
    INTEGER(event_step, step, 0, "the first update is step 1"),
    DOUBLE(event_step, epoch, 0, "epochs done, as a fraction"),
    DOUBLE(event_step, lr, 0, "learning rate of this step"),
    INTEGER(event_step, images, 0, "of this step, all towers together"),
    FLOAT(event_step, seconds, FIELD_WALL_CLOCK, "from this step's start to its end"),
    FLOAT(event_step, images_per_second, FIELD_WALL_CLOCK, ""),
    FLOAT(event_step, cross_entropy, 0, "averaged, weighted by the towers' images"),
    FLOAT(event_step, weight_decay, 0, "averaged"),
    FLOAT(event_step, loss, 0, "averaged total"),
    FLOAT(event_step, grad_norm, 0, "of the averaged gradient"),
    FLOAT(event_step, grad_norm_mean, 0, "mean of the towers' norms"),
    FLOAT(event_step, update_ratio, 0, "norm of the update / norm of the parameters"),
    FLOAT(event_step, noise_scale, 0, "gradient noise scale, in images"),
    TEXT(event_step, applied, 0, "name of the wrong rule in force"),
    FLOAT(event_step, spread, 0, "no-average: sqrt(mean |w_k - mean|^2) / |mean| of the towers' parameters"),
    FLOAT(event_step, loss_min, 0, "since the last recorded step"),
    FLOAT(event_step, loss_max, 0, "since the last recorded step"),
    FLOAT(event_step, grad_norm_max, 0, "since the last recorded step"),
    LIST(event_step, towers, tower_count, event_step_tower, step_tower_fields, 0, ""),
    FLOAT(event_step, average_ms, FIELD_WALL_CLOCK, "milliseconds"),
    FLOAT(event_step, update_ms, FIELD_WALL_CLOCK, "milliseconds"),
    END};

static const struct field term_fields[] = {
    TEXT(event_term, name, 0, "with its scope: tower_0/local3/weight_loss"), FLOAT(event_term, value, 0, ""),
    END};
static const struct field losses_tower_fields[] = {
    INTEGER(event_losses_tower, tower, 0, "from 0"),
    LIST(event_losses_tower, terms, term_count, event_term, term_fields, 0, "in the order they were added"),
    END};
static const struct field losses_fields[] = {
    INTEGER(event_losses, step, 0, ""),
    LIST(event_losses, towers, tower_count, event_losses_tower, losses_tower_fields, 0,
         "a collection too long for one line is told in several events of the same step"),
    END};

static const struct field layer_fields[] = {
    TEXT(event_layer, name, 0, ""),
    INTEGER(event_layer, parameters, 0, ""),
    FLOAT(event_layer, param_norm, 0, ""),
    FLOAT(event_layer, grad_norm, 0, "of the averaged gradient"),
    FLOAT(event_layer, update_ratio, 0, "norm of the update / norm of the parameters"),
    FLOAT(event_layer, zeros, 0, "share of activations that are zero, 0 to 1"),
    END};
static const struct field layers_fields[] = {
    INTEGER(event_layers, step, 0, ""),
    LIST(event_layers, layers, layer_count, event_layer, layer_fields, 0, ""), END};

static const struct field phase_fields[] = {INTEGER(event_phase, step, 0, ""),
                                            INTEGER(event_phase, images, 0, "of the step's batch"),
                                            TEXT(event_phase, phase, 0,
                                                 "the phase just done: load, forward, losses, backward, "
                                                 "average, update; start: the step begins again"),
                                            END};

static const struct field proof_fields[] = {
    FIELD(event_why, proof_loss, "loss", FIELD_FLOAT, 0, "of the same batch on one tower"),
    FIELD(event_why, proof_loss_difference, "loss_difference", FIELD_FLOAT, 0, "relative"),
    FIELD(event_why, proof_gradient_difference, "gradient_difference", FIELD_FLOAT, 0,
          "norm of the difference / norm of the gradient"),
    FIELD(event_why, proof_parameter_difference, "parameter_difference", FIELD_FLOAT, 0,
          "norm of the difference of the updated parameters / their norm"),
    FIELD(event_why, proof_bytes, "bytes", FIELD_INTEGER, 0, "memory it takes"),
    END};
static const struct field alternative_fields[] = {
    TEXT(event_alternative, name, 0, ""),
    FLOAT(event_alternative, printed_loss, 0, ""),
    FLOAT(event_alternative, grad_norm, 0, ""),
    FLOAT(event_alternative, cosine, 0, "with the right gradient"),
    FLOAT(event_alternative, step_size, 0, "its norm / the right one's"),
    FLAG(event_alternative, identical, "it makes no difference here"),
    END};
static const struct field why_tower_fields[] = {INTEGER(event_why_tower, tower, 0, ""),
                                                INTEGER(event_why_tower, images, 0, "of its shard"),
                                                FLOAT(event_why_tower, loss, 0, "the sum of its own terms"),
                                                FLOAT(event_why_tower, grad_norm, 0, ""),
                                                FLOAT(event_why_tower, cosine, 0, "with the right average"),
                                                END};
static const struct field why_fields[] = {
    INTEGER(event_why, step, 0, ""),
    INTEGER(event_why, images, 0, ""),
    FLOAT(event_why, lr, 0, ""),
    FLOAT(event_why, loss, 0, "averaged as it should be"),
    FLOAT(event_why, grad_norm, 0, "of the right average"),
    FLOAT(event_why, momentum, 0, "of the update; 0: none"),
    FLOAT(event_why, clip_norm, 0, "the average is cut to this length before the update; 0: never"),
    FLOAT(event_why, ema, 0, "decay of the parameters' moving average; 0: none"),
    LIST(event_why, towers, tower_count, event_why_tower, why_tower_fields, 0, "the first 256 of them"),
    GROUP("proof", proof_fields, "towers against one tower"),
    LIST(event_why, alternatives, alternative_count, event_alternative, alternative_fields, 0, "wrong rules"),
    END};

static const struct field image_fields[] = {
    INTEGER(event_image, label, 0, ""),
    INTEGER(event_image, prediction, 0, ""),
    FLOAT(event_image, probability, 0, "of the prediction"),
    INTEGER(event_image, width, 0, ""),
    INTEGER(event_image, height, 0, ""),
    INTEGER(event_image, channels, 0, ""),
    TEXT(event_image, pixels, 0, "base64 of height x width x channels bytes"),
    END};
static const struct field images_fields[] = {
    INTEGER(event_images, step, 0, ""), INTEGER(event_images, tower, 0, "from 0"),
    INTEGER(event_images, first, 0, "place of the first one in the tower's shard"),
    LIST(event_images, images, image_count, event_image, image_fields, 0, "at most 8"), END};

static const struct field eval_fields[] = {
    INTEGER(event_eval, step, 0, ""),
    DOUBLE(event_eval, precision, 0, "precision @ 1, 0 to 1"),
    DOUBLE(event_eval, loss, 0, "mean cross-entropy"),
    INTEGER(event_eval, correct, 0, "images"),
    INTEGER(event_eval, images, 0, ""),
    FLAG(event_eval, averaged, "with the moving averages of the parameters"),
    INTEGER(event_eval, classes, 0, "rows of the confusion matrix"),
    {.name = "confusion",
     .type = FIELD_INTEGERS,
     .offset = offsetof(struct event_eval, confusion),
     .count_offset = offsetof(struct event_eval, confusion_count),
     .sentence = "images by [label x classes + prediction]; when asked for"},
    END};

static const struct field command_fields[] = {
    TEXT(event_command, id, FIELD_MACHINE, "as the client gave it"),
    TEXT(event_command, from, FIELD_MACHINE, "user@terminal, ctl, script"),
    TEXT(event_command, screen, FIELD_MACHINE,
         "the console's screen that sent it to draw what it shows; left out: a person or a script did"),
    TEXT(event_command, text, 0, "as typed"),
    TEXT(event_command, status, 0, "pending (live only; reason: how far it is), applied, refused"),
    INTEGER(event_command, step, 0, "it took effect after this step; pending: it waits for it, or is at work after it"),
    TEXT(event_command, reason, 0, "why refused, or what applying it meant"),
    DOUBLE(event_command, lr, 0, "learning rate of the next step, where it was set"),
    INTEGER(event_command, batch, 0, "images of the next steps, where they were set"),
    END};

static const struct field towers_fields[] = {
    INTEGER(event_towers, step, 0, "the last one with the old number"), INTEGER(event_towers, from, 0, ""),
    INTEGER(event_towers, to, 0, ""), TEXT(event_towers, reason, 0, ""), END};

static const struct field checkpoint_fields[] = {
    INTEGER(event_checkpoint, step, 0, ""), TEXT(event_checkpoint, path, FIELD_NAME, ""),
    INTEGER(event_checkpoint, bytes, FIELD_NAME, ""),
    DOUBLE(event_checkpoint, seconds, FIELD_WALL_CLOCK, "it took"), END};

static const struct field rewind_fields[] = {
    INTEGER(event_rewind, step, 0, "where the run stood"),
    INTEGER(event_rewind, to, 0, "the step gone back to: readers drop what they have beyond it"),
    TEXT(event_rewind, reason, 0, ""), END};

static const struct field note_fields[] = {INTEGER(event_note, step, 0, ""), TEXT(event_note, text, 0, ""),
                                           END};

static const struct field alarm_fields[] = {
    TEXT(event_alarm, level, 0, "info, warning, error"),
    INTEGER(event_alarm, step, 0, ""),
    INTEGER(event_alarm, tower, 0, "from 0"),
    TEXT(event_alarm, tensor, 0, "name of the value that is not finite"),
    TEXT(event_alarm, text, 0, ""),
    END};

static const struct field state_fields[] = {
    TEXT(event_state, state, 0, "starting, training, paused, evaluating, saving, ended"),
    INTEGER(event_state, step, 0, ""), END};

static const struct field device_fields[] = {
    TEXT(event_device, device, FIELD_MACHINE, ""),
    INTEGER(event_device, memory_used, FIELD_MACHINE, "bytes"),
    INTEGER(event_device, memory_total, FIELD_MACHINE, "bytes"),
    DOUBLE(event_device, utilization, FIELD_MACHINE, "0 to 1"),
    DOUBLE(event_device, temperature, FIELD_MACHINE, "degrees Celsius"),
    DOUBLE(event_device, power, FIELD_MACHINE, "watts"),
    DOUBLE(event_device, clock, FIELD_MACHINE, "of its multiprocessors, MHz"),
    END};

static const struct field holder_fields[] = {
    FIELD(event_control, holder_user, "user", FIELD_TEXT, FIELD_MACHINE, ""),
    FIELD(event_control, holder_terminal, "terminal", FIELD_TEXT, FIELD_MACHINE, ""), END};
static const struct field control_fields[] = {
    GROUP("holder", holder_fields, "the console that may send; left out: nobody"),
    INTEGER(event_control, watchers, FIELD_MACHINE, "consoles beside the holder"),
    FLAG(event_control, yours, "whether the client that this is sent to holds control"),
    FIELD(event_control, asking_user, "asking_user", FIELD_TEXT, FIELD_MACHINE, "who asks for control"),
    FIELD(event_control, asking_terminal, "asking_terminal", FIELD_TEXT, FIELD_MACHINE,
          "who asks for control"),
    END};

static const struct field hello_fields[] = {
    INTEGER(event_hello, protocol, 0, "raised when an old reader would misread; see Versions"),
    TEXT(event_hello, version, 0, "of the engine's program"),
    TEXT(event_hello, run, FIELD_NAME, ""),
    INTEGER(event_hello, last_seq, 0, ""),
    INTEGER(event_hello, offset, 0, "the record up to this byte holds all events up to last_seq"),
    END};

static const struct field gap_fields[] = {
    INTEGER(event_gap, last_seq, 0, ""),
    INTEGER(event_gap, offset, 0, "read the record up to this byte, then go on here"), END};

static const struct field run_end_fields[] = {INTEGER(event_run_end, step, 0, ""),
                                              TEXT(event_run_end, reason, 0, "done, stopped, failed"),
                                              TEXT(event_run_end, text, 0, ""), END};

static const struct event_description descriptions[EVENT_KINDS] = {
    [EVENT_RUN_START] = {"run_start", false, run_start_fields, "A run starts or is resumed."},
    [EVENT_STEP] =
        {"step", false, step_fields,
         "One update. Without seq it is live only: a step between two recorded ones. While `why` is on "
         "each is recorded, after what it says."},
    [EVENT_LOSSES] =
        {"losses", false, losses_fields,
         "The collection of losses of each tower: with the first step, after each change of towers or "
         "weight decay, and with each step while `why` is on."},
    [EVENT_LAYERS] = {"layers", false, layers_fields,
                      "With the first step and each 100th, and with each step while `why` is on."},
    [EVENT_PHASE] = {"phase", false, phase_fields, "Where a run that is stepped by phases stands."},
    [EVENT_WHY] = {"why", false, why_fields,
                   "A step's proof and alternatives. Where it is walked by phases the towers alone come "
                   "before, after backward."},
    [EVENT_IMAGES] = {"images", false, images_fields, "Images of a shard, when asked for."},
    [EVENT_EVAL] = {"eval", false, eval_fields, "An evaluation on the whole test set."},
    [EVENT_COMMAND] = {"command", false, command_fields, "What became of a command."},
    [EVENT_TOWERS] = {"towers", false, towers_fields, "The number of towers changed."},
    [EVENT_CHECKPOINT] = {"checkpoint", false, checkpoint_fields, "A checkpoint is complete on the disk."},
    [EVENT_REWIND] = {"rewind", false, rewind_fields, "The run went back to an earlier state of its own."},
    [EVENT_NOTE] = {"note", false, note_fields, "A person's words."},
    [EVENT_ALARM] = {"alarm", false, alarm_fields,
                     "Something a person should know. Repeats are counted, not written each time."},
    [EVENT_STATE] = {"state", false, state_fields, "What the engine does now."},
    [EVENT_DEVICE] = {"device", true, device_fields, "What is known of a device now."},
    [EVENT_CONTROL] = {"control", true, control_fields, "Who holds control."},
    [EVENT_HELLO] = {"hello", true, hello_fields, "The first line of a connection."},
    [EVENT_GAP] = {"gap", true, gap_fields, "The reader was too slow, lines were left out."},
    [EVENT_RUN_END] = {"run_end", false, run_end_fields,
                       "The last event of a run that ended in order. A stream without it is a crash."},
};

const struct event_description *event_describe(enum event_kind kind) {
    if ((int)kind <= EVENT_NONE || kind >= EVENT_KINDS)
        return NULL;
    return &descriptions[kind];
}

enum event_kind event_kind_find(const char *name) {
    for (int kind = EVENT_NONE + 1; kind < EVENT_KINDS; kind++)
        if (!strcmp(descriptions[kind].name, name))
            return (enum event_kind)kind;
    return EVENT_NONE;
}

const char *event_kind_name(enum event_kind kind) {
    const struct event_description *description = event_describe(kind);
    return description ? description->name : NULL;
}

void *event_body(struct event *event) {
    return (char *)event + offsetof(struct event, run_start); /* members of a union share their place */
}

const void *event_body_const(const struct event *event) {
    return (const char *)event + offsetof(struct event, run_start);
}
