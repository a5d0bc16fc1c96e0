/* `towerscope diff`: two records compared. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/find.h"
#include "cli/help.h"
#include "engine/wire/compare.h"
#include "engine/wire/record.h"

enum { SHOWN = 20 };

/* Where the steps of a record are, those beyond a resume or rewind dropped. */
struct step_places {
    struct step_place {
        int64_t step, offset;
    } * places;
    int64_t count, room;
};

struct diff {
    const char *names[2], *runs;
    bool steps;        /* only step events, matched by their step */
    double tolerance;  /* relative */
    int64_t until;     /* the last step that is compared */
    bool other_towers; /* the step at hand has other towers: only what the average says is compared */
    struct record_reader *readers[2];
    struct arena arenas[2];
    int64_t differences, events;
    char where[80];
};

static void write_help(FILE *to) {
    fprintf(
        to,
        "usage: towerscope diff NAME NAME [options]\n\n"
        "Compares the records of two runs, event by event. Times, devices, users and names of runs are "
        "left out.\n"
        "Exit code: 0 nothing differs, 1 something does or can't be read. NAME is a run, its folder or an "
        "events.jsonl "
        "file.\n\n"
        "  --steps                       only the steps, matched by number: a run that was resumed and "
        "one that was\n"
        "                                not, or another number of towers (the towers' own values are "
        "left out)\n"
        "  --until STEP                  only up to this step\n"
        "  --tolerance X                 numbers may differ by this share of the larger one (default 0)\n"
        "  --runs DIR                    folder of runs (else $TOWERSCOPE_RUNS, else ./runs)\n");
}

static enum status read_line(int argc, char **argv, struct diff *diff) {
    const struct argument options[] = {
        {.name = "--steps", .flag = &diff->steps},
        {.name = "--until", .value = "a step", .integer = &diff->until, .high = INFINITY},
        {.name = "--tolerance", .value = "a number", .real = &diff->tolerance, .high = INFINITY},
        {.name = "--runs", .value = "a folder", .text = &diff->runs},
    };
    struct argument_list list = {.command = "diff",
                                 .options = options,
                                 .option_count = sizeof options / sizeof *options,
                                 .takes = "two runs",
                                 .words = diff->names,
                                 .word_room = 2};
    STATUS_TRY(arguments_read(argc, argv, &list));
    if (list.word_count != 2)
        return status_fail(STATUS_BAD_INPUT, "diff wants two runs; towerscope diff --help");
    return STATUS_OK;
}

static enum status open_records(struct diff *diff) {
    for (int i = 0; i < 2; i++) {
        char path[PATH_MAX];
        STATUS_TRY(find_record(diff->names[i], find_runs(diff->runs), path, sizeof path));
        STATUS_TRY(record_reader_open(path, 0, &diff->readers[i]));
    }
    return STATUS_OK;
}

static void show(void *context, const struct difference *difference) {
    struct diff *diff = context;
    static const char *const of_towers[] = {"towers", "grad_norm_mean", "noise_scale"};
    for (int i = 0; diff->other_towers && i < 3; i++)
        if (!strncmp(difference->field, of_towers[i], strlen(of_towers[i])))
            return;
    if (diff->differences++ < SHOWN)
        printf("%s: %s: %s | %s\n", diff->where, difference->field, difference->a, difference->b);
}

static void compare(struct diff *diff, const struct event *a, const struct event *b) {
    int64_t step = event_step(a);
    diff->events++;
    if (step == WIRE_UNKNOWN_INT)
        snprintf(diff->where, sizeof diff->where, "%s, event %lld", event_kind_name(a->kind),
                 (long long)a->seq);
    else
        snprintf(diff->where, sizeof diff->where, "%s, step %lld", event_kind_name(a->kind), (long long)step);
    diff->other_towers = diff->steps && a->kind == EVENT_STEP && b->kind == EVENT_STEP &&
                         a->step.tower_count != b->step.tower_count;
    event_compare(a, b, diff->tolerance, show, diff);
}

static void tell_missing(struct diff *diff, int which, const char *what) {
    if (diff->differences++ < SHOWN)
        printf("%s: only in %s\n", what, diff->names[which]);
}

/* ---- event by event */

static enum status next_event(struct diff *diff, int i, struct event *out, bool *any) {
    arena_reset(&diff->arenas[i]);
    do {
        enum status status = record_next(diff->readers[i], -1, &diff->arenas[i], out);
        *any = status == STATUS_OK;
        if (status != STATUS_OK)
            return status == STATUS_BUSY ? STATUS_OK : status;
    } while (out->kind == EVENT_NONE ||
             (event_step(out) != WIRE_UNKNOWN_INT && event_step(out) > diff->until));
    return STATUS_OK;
}

static enum status compare_events(struct diff *diff) {
    struct event a, b;
    bool any[2];
    for (;;) {
        STATUS_TRY(next_event(diff, 0, &a, &any[0]));
        STATUS_TRY(next_event(diff, 1, &b, &any[1]));
        if (!any[0] || !any[1])
            break;
        compare(diff, &a, &b);
        if (a.kind != b.kind) {
            printf("from here on the records do not run side by side; --steps compares their steps\n");
            return STATUS_OK;
        }
    }
    if (any[0] || any[1])
        tell_missing(diff, any[1], "more events");
    return STATUS_OK;
}

