#include "cli/console.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/signals.h"
#include "engine/base/printable.h"
#include "tui/config.h"
#include "tui/line_mode.h"

static const struct {
    const char *name, *value, *sentence;
} options_table[] = {
    {"--theme", "dark|light", "colours for dark or light ground (default: COLORFGBG, else dark)"},
    {"--palette", "safe|bright|grey", "safe for colour-blind eyes (default), stronger, or grey"},
    {"--glyphs", "braille|block|ascii", "what curves are drawn with (default: what the terminal can)"},
    {"--ascii", NULL, "the same as --glyphs ascii"},
    {"--no-sync", NULL, "do not bracket frames by the terminal's synchronized update"},
};
enum { OPTIONS = sizeof options_table / sizeof *options_table };

enum status console_begin(struct app_options *options) {
    memset(options, 0, sizeof *options);
    preferences_default(&options->preferences);
    keymap_default(&options->keymap);
    char path[PATH_MAX];
    config_path(path, sizeof path);
    return config_read(path, &options->preferences, &options->keymap);
}

void console_help(FILE *to) {
    fprintf(to, "\nthe console:\n");
    for (int i = 0; i < OPTIONS; i++) {
        char words[64];
        snprintf(words, sizeof words, "%s%s%s", options_table[i].name, options_table[i].value ? " " : "",
                 options_table[i].value ? options_table[i].value : "");
        fprintf(to, "  %-29s %s\n", words, options_table[i].sentence);
    }
    fprintf(to, "NO_COLOR set: no colours. The keys are told by ? in the console.\n");
}

enum status console_option(struct app_options *options, int argc, char **argv, int *i, bool *taken) {
    struct preferences *preferences = &options->preferences;
    for (int k = 0; k < OPTIONS; k++) {
        const char *name = options_table[k].name;
        size_t length = strlen(name);
        const char *after = argv[*i] + length;
        if (strncmp(argv[*i], name, length) || (*after && (*after != '=' || !options_table[k].value)))
            continue;
        *taken = true;
        if (!options_table[k].value) {
            if (!strcmp(name, "--ascii"))
                return preferences_set(preferences, name, "glyphs", "ascii");
            return preferences_set(preferences, name, "synchronized", "off");
        }
        if (*after)
            return preferences_set(preferences, name, name + 2, after + 1);
        if (*i + 1 >= argc)
            return status_fail(STATUS_BAD_INPUT, "%s wants a value: %s", name, options_table[k].value);
        return preferences_set(preferences, name, name + 2, argv[++*i]);
    }
    *taken = false;
    return STATUS_OK;
}

static bool print_line(void *context, const char *line) {
    (void)context;
    for (const unsigned char *c = (const unsigned char *)line; *c; c++)
        putchar(*c < ' ' || *c == 127 ? '?' : *c);
    return putchar('\n') != EOF && fflush(stdout) == 0;
}

/* A terminal that can't place a cursor still gets lines. */
static enum status show_lines(struct feed *feed, struct console_farewell *farewell) {
    enum { SECONDS = 5 };
    signals_catch(false);
    printf("%s: here is a line each %d seconds; ^C ends it, the run goes on\n", status_text(), SECONDS);
    enum status status = line_mode_run(feed, SECONDS, signals_fd(), print_line, NULL);
    console_part(feed, farewell);
    farewell->signal = signals_asked();
    farewell->gone = ferror(stdout) || farewell->signal == SIGHUP;
    if (farewell->signal)
        putchar('\n'); /* after the ^C that the terminal shows */
    return status;
}

enum status console_watch(struct feed *feed, const struct app_options *options,
                          struct console_farewell *farewell) {
    enum status status = console_run(feed, options, farewell);
    if (status == STATUS_UNSUPPORTED && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        status = show_lines(feed, farewell);
    feed_close(feed);
    return status;
}

int console_tell(enum status status, const struct console_farewell *farewell,
                 const struct app_options *options) {
    const char *run = *farewell->run ? farewell->run : options->run ? options->run : "";
    if (farewell->gone)
        return EXIT_DONE;
    if (farewell->stopping && *run) {
        printf("%s is being stopped%s%s: `towerscope ls` shows when it has ended\n", run,
               *farewell->text ? ", at " : "", farewell->text);
    } else if (farewell->live && *run) {
        char program[200]; /* as it was called: it need not be on the PATH */
        text_printable(program, sizeof program, program_invocation_name);
        printf("%s goes on%s%s.\nCome back with: %s attach %s\nEnd it with:    %s ctl %s stop\n", run,
               *farewell->text ? ": " : "", farewell->text, program, run, program, run);
    } else if (*farewell->text && *run) {
        printf("%s: %s\n", run, farewell->text);
    }
    if (status != STATUS_OK)
        return cli_fail(status);
    return farewell->signal && farewell->signal != SIGINT ? 128 + farewell->signal : EXIT_DONE;
}

int console_show(struct feed *feed, const struct app_options *options) {
    struct console_farewell farewell;
    enum status status = console_watch(feed, options, &farewell);
    return console_tell(status, &farewell, options);
}
