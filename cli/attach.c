/* `towerscope attach`: a console on a live run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/console.h"
#include "cli/find.h"
#include "cli/help.h"
#include "engine/wire/live.h"

struct attach_line {
    const char *name, *runs;
    struct app_options console;
};

static void write_help(FILE *to) {
    fprintf(to, "usage: towerscope attach [NAME] [options]\n\n"
                "The console on a live run: NAME, or the path of its folder, or the newest one.\n\n"
                "  --watch                       send no commands, take no control\n"
                "  --runs DIR                    folder of runs (else $TOWERSCOPE_RUNS, else ./runs)\n");
    console_help(to);
}

static enum status read_line(int argc, char **argv, struct attach_line *line) {
    const struct argument options[] = {{.name = "--watch", .flag = &line->console.watch},
                                       {.name = "--runs", .value = "a folder", .text = &line->runs}};
    struct argument_list list = {.command = "attach",
                                 .options = options,
                                 .option_count = sizeof options / sizeof *options,
                                 .takes = "one run",
                                 .words = &line->name,
                                 .word_room = 1,
                                 .console = &line->console};
    STATUS_TRY(console_begin(&line->console));
    return arguments_read(argc, argv, &list);
}

/* "attached to NAME; also live: ..." where the newest was chosen of several; "" otherwise. */
static void say_others(const struct live_run *chosen, char *out, size_t size) {
    struct live_run *runs;
    int count;
    *out = 0;
    if (live_list(&runs, &count) != STATUS_OK)
        return;
    for (int i = 0; i < count; i++) {
        size_t length = strlen(out);
        if (!runs[i].live || !strcmp(runs[i].folder, chosen->folder))
            continue;
        if (!length)
            snprintf(out, size, "attached to %s; also live: %s", chosen->name, runs[i].name);
        else
            snprintf(out + length, size - length, ", %s", runs[i].name);
    }
    free(runs);
}

int command_attach(int argc, char **argv) {
    struct attach_line line = {0};
    if (arguments_help(argc, argv))
        return help_print(write_help);
    enum status status = read_line(argc, argv, &line);
    if (status != STATUS_OK) {
        cli_fail(status);
        return EXIT_USAGE;
    }
    struct live_run run;
    struct feed *feed;
    status = find_live(line.name, find_runs(line.runs), &run);
    if (status == STATUS_OK)
        status = feed_live(&run, line.console.watch, &feed);
    if (status != STATUS_OK)
        return cli_fail(status);
    char others[500] = "";
    if (!line.name)
        say_others(&run, others, sizeof others);
    line.console.greeting = *others ? others : NULL;
    line.console.run = run.name;
    line.console.waiting = "the engine";
    return console_show(feed, &line.console);
}