/* ---- step by step */

static void go_back(struct step_places *places, int64_t step) {
    while (places->count > 0 && places->places[places->count - 1].step > step)
        places->count--;
}

static enum status note_step(struct step_places *places, int64_t step, int64_t offset) {
    go_back(places, step - 1);
    if (places->count == places->room) {
        int64_t room = places->room ? 2 * places->room : 1024;
        struct step_place *more = realloc(places->places, (size_t)room * sizeof *more);
        if (!more)
            return status_fail(STATUS_NO_MEMORY, "no memory to compare the records");
        places->places = more;
        places->room = room;
    }
    places->places[places->count++] = (struct step_place){step, offset};
    return STATUS_OK;
}

static enum status find_steps(struct diff *diff, int i, struct step_places *places) {
    for (;;) {
        struct event event;
        int64_t offset = record_reader_offset(diff->readers[i]);
        arena_reset(&diff->arenas[i]);
        enum status status = record_next(diff->readers[i], -1, &diff->arenas[i], &event);
        if (status != STATUS_OK)
            return status == STATUS_BUSY ? STATUS_OK : status;
        if (event.kind == EVENT_RUN_START && event.run_start.resumed_from != WIRE_UNKNOWN_INT)
            go_back(places, event.run_start.resumed_from);
        else if (event.kind == EVENT_REWIND)
            go_back(places, event.rewind.to);
        else if (event.kind == EVENT_STEP && event.step.step <= diff->until)
            STATUS_TRY(note_step(places, event.step.step, offset));
    }
}

static enum status read_step(struct diff *diff, int i, int64_t offset, struct event *out) {
    arena_reset(&diff->arenas[i]);
    STATUS_TRY(record_seek(diff->readers[i], offset));
    enum status status = record_next(diff->readers[i], -1, &diff->arenas[i], out);
    return status == STATUS_BUSY ? status_fail(STATUS_IO, "%s: became shorter", diff->names[i]) : status;
}

static enum status compare_places(struct diff *diff, const struct step_places places[2]) {
    int64_t i = 0, j = 0;
    while (i < places[0].count || j < places[1].count) {
        int64_t a = i < places[0].count ? places[0].places[i].step : INT64_MAX;
        int64_t b = j < places[1].count ? places[1].places[j].step : INT64_MAX;
        if (a != b) {
            char what[40];
            snprintf(what, sizeof what, "step %lld", (long long)(a < b ? a : b));
            tell_missing(diff, a < b ? 0 : 1, what);
            i += a < b;
            j += b < a;
            continue;
        }
        struct event x, y;
        STATUS_TRY(read_step(diff, 0, places[0].places[i++].offset, &x));
        STATUS_TRY(read_step(diff, 1, places[1].places[j++].offset, &y));
        compare(diff, &x, &y);
    }
    return STATUS_OK;
}

static enum status compare_steps(struct diff *diff) {
    struct step_places places[2] = {{0}, {0}};
    enum status status = find_steps(diff, 0, &places[0]);
    if (status == STATUS_OK)
        status = find_steps(diff, 1, &places[1]);
    if (status == STATUS_OK)
        status = compare_places(diff, places);
    free(places[0].places);
    free(places[1].places);
    return status;
}

/* Whether all of both records could be read and nothing differs. */
static bool print_end(const struct diff *diff) {
    bool whole = true;
    for (int i = 0; i < 2; i++) {
        long long lines = (long long)record_reader_damaged(diff->readers[i]);
        if (lines > 0)
            fprintf(stderr, "towerscope: %s: %lld line%s can't be read\n", diff->names[i], lines,
                    lines == 1 ? "" : "s");
        whole = whole && lines == 0;
    }
    if (diff->differences > SHOWN)
        printf("... and %lld more differences\n", (long long)(diff->differences - SHOWN));
    if (diff->differences == 0)
        printf("nothing differs in %s%lld %s%s\n", whole ? "" : "the ", (long long)diff->events,
               diff->steps ? "steps" : "events", whole ? "" : " that can be read");
    return whole && diff->differences == 0;
}

int command_diff(int argc, char **argv) {
    struct diff diff = {.until = INT64_MAX};
    if (arguments_help(argc, argv))
        return help_print(write_help);
    enum status status = read_line(argc, argv, &diff);
    if (status != STATUS_OK) {
        cli_fail(status);
        return EXIT_USAGE;
    }
    status = open_records(&diff);
    if (status == STATUS_OK)
        status = diff.steps ? compare_steps(&diff) : compare_events(&diff);
    if (status == STATUS_OK && diff.events == 0)
        status = status_fail(STATUS_BAD_INPUT, "%s and %s: there is nothing to compare", diff.names[0],
                             diff.names[1]);
    bool same = status == STATUS_OK && print_end(&diff);
    for (int i = 0; i < 2; i++) {
        record_reader_close(diff.readers[i]);
        arena_free(&diff.arenas[i]);
    }
    if (status != STATUS_OK)
        return cli_fail(status);
    return same ? EXIT_DONE : EXIT_FAILED;
}
