/* `towerscope run`: an engine in a session of its own, and the console on it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/console.h"
#include "cli/launch.h"
#include "cli/options.h"

struct run_line {
    struct app_options console;
    bool detach;
    char **engine; /* the words that are the engine's */
    int engine_count;
};

static void print_help(void) {
    printf(
        "usage: towerscope run [NAME] [options]\n\n"
        "Starts a training run in a process of its own and opens the console on it. Leaving the console, "
        "losing\n"
        "the connection or killing it never touches training; `towerscope attach` comes back to it. Without "
        "NAME\n"
        "a readable one is made up. Everything about the run is kept in the folder RUNS/NAME.\n\noptions:\n"
        "  --detach                 start it, print its name, and open no console\n");
    options_help(stdout);
    console_help(stdout);
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

/* Refused before an engine is started: a run that nobody can see is not what was asked for. */
static enum status check_terminal(const struct run_line *line) {
    if (line->detach || (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
        return STATUS_OK;
    return status_fail(STATUS_UNSUPPORTED,
                       "the console needs a terminal; `towerscope train` runs without one, "
                       "`towerscope run --detach` starts a run and leaves it");
}

static int open_console(struct run_line *line, const struct live_run *run) {
    struct feed *feed;
    enum status status = feed_live(run, false, &feed);
    if (status != STATUS_OK)
        return cli_fail(status);
    line->console.run = run->name;
    line->console.waiting = "the engine";
    return console_show(feed, &line->console);
}

static int start(struct run_line *line) {
    static const char waiting[] = "starting the engine ...";
    struct live_run run;
    int code;
    bool told = !line->detach && isatty(STDERR_FILENO);
    if (told) /* data are read and checked meanwhile */
        fprintf(stderr, "%s", waiting);
    enum status status = launch(line->engine_count, line->engine, &run, &code);
    if (told)
        fprintf(stderr, "\r%*s\r", (int)sizeof waiting, "");
    if (status != STATUS_OK)
        return cli_fail(status);
    if (!*run.name)
        return code;
    if (!line->detach)
        return open_console(line, &run);
    printf("%s\n", run.name);
    return EXIT_DONE;
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
        print_help();
    } else {
        status = check_terminal(&line);
        code = status == STATUS_OK ? start(&line) : cli_fail(status);
    }
    free(line.engine);
    return code;
}
