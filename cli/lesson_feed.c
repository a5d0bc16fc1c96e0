#include "cli/lesson_feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lesson_player {
    struct feed base; /* first */
    struct lesson *lesson;
    struct guide guide;
    unsigned commands;
};

static void tell(struct lesson_player *player) {
    struct lesson *lesson = player->lesson;
    player->base.state = lesson->state;
    player->base.generation = lesson->generation + 1;
    player->guide.part = lesson->part;
    player->guide.parts = lesson->parts;
    player->guide.done = lesson->part == lesson->parts;
    snprintf(player->guide.text, sizeof player->guide.text, "%s", lesson->said);
    size_t length = strlen(player->guide.keys);
    snprintf(player->guide.keys + length, sizeof player->guide.keys - length, "%s", lesson->keys);
}

static enum status pump(struct feed *feed, double now, double budget, bool *more) {
    (void)feed;
    (void)now;
    (void)budget;
    *more = false;
    return STATUS_OK;
}

static int no_fd(const struct feed *feed) {
    (void)feed;
    return -1;
}

static bool wants_nothing(const struct feed *feed) {
    (void)feed;
    return false;
}

static double no_wait(const struct feed *feed, double now) {
    (void)feed;
    (void)now;
    return 1e9;
}

static void status_of(const struct feed *feed, struct feed_status *out) {
    (void)feed;
    memset(out, 0, sizeof *out);
}

static enum status command(struct feed *feed, const char *text, const char *screen, char *id) {
    static const char *const its_own[] = {"pause",   "resume", "step",      "stop",        "phase",
                                          "restore", "towers", "why apply", "why restore", "set"};
    enum { ALWAYS = 4, UNTIL_THE_END = sizeof its_own / sizeof *its_own };
    struct lesson_player *player = (struct lesson_player *)feed;
    for (int i = 0; i < (player->guide.done ? ALWAYS : UNTIL_THE_END); i++)
        if (!strncmp(text, its_own[i], strlen(its_own[i])))
            return status_fail(STATUS_REFUSED, "a lesson makes its steps itself: enter or n goes on%s",
                               i < ALWAYS ? "" : "; at its end this can be tried");
    snprintf(id, 40, "lesson-%u", ++player->commands);
    return lesson_command(player->lesson, text, screen, id);
}

static enum status go_on(struct lesson_player *player) {
    STATUS_TRY(lesson_next(player->lesson));
    tell(player);
    return STATUS_OK;
}

/* A person may have changed the run since: it is made again. */
static enum status go_back(struct lesson_player *player) {
    int part = player->lesson->part - 1;
    STATUS_TRY(lesson_restart(player->lesson));
    player->guide.returns++;
    *player->guide.keys = 0;
    enum status status = STATUS_OK;
    do {
        status = lesson_next(player->lesson);
        tell(player);
    } while (status == STATUS_OK && player->lesson->part < part);
    return status;
}

static enum status turn(struct feed *feed, bool on) {
    struct lesson_player *player = (struct lesson_player *)feed;
    return on ? go_on(player) : go_back(player);
}

static void close_feed(struct feed *feed) {
    free(feed); /* the state is the lesson's */
}

static const struct feed_ops ops = {pump,    no_fd, wants_nothing, no_wait,    status_of,
                                    command, NULL,  NULL,          close_feed, turn};

enum status lesson_feed(struct lesson *lesson, struct app_options *options, struct feed **out) {
    STATUS_TRY(lesson_next(lesson));
    struct lesson_player *player = calloc(1, sizeof *player);
    if (!player)
        return status_fail(STATUS_NO_MEMORY, "no memory for a lesson");
    player->base.ops = &ops;
    player->lesson = lesson;
    tell(player);
    options->guide = &player->guide;
    *out = &player->base;
    return STATUS_OK;
}
