/* A trainer over a small made-up data set, with what it emitted kept for a test to look at. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_TRAIN_RUN_H
#define TOWERSCOPE_TESTS_SUPPORT_TRAIN_RUN_H

#include "engine/train/checkpoint.h"
#include "engine/train/trainer.h"

enum { KEPT_STEPS = 256, KEPT_TOWERS = 64, KEPT_LAYERS = 16 };

struct kept_step {
    bool recorded;
    struct event_step step; /* pointers in it are not to be followed, but for towers */
    struct event_step_tower towers[KEPT_TOWERS];
};

struct train_run {
    struct device_handle device;
    struct dataset data;        /* made up */
    const struct dataset *lent; /* or the caller's */
    struct model *model;
    struct trainer *trainer;
    bool interrupt; /* what the trainer is told when it asks */
    int most_made;  /* making towers is given up when that many are made; 0: never */
    int made;       /* towers that were made when it asked last */
    struct checkpoint_folder store;
    struct checkpoint from;
    /* what was emitted */
    int steps, counts[EVENT_KINDS];
    struct kept_step kept[KEPT_STEPS];
    struct event_eval eval;
    bool applied;     /* the last command event */
    char reason[700]; /* its reason */
    double set_lr;    /* and what it says of the next step */
    int64_t set_batch;
    char alarm[700]; /* the last alarm of level warning or error */
    char alarm_tensor[80];
    char info[1500]; /* the last alarm of level info */
    int64_t alarm_step, alarm_tower, rewound_to;
    char rewind_reason[720];
    char state[16];
    int64_t terms; /* of the last losses event */
    double term[KEPT_TOWERS * 8];
    char term_name[KEPT_TOWERS * 8][120];
    struct event_why why; /* the last; its alternatives are those below */
    struct event_alternative alternatives[16];
    char phase[16];           /* the last phase event */
    struct event_image image; /* the first of the last images event; its pixels are not kept */
    int64_t image_count;
    struct event_layer layers[KEPT_LAYERS];
    int64_t layer_count;
};

/* Model texts: an mlp of 6 x 6 inputs with two layers that decay, a small convolutional net, and one of two
 * convolutions. */
extern const char *const mlp_text, *const conv_text, *const convs_text;

/* Random pixels, labels that follow from them. Free with made_data_free. */
struct dataset made_data(int64_t train, int64_t test, int side, int channels, int classes);
void made_data_free(struct dataset *data);

/* Settings from words: "towers=2", "lr=0.1", ..., NULL. Evaluations and saves are off unless asked for. */
struct settings made_settings(const char *const *words);

/* Open on the device called `device` with two threads; fails the test when it can't be. */
struct train_run *train_run_open(const char *device, const char *model_text, int64_t train, int64_t test,
                                 const char *const *words);
/* On a data set of the caller's, with a model that comes with the program. */
struct train_run *train_run_on(const char *device, const struct dataset *data, const char *model,
                               const char *const *words);
/* train_run_open() with a folder for checkpoints (NULL: nothing is stored), and going on from a checkpoint of
 * it (NULL: from the beginning). The settings are those of the checkpoint with `words` over them. */
struct train_run *train_run_resume(const char *device, const char *model_text, int64_t train, int64_t test,
                                   const char *const *words, const char *folder, const char *checkpoint);
/* What trainer_open() says to that: STATUS_OK is a failure of the test. The text is status_text(). */
enum status train_run_refusal(const char *device, const char *model_text, int64_t train, int64_t test,
                              const char *const *words, const char *checkpoint);
void train_run_close(struct train_run *run);

/* N steps; each must succeed. */
void train_run_steps(struct train_run *run, int steps);

/* A command as typed; true: applied. What it said is in run->reason. */
bool train_run_command(struct train_run *run, const char *text);

/* |a - b| <= tolerance * max(1, |b|), and NaN fails. */
#define assert_near(a, b, tolerance) assert_near_at(a, b, tolerance, __FILE__, __LINE__)
void assert_near_at(double a, double b, double tolerance, const char *file, int line);

#endif
