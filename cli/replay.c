/* `towerscope replay`: the console on a record. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/console.h"
#include "cli/find.h"
#include "cli/help.h"
#include "cli/svg.h"
#include "engine/wire/lock.h"
#include "engine/wire/record.h"

struct replay_line {
    const char *what, *runs;
    struct replay_options replay;
    struct app_options console;
    struct svg_options svg; /* .file NULL: the console */
};

static void write_help(FILE *to) {
    fprintf(to,
            "usage: towerscope replay NAME|FILE [options]\n\n"
            "The console on a recorded run: NAME of a run, its folder, or an events.jsonl file.\n\n"
            "  --speed X                     times the run's own pace, 0.01 to 1000 (default 1)\n"
            "  --at STEP                     begin at this step, stopped\n"
            "  --svg FILE                    write a screen as a picture instead, as it was after step --at; "
            "-: to stdout\n"
            "  --screen NAME                 which one: towers (default), why, layers, devices, images, "
            "scaling, log\n"
            "  --size COLSxROWS              of the picture, from 40x10 to 500x500 (default 120x40)\n"
            "  --runs DIR                    the folder of runs (default: $TOWERSCOPE_RUNS, else ./runs)\n");
    console_help(to);
}

static enum status read_size(const char *text, struct svg_options *svg) {
    char rest;
    if (sscanf(text, "%4dx%4d%c", &svg->cols, &svg->rows, &rest) != 2 || svg->cols < SVG_COLS_MIN ||
        svg->rows < SVG_ROWS_MIN || svg->cols > SVG_MAX || svg->rows > SVG_MAX)
        return status_fail(STATUS_BAD_INPUT, "--size: expected COLSxROWS from %dx%d to %dx%d, found \"%s\"",
                           SVG_COLS_MIN, SVG_ROWS_MIN, SVG_MAX, SVG_MAX, text);
    return STATUS_OK;
}

static enum status read_line(int argc, char **argv, struct replay_line *line) {
    const char *size = NULL;
    const struct argument options[] = {
        {.name = "--speed", .value = "a number", .real = &line->replay.speed, .low = 0.01, .high = 1000},
        {.name = "--at", .value = "a step", .integer = &line->replay.at, .high = INFINITY},
        {.name = "--svg", .value = "a file to write", .text = &line->svg.file},
        {.name = "--screen", .value = "a name", .text = &line->svg.screen},
        {.name = "--size", .value = "COLSxROWS", .text = &size},
        {.name = "--runs", .value = "a folder", .text = &line->runs},
    };
    struct argument_list list = {.command = "replay",
                                 .options = options,
                                 .option_count = sizeof options / sizeof *options,
                                 .takes = "one record",
                                 .words = &line->what,
                                 .word_room = 1,
                                 .console = &line->console};
    STATUS_TRY(console_begin(&line->console));
    STATUS_TRY(arguments_read(argc, argv, &list));
    if (size)
        STATUS_TRY(read_size(size, &line->svg));
    if (!line->what)
        return status_fail(STATUS_BAD_INPUT,
                           "replay wants the name of a run or a file; towerscope replay --help");
    return STATUS_OK;
}

int command_replay(int argc, char **argv) {
    struct replay_line line = {.replay = {.at = WIRE_UNKNOWN_INT}, .svg = {.rows = 40, .cols = 120}};
    if (arguments_help(argc, argv))
        return help_print(write_help);
    enum status status = read_line(argc, argv, &line);
    if (status != STATUS_OK) {
        cli_fail(status);
        return EXIT_USAGE;
    }
    char path[PATH_MAX];
    status = find_record(line.what, find_runs(line.runs), path, sizeof path);
    if (status != STATUS_OK)
        return cli_fail(status);
    line.console.replay = true;
    if (line.svg.file) {
        line.svg.record = path;
        line.svg.at = line.replay.at;
        status = svg_draw(&line.svg, &line.console);
        return status == STATUS_OK ? EXIT_DONE : cli_fail(status);
    }
    struct stat about;
    line.replay.live = !stat(path, &about) && S_ISDIR(about.st_mode) && lock_held(path);
    struct feed *feed;
    status = feed_replay(path, &line.replay, &feed);
    if (status != STATUS_OK)
        return cli_fail(status);
    const char *name = strrchr(line.what, '/');
    line.console.run = name && name[1] ? name + 1 : line.what;
    return console_show(feed, &line.console);
}
