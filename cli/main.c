#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/stack.h"
#include "engine/base/printable.h"
#include "engine/base/text.h"

static const struct subcommand subcommands[] = {
    {"run", command_run, "train in a process of its own, with the console on it"},
    {"attach", command_attach, "the console on a live run"},
    {"train", command_train, "train a network in the foreground, a line each few steps"},
    {"ctl", command_ctl, "one command to a live run"},
    {"ls", command_ls, "the runs there are, and how they stand"},
    {"replay", command_replay, "the console on a recorded run: play, seek, speed"},
    {"lesson", command_lesson, "guided tours: why a tower adds up its losses, and what if not"},
    {"eval", command_eval, "precision of a run or a checkpoint on the test images"},
    {"diff", command_diff, "two records compared"},
    {"data", command_data, "verify, make and look at data sets"},
    {"doctor", command_doctor, "devices, libraries, terminal and data sets; how a model is computed"},
    {"bench", command_bench, "measure images per second on this processor, beside PyTorch"},
    {"engine", command_engine, NULL},
    {"protocol", command_protocol, NULL},
    {NULL, NULL, NULL},
};

int cli_fail(enum status status) {
    char shown[1024]; /* a name in the sentence may come from a stranger */
    text_printable(shown, sizeof shown, status_text());
    fprintf(stderr, "towerscope: %s\n", shown);
    switch (status) {
    case STATUS_OK:
        return EXIT_DONE;
    case STATUS_REFUSED:
        return EXIT_REFUSED;
    case STATUS_NOT_FOUND:
        return EXIT_NOT_FOUND;
    case STATUS_INTERRUPTED:
        return EXIT_INTERRUPTED;
    default:
        return EXIT_FAILED;
    }
}

static void print_help(FILE *to) {
    fprintf(to, "usage: towerscope COMMAND [options]\n\ncommands (each has --help):\n");
    for (const struct subcommand *s = subcommands; s->name; s++)
        if (s->sentence)
            fprintf(to, "  %-9s %s\n", s->name, s->sentence);
    fprintf(to,
            "\nExit code: %d done, %d failed, %d a wrong line, %d refused, %d not found,\n%d interrupted.\n",
            EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_REFUSED, EXIT_NOT_FOUND, EXIT_INTERRUPTED);
}

/* With descriptors 0 to 2 closed, the first files to be opened would become standard output and error, and
 * what is printed would land in a run's record. To standard output nothing can be written then, so that
 * finish() hears of what was not. */
static void hold_standard_descriptors(void) {
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) < 0)
            _exit(EXIT_FAILED);
}

static int unknown_command(const char *name) {
    const char *names[sizeof subcommands / sizeof *subcommands];
    int count = 0;
    for (const struct subcommand *s = subcommands; s->name; s++)
        if (s->sentence)
            names[count++] = s->name;
    const char *near = text_near(name, names, count);
    char shown[80];
    text_printable(shown, sizeof shown, name);
    fprintf(stderr, "towerscope: no command \"%s\"%s%s; towerscope --help lists them\n", shown,
            near ? "; the nearest is " : "", near ? near : "");
    return EXIT_USAGE;
}

/* Why standard output took not all of it: as the last write says, or one more of a byte to what has its hole
 * anyhow; 0: that went well. */
static int output_error(void) {
    errno = 0;
    if (fflush(stdout) == 0 && errno == 0 && ferror(stdout)) {
        clearerr(stdout);
        if (putchar('\n') != EOF)
            (void)fflush(stdout);
    }
    return errno;
}

/* A command has done its work only when what it printed has arrived. A reader that left (EPIPE) wants no
 * more. */
static int finish(int code) {
    bool lost = ferror(stdout) != 0;
    int error = output_error();
    if (error == EPIPE || (!lost && error == 0))
        return code;
    const char *why = error == 0 ? "" : error == EBADF ? "it is closed" : strerror(error);
    fprintf(stderr, "towerscope: not all could be written to standard output%s%s\n", *why ? ": " : "", why);
    return code == EXIT_DONE ? EXIT_FAILED : code;
}

static int run_subcommand(int argc, char **argv) {
    for (const struct subcommand *s = subcommands; s->name; s++)
        if (!strcmp(argv[0], s->name))
            return s->main(argc, argv);
    return unknown_command(argv[0]);
}

/* `help WORD ...` is `WORD ... --help`. */
static int help_of(int count, char **words) {
    static char help[] = "--help";
    char **line = calloc((size_t)count + 2, sizeof *line);
    if (!line)
        return cli_fail(status_fail(STATUS_NO_MEMORY, "no memory to read the command line"));
    memcpy(line, words, (size_t)count * sizeof *line);
    line[count] = help;
    int code = run_subcommand(count + 1, line);
    free(line);
    return code;
}

static int run_command(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(name, "help") && argc > 2 && argv[2][0] != '-')
        return help_of(argc - 2, argv + 2);
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        print_help(stdout);
        return EXIT_DONE;
    }
    if (!strcmp(name, "--version")) {
        printf("towerscope %s\n", TOWERSCOPE_VERSION);
        return EXIT_DONE;
    }
    return run_subcommand(argc - 1, argv + 1);
}

int main(int argc, char **argv) {
    hold_standard_descriptors();
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is a full disk, and told as one */
    int code = stack_run(run_command, argc, argv);
    return finish(code < 0 ? cli_fail(STATUS_IO) : code);
}
