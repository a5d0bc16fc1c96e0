/* `towerscope train`: a run in the foreground, without a console. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/engine.h"
#include "cli/help.h"
#include "cli/lines.h"
#include "cli/signals.h"
#include "engine/base/printable.h"

static void watch(void *context, const struct event *event) {
    lines_event(context, event);
}

static void say(void *context, const char *text) {
    (void)context;
    fprintf(stderr, "towerscope: %s\n", text);
}

static void open_lines(const struct engine *engine, struct lines *lines) {
    const struct settings *settings = trainer_settings(engine->session.trainer);
    const char *terminal = getenv("TERM");
    lines->out = stdout;
    lines->errors = stderr;
    lines->every = settings->log_every;
    lines->planned = settings->steps >= 0 ? settings->steps : WIRE_UNKNOWN_INT;
    lines->progress = isatty(STDOUT_FILENO) && !options_given(&engine->options, "log-every") && terminal &&
                      strcmp(terminal, "dumb") != 0;
}

static void write_help(FILE *to) {
    fprintf(
        to,
        "usage: towerscope train [NAME] [options]\n\n"
        "Trains a network on towers in the foreground and prints a line each few steps. Everything about "
        "the run\n"
        "is kept in the folder RUNS/NAME. Ctrl-C ends it after the step at work. Meanwhile `towerscope "
        "attach`\n"
        "shows it and `towerscope ctl` sends it commands. Where the last state can't be saved, it waits "
        "until "
        "that is\n"
        "mended and says how to end it without. Where nobody reads that (no terminal), it waits for room on "
        "a "
        "disk\n"
        "alone, for ten minutes or $TOWERSCOPE_SAVE_SECONDS, and then ends with exit code 1.\n\noptions:\n");
    options_help(to);
}

static int run(struct engine *engine, struct lines *lines) {
    struct engine_end end;
    const struct trainer *trainer = engine->session.trainer;
    if (trainer_finished(trainer))
        return engine_nothing_left(engine);
    open_lines(engine, lines);
    char folder[PATH_MAX]; /* no name moves the cursor */
    text_printable(folder, sizeof folder, engine->folder.path);
    session_describe(&engine->session, stdout);
    printf("run     %s\n", folder);
    if (*trainer_resumed(trainer))
        printf("resume  %s\n", trainer_resumed(trainer));
    fflush(stdout);
    engine_run(engine, &end);
    lines_break(lines);
    int64_t steps = trainer_steps(trainer);
    printf("%s after %lld step%s%s%s\nrun     %s\n", end.reason, (long long)steps, steps == 1 ? "" : "s",
           *end.text ? ": " : "", end.text, folder);
    return end.code;
}

int command_train(int argc, char **argv) {
    struct lines lines = {0};
    struct engine engine = {.watch = watch, .say = say, .context = &lines};
    enum status status = options_read(argc, argv, &engine.options);
    if (status != STATUS_OK) {
        cli_fail(status);
        fprintf(stderr, "towerscope train --help lists the options\n");
        return EXIT_USAGE;
    }
    if (engine.options.help)
        return help_print(write_help);
    if (*engine.options.note)
        fprintf(stderr, "towerscope: %s\n", engine.options.note);
    signals_catch(false);
    engine.attended = isatty(STDERR_FILENO);
    status = engine_open(&engine);
    int code = status == STATUS_OK ? run(&engine, &lines) : cli_fail(status);
    engine_close(&engine);
    return code;
}
