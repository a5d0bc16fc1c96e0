/* towerscope data: look into data sets, and make one. */
#include "cli/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/help.h"
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

int data_arguments(int argc, char **argv, const struct data_part *part, const char **word) {
    struct argument_list list = {.command = part->command,
                                 .options = part->options,
                                 .option_count = part->option_count,
                                 .takes = part->word,
                                 .words = word,
                                 .word_room = 1};
    if (arguments_help(argc, argv)) {
        help_text(part->help, stdout);
        return EXIT_DONE;
    }
    enum status status = arguments_read(argc, argv, &list);
    if (status == STATUS_OK && list.word_count == 0)
        status = status_fail(STATUS_BAD_INPUT, "%s wants %s; towerscope %s --help", part->command, part->word,
                             part->command);
    if (status == STATUS_OK)
        return -1;
    cli_fail(status);
    return EXIT_USAGE;
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
    const struct data_part part = {"data check", check_help, "a PATH", NULL, 0};
    const char *path;
    int rc = data_arguments(argc, argv, &part, &path);
    if (rc >= 0)
        return rc;
    struct dataset *data;
    enum status status = dataset_open(path, NULL, &data);
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
    const struct argument options[] = {
        {.name = "--seed", .value = "a number", .integer = &seed, .high = INFINITY},
        {.name = "--images", .value = "a number", .integer = &images, .low = 5, .high = 1000000}};
    const struct data_part part = {"data make", make_help, "a DIR", options, 2};
    const char *folder;
    int rc = data_arguments(argc, argv, &part, &folder);
    if (rc >= 0)
        return rc;
    if (!*folder || !strcmp(folder, "-")) {
        cli_fail(status_fail(STATUS_BAD_INPUT, "data make wants the path of a folder, found \"%s\"", folder));
        return EXIT_USAGE;
    }
    struct dataset_options wanted = {
        .seed = (uint64_t)seed, .generated_train = images, .generated_test = images / 5};
    struct dataset *data;
    enum status status = dataset_open("generated", &wanted, &data);
    if (status != STATUS_OK)
        return cli_fail(status);
    status = dataset_write_cifar10(data, folder);
    if (status == STATUS_OK)
        printf("%s: %lld training and %lld test images of %d shapes, CIFAR-10 binary\n", folder,
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
        help_text(help, stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
        help_text(help, stdout);
        return EXIT_DONE;
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(name, parts[i].name))
            return parts[i].main(argc - 1, argv + 1);
    fprintf(stderr, "towerscope: data has no \"%s\"; check, make, show and order are there\n", name);
    return EXIT_USAGE;
}
