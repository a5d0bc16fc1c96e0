#include "cli/cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* A name in the sentence may come from a stranger: bytes that a terminal would obey are not printed. */
static void print_safely(const char *text, FILE *to) {
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        bool c1_control = c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0; /* as UTF-8 */
        fputc(*c < ' ' || *c == 127 || c1_control ? '?' : *c, to);
        c += c1_control;
    }
}

int cli_fail(enum status status) {
    fputs("towerscope: ", stderr);
    print_safely(status_text(), stderr);
    fputc('\n', stderr);
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
}

/* With descriptors 0 to 2 closed, the first files to be opened would become standard output and error, and
 * what is printed would land in a run's record. */
static void hold_standard_descriptors(void) {
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            _exit(EXIT_FAILED);
}

int main(int argc, char **argv) {
    hold_standard_descriptors();
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        print_help(stdout);
        return EXIT_DONE;
    }
    if (!strcmp(name, "--version")) {
        printf("towerscope %s\n", TOWERSCOPE_VERSION);
        return EXIT_DONE;
    }
    for (const struct subcommand *s = subcommands; s->name; s++)
        if (!strcmp(name, s->name))
            return s->main(argc - 1, argv + 1);
    fprintf(stderr, "towerscope: no command \"%s\"; towerscope --help lists them\n", name);
    return EXIT_USAGE;
}
