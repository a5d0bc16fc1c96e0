/* `towerscope run`: an engine in a session of its own, and the console on it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/console.h"
#include "cli/help.h"
#include "cli/launch.h"
#include "cli/options.h"

struct run_line {
    struct app_options console;
    bool detach;
    char **engine; /* the words that are the engine's */
    int engine_count;
};

static void write_help(FILE *to) {
    fprintf(
        to,
        "usage: towerscope run [NAME] [options]\n\n"
        "Starts a training run in a process of its own and opens the console on it. Leaving the console, "
        "losing\n"
        "the connection or killing it never touches training; `towerscope attach` comes back to it. Without "
        "NAME\n"
        "a readable one is made up. Everything about the run is kept in the folder RUNS/NAME. Where the last "
        "state\n"
        "finds no room on the disk it waits for that; a signal ends the wait after ten minutes or\n"
        "$TOWERSCOPE_SAVE_SECONDS, a further one at once.\n\noptions:\n"
        "  --detach                     start it, print its name, and open no console\n");
    options_help(to);
    console_help(to);
}

static enum status read_line(int argc, char **argv, struct run_line *line) {
    line->engine[line->engine_count++] = argv[0];
    for (int i = 1; i < argc; i++) {
        bool taken;
        STATUS_TRY(console_option(&line->console, argc, argv, &i, &taken));
        if (taken)
            continue;
        if (!strcmp(argv[i], "--detach"))
            line->detach = true;
        else
            line->engine[line->engine_count++] = argv[i];
    }
    return STATUS_OK;
}

/* Refused before an engine is started: a run that nobody can see is not what was asked for, nor one without
 * the commands that nobody reads. */
static enum status check_streams(const struct run_line *line, const struct run_options *options) {
    static const char *const ours[] = {"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (!strcmp(options->script, ours[i]))
            return status_fail(
                STATUS_BAD_INPUT,
                "--script %s: a run in a process of its own has no standard input; give a file",
                options->script);
    if (line->detach || (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
        return STATUS_OK;
    return status_fail(STATUS_UNSUPPORTED,
                       "the console needs a terminal; `towerscope train` runs without one, "
                       "`towerscope run --detach` starts a run and leaves it");
}

/* A console is not worth opening for an engine that has something to say against its start at once. */
enum { LOOK_MS = 120 };

struct starting {
    struct launched engine;
    struct live_run run;
    int code;
    bool ended; /* it did not become live */
};

/* The live feed, as soon as the engine is live. */
static enum status begin_feed(void *context, struct feed **out) {
    struct starting *starting = context;
    STATUS_TRY(launch_wait(&starting->engine, 0, &starting->run, &starting->code));
    starting->ended = !*starting->run.name;
    if (starting->ended)
        return status_fail(STATUS_REFUSED, "the engine did not start");
    return feed_live(&starting->run, false, out);
}

static int open_console(struct run_line *line, struct starting *starting) {
    struct feed *feed;
    struct console_farewell farewell;
    enum status status = feed_pending(starting->engine.ready, begin_feed, starting, &feed);
    if (status != STATUS_OK)
        return cli_fail(status);
    line->console.waiting = "the engine, which reads its data";
    status = console_watch(feed, &line->console, &farewell);
    if (starting->ended) {
        launch_repeat(&starting->engine, STDERR_FILENO);
        return starting->code;
    }
    if (status == STATUS_OK && !*starting->run.name)
        printf("the engine is still starting: soon `towerscope ls` shows it, and `towerscope attach` comes "
               "back\n");
    return console_tell(status, &farewell, &line->console);
}

static int start(struct run_line *line) {
    struct starting starting = {.code = EXIT_FAILED};
    enum status status = launch_begin(line->engine_count, line->engine, !line->detach, &starting.engine);
    if (status != STATUS_OK)
        return cli_fail(status);
    status = launch_wait(&starting.engine, line->detach ? -1 : LOOK_MS, &starting.run, &starting.code);
    bool live = status == STATUS_OK && *starting.run.name;
    int code = starting.code;
    if (status == STATUS_BUSY || (live && !line->detach)) {
        code = open_console(line, &starting);
    } else if (status != STATUS_OK) {
        code = cli_fail(status);
    } else if (live) {
        printf("%s\n", starting.run.name);
        code = EXIT_DONE;
    } else {
        launch_repeat(&starting.engine, STDERR_FILENO);
    }
    launch_end(&starting.engine);
    return code;
}

int command_run(int argc, char **argv) {
    struct run_line line = {.engine = calloc((size_t)argc + 1, sizeof *line.engine)};
    struct run_options options;
    if (!line.engine)
        return cli_fail(status_fail(STATUS_NO_MEMORY, "no memory to read the command line"));
    enum status status = console_begin(&line.console);
    if (status == STATUS_OK)
        status = read_line(argc, argv, &line);
    if (status == STATUS_OK)
        status = options_read(line.engine_count, line.engine, &options);
    int code = EXIT_DONE;
    if (status != STATUS_OK) {
        cli_fail(status);
        fprintf(stderr, "towerscope run --help lists the options\n");
        code = EXIT_USAGE;
    } else if (options.help) {
        code = help_print(write_help);
    } else {
        if (*options.note)
            fprintf(stderr, "towerscope: %s\n", options.note);
        line.console.run = options.name;
        status = check_streams(&line, &options);
        code = status == STATUS_OK ? start(&line) : cli_fail(status);
    }
    free(line.engine);
    return code;
}
