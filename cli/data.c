/* towerscope data: look into data sets, and make one. */
#include "cli/data.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "datasets/dataset.h"

static const char help[] =
    "usage: towerscope data check PATH             verify a data set, count its images\n"
    "       towerscope data make DIR [options]     write the generated set as CIFAR-10 binary\n"
    "       towerscope data show PATH [options]    look at images in the terminal\n"
    "       towerscope data order PATH [options]   which image goes where, and how distorted\n"
    "\n"
    "PATH is fashion-mnist, generated, or a folder with IDX (gz or plain), CIFAR-10 or\n"
    "CIFAR-100 binary files. Each of the four has --help.\n";

static const char check_help[] = "usage: towerscope data check PATH\n\n"
                                 "Reads the whole set, checks every size, header and label, and prints what "
                                 "is there. Exit code 0 when it\n"
                                 "can be trained on (warnings do not count), 4 when nothing is there, 1 when "
                                 "something is wrong with it.\n";

static const char make_help[] = "usage: towerscope data make DIR [options]\n\n"
                                "Draws the generated set (ten shapes, 32x32, colour) and writes it as "
                                "CIFAR-10 binary files into DIR, which\n"
                                "must be new or empty.\n\n"
                                "  --seed N     another set (default 0)\n"
                                "  --images N   training images, 5 to 1000000 (default 10000); a fifth as "
                                "many test images come with them\n";

/* The value of an option with a number; false with a message when it is none or out of range. */
static bool read_number(const struct data_option *option, const char *text) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno != 0) {
        fprintf(stderr, "towerscope: %s: \"%s\" is not a whole number\n", option->name, text);
        return false;
    }
    if (value < option->low || value > option->high) {
        fprintf(stderr, "towerscope: %s: %lld is out of range; %lld to %lld is expected\n", option->name,
                value, (long long)option->low, (long long)option->high);
        return false;
    }
    *option->value = value;
    return true;
}

/* Take the option at argv[*i], which may be "--name=value": 1 taken, 0 not one of these, -1 wrong. */
static int take_option(int argc, char **argv, int *i, const struct data_arguments *a) {
    const char *word = argv[*i], *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    for (const struct data_flag *f = a->flags; f && f->name; f++)
        if (!equals && !strcmp(f->name, word)) {
            *f->value = 1;
            return 1;
        }
    const struct data_option *number = a->options;
    while (number && number->name &&
           (strlen(number->name) != length || memcmp(number->name, word, length) != 0))
        number++;
    const struct data_text *text = a->texts;
    while (text && text->name && (strlen(text->name) != length || memcmp(text->name, word, length) != 0))
        text++;
    bool is_number = number && number->name, is_text = text && text->name;
    if (!is_number && !is_text)
        return 0;
    const char *value = equals ? equals + 1 : *i + 1 < argc ? argv[++*i] : NULL;
    if (!value) {
        fprintf(stderr, "towerscope: %s wants a value\n", word);
        return -1;
    }
    if (is_text) {
        *text->value = value;
        return 1;
    }
    return read_number(number, value) ? 1 : -1;
}

int data_arguments(int argc, char **argv, struct data_arguments *a) {
    a->path = NULL;
    bool options_end = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!options_end && (!strcmp(word, "--help") || !strcmp(word, "-h"))) {
            fputs(a->help, stdout);
            return EXIT_DONE;
        }
        if (!options_end && !strcmp(word, "--")) {
            options_end = true;
            continue;
        }
        if (!options_end && word[0] == '-' && word[1]) {
            int taken = take_option(argc, argv, &i, a);
            if (taken < 0)
                return EXIT_USAGE;
            if (taken == 0) {
                fprintf(stderr, "towerscope: data %s has no option %s; --help lists them\n", argv[0], word);
                return EXIT_USAGE;
            }
            continue;
        }
        if (a->path) {
            fprintf(stderr, "towerscope: data %s takes one %s; \"%s\" is one too many\n", argv[0],
                    a->path_word, word);
            return EXIT_USAGE;
        }
        a->path = word;
    }
    if (!a->path) {
        fprintf(stderr, "towerscope: data %s wants a %s\n\n%s", argv[0], a->path_word, a->help);
        return EXIT_USAGE;
    }
    return -1;
}

static void print_classes(const struct dataset *data) {
    int64_t count[2][256] = {{0}};
    for (int64_t i = 0; i < data->train.count; i++)
        count[0][data->train.labels[i]]++;
    for (int64_t i = 0; i < data->test.count; i++)
        count[1][data->test.labels[i]]++;
    printf("classes          %d\n", data->classes);
    for (int i = 0; i < data->classes; i++)
        printf("  %3d  %-16s %8lld training  %8lld test\n", i, data->class_names ? data->class_names[i] : "",
               (long long)count[0][i], (long long)count[1][i]);
}

static int data_check(int argc, char **argv) {
    struct data_arguments arguments = {.help = check_help, .path_word = "PATH"};
    int rc = data_arguments(argc, argv, &arguments);
    if (rc >= 0)
        return rc;
    struct dataset *data;
    enum status status = dataset_open(arguments.path, NULL, &data);
    if (status != STATUS_OK)
        return cli_fail(status);
    printf("%s (%s)\n", data->name, data->format);
    printf("training images  %lld of %dx%dx%d\n", (long long)data->train.count, data->train.shape.h,
           data->train.shape.w, data->train.shape.c);
    printf("test images      %lld\n", (long long)data->test.count);
    print_classes(data);
    fputs(data->notes, stdout);
    dataset_close(data);
    return EXIT_DONE;
}

static int data_make(int argc, char **argv) {
    int64_t seed = 0, images = 10000;
    const struct data_option options[] = {
        {"--seed", &seed, 0, INT64_MAX}, {"--images", &images, 5, 1000000}, {NULL, NULL, 0, 0}};
    struct data_arguments arguments = {.options = options, .help = make_help, .path_word = "DIR"};
    int rc = data_arguments(argc, argv, &arguments);
    if (rc >= 0)
        return rc;
    struct dataset_options wanted = {
        .seed = (uint64_t)seed, .generated_train = images, .generated_test = images / 5};
    struct dataset *data;
    enum status status = dataset_open("generated", &wanted, &data);
    if (status != STATUS_OK)
        return cli_fail(status);
    status = dataset_write_cifar10(data, arguments.path);
    if (status == STATUS_OK)
        printf("%s: %lld training and %lld test images of %d shapes, CIFAR-10 binary\n", arguments.path,
               (long long)data->train.count, (long long)data->test.count, data->classes);
    dataset_close(data);
    return status == STATUS_OK ? EXIT_DONE : cli_fail(status);
}

int command_data(int argc, char **argv) {
    static const struct subcommand parts[] = {{"check", data_check, NULL},
                                              {"make", data_make, NULL},
                                              {"show", data_show, NULL},
                                              {"order", data_order, NULL}};
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        fputs(help, stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
        fputs(help, stdout);
        return EXIT_DONE;
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(name, parts[i].name))
            return parts[i].main(argc - 1, argv + 1);
    fprintf(stderr, "towerscope: data has no \"%s\"; check, make, show and order are there\n", name);
    return EXIT_USAGE;
}
