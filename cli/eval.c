/* `towerscope eval NAME|CHECKPOINT`: precision @ 1 and loss on the test images. */
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/session.h"
#include "engine/wire/lock.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct evaluation_of {
    struct run_options options;
    char word[1024]; /* the run's name or the checkpoint's path */
    struct resume from;
    struct session session;
    struct event_eval result;
    bool evaluated;
};

static void take_result(void *context, const struct event *event, bool recorded) {
    (void)recorded;
    struct evaluation_of *e = context;
    if (event->kind == EVENT_EVAL) {
        e->result = event->eval; /* its numbers; the confusion matrix is not asked for */
        e->evaluated = true;
    } else if (event->kind == EVENT_ALARM && strcmp(event->alarm.level, "info") != 0) {
        fprintf(stderr, "towerscope: %s\n", event->alarm.text);
    }
}

static enum status no_checkpoint(const struct run_folder *folder) {
    if (lock_held(folder->path))
        return status_fail(STATUS_NOT_FOUND,
                           "run %s has no checkpoint yet: `towerscope ctl %s save` makes one", folder->name,
                           folder->name);
    return status_fail(
        STATUS_NOT_FOUND,
        "run %s has no checkpoint, and is not live: `towerscope run %s --resume` begins it again",
        folder->name, folder->name);
}

/* The folder of a run by its path, as a shell completes it. */
static enum status folder_at(const char *path, struct run_folder *out) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    snprintf(out->path, sizeof out->path, "%.*s", (int)length, path);
    snprintf(out->name, sizeof out->name, "%s", strrchr(out->path, '/') + 1);
    return run_folder_is_run(out);
}

static bool is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* A word with a / or ending like a checkpoint is a path; anything else is a run's name. */
static enum status find_checkpoint(struct evaluation_of *e) {
    const char *word = e->word, *end = ".safetensors";
    size_t length = strlen(word), tail = strlen(end);
    struct settings *settings = &e->options.settings;
    bool path = strchr(word, '/') != NULL, in_folder = path && is_folder(word);
    if (!in_folder && (path || (length > tail && !strcmp(word + length - tail, end)))) {
        snprintf(e->from.checkpoint, sizeof e->from.checkpoint, "%s", word);
    } else {
        struct run_folder folder;
        char checkpoints[PATH_MAX + 16];
        if (in_folder)
            STATUS_TRY(folder_at(word, &folder));
        else
            STATUS_TRY(run_folder_find(*settings->runs ? settings->runs : settings_find("runs")->fallback,
                                       word, &folder));
        resume_checkpoints(&folder, checkpoints, sizeof checkpoints);
        enum status status = checkpoint_newest(checkpoints, e->from.checkpoint, sizeof e->from.checkpoint);
        if (status == STATUS_NOT_FOUND)
            return no_checkpoint(&folder);
        STATUS_TRY(status);
    }
    STATUS_TRY(checkpoint_look(e->from.checkpoint, &e->from.about));
    e->from.settings = e->from.about.settings;
    if (*settings->devices) /* the run's may have been of a GPU */
        e->from.settings.precision[0] = '\0';
    settings_overlay(&e->from.settings, settings);
    /* nothing is trained: one tower of one image is the least memory */
    struct settings small;
    settings_clear(&small);
    STATUS_TRY(settings_set(&small, "eval", "towers", "1"));
    STATUS_TRY(settings_set(&small, "eval", "batch", "1"));
    settings_overlay(&e->from.settings, &small);
    return STATUS_OK;
}

static enum status evaluate(struct evaluation_of *e) {
    STATUS_TRY(find_checkpoint(e));
    struct trainer_options options = {
        .settings = e->from.settings, .run_name = "eval", .sink = {take_result, e}};
    e->from.only_values = true;
    STATUS_TRY(session_open(&options, &e->from, &e->session));
    return trainer_evaluate(e->session.trainer, false);
}

static void print_result(const struct evaluation_of *e) {
    const struct event_eval *r = &e->result;
    printf("%s: %s after %lld step%s, %s\n", e->from.checkpoint, e->session.model->name, (long long)r->step,
           r->step == 1 ? "" : "s", r->averaged ? "the moving average of its parameters" : "its parameters");
    printf("%s: precision @ 1 = %.4f (%lld of %lld test images), cross-entropy = %.4f\n",
           e->session.data->name, r->precision, (long long)r->correct, (long long)r->images, r->loss);
}

static void write_help(FILE *to) {
    fprintf(to,
            "usage: towerscope eval NAME|CHECKPOINT [options]\n\n"
            "Evaluates the newest checkpoint of a run (its name or folder), or the file given, on the test "
            "images: each\n"
            "is used once. The moving average of the parameters is used where there is one.\n\n"
            "  --data NAME|PATH         other images than the run's\n"
            "  --runs DIR               where run folders are\n"
            "  --devices NAME           cpu, ref, cuda:0\n"
            "  --precision NAME         of a GPU: f32, tf32, bf16 (default: the run's; f32 with --devices)\n"
            "  --threads N              of the processor\n"
            "  --isa NAME               avx512, avx2 or plain\n");
}

int command_eval(int argc, char **argv) {
    static const char *const keys[] = {"data", "runs", "devices", "precision", "threads", "isa"};
    struct evaluation_of e = {0};
    enum status status = options_read_word(argc, argv, &e.options, e.word, sizeof e.word);
    if (status == STATUS_OK && e.options.help) {
        return help_print(write_help);
    }
    if (status == STATUS_OK)
        status = options_only(&e.options, "eval", keys, sizeof keys / sizeof *keys);
    if (status == STATUS_OK && !*e.word)
        status = status_fail(STATUS_BAD_INPUT, "eval needs the name of a run or the path of a checkpoint");
    if (status != STATUS_OK) {
        cli_fail(status);
        return EXIT_USAGE;
    }
    status = evaluate(&e);
    if (status == STATUS_OK)
        print_result(&e);
    session_close(&e.session);
    resume_free(&e.from);
    return status == STATUS_OK ? EXIT_DONE : cli_fail(status);
}
