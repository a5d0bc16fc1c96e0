/* Lessons: short tours on generated data, each a text file of commands and sentences
 * (cli/lessons/NAME.lesson).
 *
 *   title TEXT             one line for the list
 *   run KEY=VALUE ...      a new run with these settings
 *   step N                 N steps
 *   do COMMAND             a command as typed at the console
 *   key KEYS               keys for the console that shows it (2 the Why screen, o the scope, ...)
 *   keep NAME FIGURE       remember a figure under a name of one word
 *   check FIGURE < FIGURE  what the sentences rest on (also >, and = for equal within 1 part in 1000)
 *   say TEXT               a part ends here and its text is told; lines that begin with a blank go on with it
 *
 * In texts {FIGURE} is replaced: {loss}, {tower 0 loss}, {sum prints}, ... (lesson_figure). A FIGURE of check
 * may be a number. Nothing is hard-coded: every number in a sentence comes from the run's own events. */
#ifndef TOWERSCOPE_CLI_LESSON_H
#define TOWERSCOPE_CLI_LESSON_H

#include "cli/session.h"
#include "engine/wire/state.h"

struct lesson_source {
    const char *name, *text;
};
extern const struct lesson_source lesson_sources[]; /* made from the files; the last has no name */

enum { LESSON_KEPT = 16, LESSON_TEXT = 1600 };

struct lesson {
    const char *name, *source;
    char *text, *next; /* the lines, and the one that comes next */
    int line, part, parts;
    struct settings settings;
    struct session session; /* .trainer NULL: none yet */
    struct run_state *state;
    uint64_t generation; /* another number, another run */
    int64_t seq;
    enum status status; /* of folding events */
    char keys[32], said[LESSON_TEXT];
    bool done;
    int kept;
    struct {
        char name[24];
        double value;
        char words[48];
    } keep[LESSON_KEPT];
};

/* STATUS_NOT_FOUND: there is no such lesson, and the nearest is named. */
enum status lesson_open(const char *name, struct lesson *out);
void lesson_close(struct lesson *lesson);

/* On to the next part: its text in lesson->said, the keys that belong to it in lesson->keys. Past the last
 * one lesson->done is set. STATUS_INTERNAL: a check failed or the file is wrong; the message says where. */
enum status lesson_next(struct lesson *lesson);

/* Before the first part again: the run is let go, and what the lesson did to it. STATUS_NO_MEMORY: nothing has
 * changed. */
enum status lesson_restart(struct lesson *lesson);

/* A command of the person's own, or of a screen that wants something to draw (NULL: none). id: NULL: any. */
enum status lesson_command(struct lesson *lesson, const char *text, const char *screen, const char *id);

/* A figure by its words: its value, and how a sentence writes it (words may be NULL). STATUS_NOT_FOUND. */
enum status lesson_figure(const struct lesson *lesson, const char *name, double *value, char words[48]);

/* Replace every {FIGURE} of `text`. */
enum status lesson_fill(const struct lesson *lesson, const char *text, char *out, size_t size);

/* The title, from the file. */
void lesson_title(const char *text, char *out, size_t size);

#endif
