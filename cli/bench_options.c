#include "cli/bench_options.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/help.h"

static const char help[] =
    "usage: towerscope bench [options]\n\n"
    "Measures training of " BENCH_MODEL
    " on this processor: images per second by threads and towers, the phases of a\n"
    "step, what a run does beside the network's work, how it gains by threads and towers, each layer against "
    "the\n"
    "peak of multiplying and adding, and PyTorch and TensorFlow where they are installed.\n\n"
    "  --rounds N          of each measurement (default 5)\n"
    "  --seconds X         that one takes (default 0.6)\n"
    "  --batch N           images of a step (default 128)\n"
    "  --threads LIST      as 1,2 (default: 1 and all)\n"
    "  --towers LIST       (default 1,2,4,8)\n"
    "  --isa NAME          avx512, avx2 or plain (default: the best there is)\n"
    "  --python NAME       that has PyTorch (default /usr/bin/python3)\n"
    "  --tensorflow NAME   the Python that has TensorFlow (default: that of --python)\n"
    "  --scripts FOLDER    what those run (default tests/bench); \"\": neither is measured\n";

static bool read_int(const char *text, int low, int high, int *out) {
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < low || value > high)
        return false;
    *out = (int)value;
    return true;
}

static bool read_list(const char *text, struct bench_list *out) {
    char copy[128];
    if ((size_t)snprintf(copy, sizeof copy, "%s", text) >= sizeof copy)
        return false;
    out->count = 0;
    for (char *rest = copy, *word; (word = strsep(&rest, ","));)
        if (out->count == BENCH_LIST || !read_int(word, 1, 1024, &out->values[out->count++]))
            return false;
    return out->count > 0;
}

static bool read_seconds(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && *out >= 0 && *out <= 600;
}

/* One option's word; false: it is not possible. */
static bool take(int option, const char *word, struct bench_options *o) {
    switch (option) {
    case 'r':
        return read_int(word, 1, BENCH_ROUNDS, &o->rounds);
    case 's':
        return read_seconds(word, &o->seconds);
    case 'b':
        return read_int(word, 1, 1 << 16, &o->batch);
    case 't':
        return read_list(word, &o->threads);
    case 'w':
        return read_list(word, &o->towers);
    case 'i':
        o->isa = word;
        return *word != 0;
    case 'p':
        o->python = word;
        return *word != 0;
    case 'f':
        o->tensorflow = word;
        return *word != 0;
    default:
        o->scripts = word;
        return true;
    }
}

int bench_options_read(int argc, char **argv, struct bench_options *o) {
    static const struct option names[] = {{"rounds", required_argument, NULL, 'r'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"batch", required_argument, NULL, 'b'},
                                          {"threads", required_argument, NULL, 't'},
                                          {"towers", required_argument, NULL, 'w'},
                                          {"isa", required_argument, NULL, 'i'},
                                          {"python", required_argument, NULL, 'p'},
                                          {"tensorflow", required_argument, NULL, 'f'},
                                          {"scripts", required_argument, NULL, 'c'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *o = (struct bench_options){.rounds = 5,
                                .batch = 128,
                                .seconds = 0.6,
                                .towers = {4, {1, 2, 4, 8}},
                                .python = "/usr/bin/python3",
                                .scripts = "tests/bench"};
    int option, index = 0;
    while ((option = getopt_long(argc, argv, "h", names, &index)) != -1) {
        if (option == 'h') {
            help_text(help, stdout);
            return EXIT_DONE;
        }
        if (option == '?') {
            fputs("towerscope bench --help lists the options\n", stderr);
            return EXIT_USAGE;
        }
        if (!take(option, optarg, o)) {
            fprintf(stderr,
                    "towerscope: --%s: \"%s\" is not possible; towerscope bench --help says what is\n",
                    names[index].name, optarg);
            return EXIT_USAGE;
        }
    }
    if (!o->tensorflow)
        o->tensorflow = o->python;
    if (optind == argc)
        return -1;
    fprintf(stderr, "towerscope: bench takes no \"%s\"\n", argv[optind]);
    return EXIT_USAGE;
}
