/* `towerscope lesson`: a guided tour, in the console or, without a terminal, as text. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/console.h"
#include "cli/help.h"
#include "cli/lesson.h"
#include "cli/lesson_feed.h"
#include "tui/canvas.h"

enum { TEXT_COLS = 78 };

static void write_list(FILE *to) {
    fprintf(to, "usage: towerscope lesson NAME [--auto]\n\nA tour of a few minutes on generated data: enter "
                "or n turns the page, b turns it back. --auto, or no\nterminal: the sentences alone.\n\n");
    for (const struct lesson_source *s = lesson_sources; s->name; s++) {
        char title[128];
        lesson_title(s->text, title, sizeof title);
        fprintf(to, "  %-18s %s\n", s->name, title);
    }
}

static void print_paragraph(const char *text) {
    while (*text) {
        size_t bytes = text_fit(text, TEXT_COLS);
        size_t shown = bytes > 0 && text[bytes - 1] == ' ' ? bytes - 1 : bytes;
        printf("%.*s\n", (int)shown, text);
        text += bytes + strspn(text + bytes, " ");
    }
    printf("\n");
}

static int tell(struct lesson *lesson) {
    for (;;) {
        enum status status = lesson_next(lesson);
        if (status != STATUS_OK)
            return cli_fail(status);
        if (lesson->done)
            return EXIT_DONE;
        print_paragraph(lesson->said);
    }
}

static int show(struct lesson *lesson, struct app_options *options) {
    struct feed *feed;
    enum status status = lesson_feed(lesson, options, &feed);
    if (status != STATUS_OK)
        return cli_fail(status);
    struct console_farewell farewell;
    status = console_watch(feed, options, &farewell);
    if (!farewell.gone)
        printf(
            "The lesson is over, and its run with it.\nAgain: towerscope lesson %s; the others: towerscope "
            "lesson\n",
            lesson->name);
    farewell.live = false; /* the run was in this process */
    *farewell.text = 0;
    return console_tell(status, &farewell, options);
}

int command_lesson(int argc, char **argv) {
    const char *name = NULL;
    bool automatic = !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO);
    struct app_options options;
    enum status status = console_begin(&options);
    for (int i = 1; i < argc && status == STATUS_OK; i++) {
        bool taken;
        status = console_option(&options, argc, argv, &i, &taken);
        if (status != STATUS_OK || taken)
            continue;
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return help_print(write_list);
        if (!strcmp(argv[i], "--auto"))
            automatic = true;
        else if (argv[i][0] == '-' || name)
            status = status_fail(STATUS_BAD_INPUT, "lesson takes one NAME and --auto; found \"%s\"", argv[i]);
        else
            name = argv[i];
    }
    if (status != STATUS_OK) {
        cli_fail(status);
        return EXIT_USAGE;
    }
    if (!name)
        return help_print(write_list);
    struct lesson lesson;
    status = lesson_open(name, &lesson);
    int code = status != STATUS_OK ? cli_fail(status) : automatic ? tell(&lesson) : show(&lesson, &options);
    lesson_close(&lesson);
    return code;
}
