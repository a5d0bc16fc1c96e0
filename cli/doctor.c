/* `towerscope doctor`: what there is on this machine, and why something that is not used is not. With --plan:
 * how a model would be computed, and what memory it takes, without training it. */
#include <langinfo.h>
#include <limits.h>
#include <link.h>
#include <locale.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/session.h"
#include "datasets/order.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/model/net.h"
#include "kernels/registry.h"
#include "tui/term.h"

/* ---- the machine */

static void print_machine(void) {
    struct utsname name;
    cpu_set_t set;
    char words[32];
    printf("towerscope %s\n\nmachine\n", TOWERSCOPE_VERSION);
    if (!uname(&name))
        printf("  %s %s, %s\n", name.sysname, name.release, name.machine);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (!sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) < processors)
        printf("  %d of %ld processors are open to this program\n", CPU_COUNT(&set), processors);
    else
        printf("  %ld processors\n", processors);
    size_t available = memory_available();
    if (available)
        printf("  %s of memory available\n", memory_words(available, words));
}

static void print_device(void *context, const char *name, bool usable, const char *reason,
                         const struct device_info *info) {
    (void)context;
    printf("  %-8s ", name);
    if (!usable) {
        printf("not usable: %s\n", reason);
        return;
    }
    printf("%s", info->description);
    if (*info->isa)
        printf(", %s", info->isa);
    if (info->threads)
        printf(", %d thread%s", info->threads, info->threads == 1 ? "" : "s");
    char words[32];
    if (info->memory_bytes > 0)
        printf(", %s", memory_words((size_t)info->memory_bytes, words));
    printf("\n");
}

/* ---- libraries: the files that are really loaded, with the version in their full name */

static const struct {
    const char *name, *file;
    bool of_a_gpu; /* not spoken of where it isn't loaded */
} libraries[] = {{"oneDNN", "libdnnl.so", false},
                 {"ncurses", "libncursesw.so", false},
                 {"jansson", "libjansson.so", false},
                 {"inih", "libinih.so", false},
                 {"zlib", "libz.so", false},
                 {"OpenMP", "libgomp.so", false},
                 {"C", "libc.so", false},
                 {"CUDA", "libcudart.so", true},
                 {"driver", "libcuda.so", true},
                 {"cuBLAS", "libcublas.so", true},
                 {"cuDNN", "libcudnn.so", true},
                 {"NCCL", "libnccl.so", true}};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

static int find_library(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    char(*paths)[PATH_MAX] = context;
    const char *slash = strrchr(info->dlpi_name, '/');
    for (int i = 0; slash && i < LIBRARIES; i++)
        if (!strncmp(slash + 1, libraries[i].file, strlen(libraries[i].file)) &&
            !realpath(info->dlpi_name, paths[i]))
            snprintf(paths[i], PATH_MAX, "%s", info->dlpi_name);
    return 0;
}

static void print_libraries(void) {
    static char paths[LIBRARIES][PATH_MAX];
    dl_iterate_phdr(find_library, paths);
    printf("\nlibraries\n");
    for (int i = 0; i < LIBRARIES; i++)
        if (*paths[i] || !libraries[i].of_a_gpu)
            printf("  %-8s %s\n", libraries[i].name, *paths[i] ? paths[i] : "not loaded");
}

/* ---- terminal and data */

static void print_terminal(void) {
    struct winsize size;
    const char *name = getenv("TERM");
    printf("\nterminal\n");
    if (term_check() != STATUS_OK)
        printf("  %s\n", status_text());
    if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
        printf("  %d columns, %d rows\n", size.ws_col, size.ws_row);
    int colours = term_known_colours();
    const char *none = getenv("NO_COLOR");
    if (colours < 0)
        printf("  TERM=%s is not known here\n", name ? name : "");
    else
        printf("  TERM=%s: %d colours%s\n", name, colours,
               none && *none ? ", not used: NO_COLOR is set" : "");
    setlocale(LC_CTYPE, "");
    bool utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    printf("  the locale's characters are %s%s\n", nl_langinfo(CODESET),
           utf8 ? "" : ": frames are drawn in ASCII");
}

static void print_data(void *context, const char *name, bool found, const char *where) {
    (void)context;
    printf("  %-14s %s%s\n", name, found ? "" : "not found: ", where);
}

/* ---- --plan */

struct plan_options {
    struct settings settings;
    bool plan, help;
};

static void print_groups(const struct model *model, const struct net *net) {
    const struct net_group *groups;
    int count = net_groups(net, &groups);
    char saved[32], scratch[32];
    printf("  %-28s %-34s %10s %10s %10s\n", "group", "computed by", "MFLOP/img", "saved", "scratch");
    double flops = 0;
    for (int i = 0; i < count; i++) {
        const struct plan_info *info = groups[i].info;
        flops += groups[i].flops;
        printf("  %-28s %-34s %10.3f %10s %10s\n", groups[i].name, info->implementation,
               groups[i].flops / 1e6, memory_words(info->saved_bytes, saved),
               memory_words(info->scratch_bytes, scratch));
    }
    printf("  forward %.3f MFLOP an image (padding counted), %lld parameters\n", flops / 1e6,
           (long long)model->parameter_total);
}

static enum status print_net(const struct model *model, struct device_handle device,
                             struct net_options options) {
    bool training = options.training;
    struct net *net;
    STATUS_TRY(net_plan(model, device, &options, &net));
    struct net_sizes sizes = net_sizes(net);
    char arena[32], gradient[32], scratch[32], prepared[32];
    if (training)
        print_groups(model, net);
    printf("  %s, %d images", training ? "tower" : "evaluation", options.images);
    if (net_lanes(net) > 1)
        printf(" in %d lanes%s", net_lanes(net), training ? " (saved and scratch: of one)" : "");
    printf(": activations %s", memory_words(sizes.arena_bytes, arena));
    if (training)
        printf(", gradient %s", memory_words(sizes.gradient_bytes, gradient));
    printf("; each worker %s; derived from the parameters %s\n", memory_words(sizes.scratch_bytes, scratch),
           memory_words(sizes.prepared_bytes, prepared));
    net_free(net);
    return STATUS_OK;
}

static enum status print_model(const struct plan_options *o, struct session *s) {
    const struct settings *settings = &o->settings;
    STATUS_TRY(session_open_device(settings, &s->device));
    STATUS_TRY(session_open_data(settings, &s->data));
    struct model_ends ends = {s->data->train.shape.h, s->data->train.shape.w, s->data->train.shape.c,
                              s->data->classes};
    STATUS_TRY(model_read(settings->model, ends, NAN, &s->model));
    struct settings complete = *settings;
    settings_complete(&complete, &s->model->defaults);
    int64_t batch = settings_batch(&complete, complete.towers), first;
    int64_t images = order_shard(batch, (int)complete.towers, 0, &first);
    struct device_info info;
    STATUS_TRY(s->device.ops->describe(s->device.device, &info));
    printf("%s on %s, images of %s; %lld towers share %lld images\n", s->model->name, info.name,
           s->data->name, (long long)complete.towers, (long long)batch);
    struct net_options tower = {
        .images = (int)images, .lanes = net_lanes_for(s->device, (int)complete.towers), .training = true};
    STATUS_TRY(print_net(s->model, s->device, tower));
    return print_net(s->model, s->device, trainer_evaluation_net(s->device, s->data->test.count));
}

/* ---- */

static void write_help(FILE *to) {
    fprintf(to, "usage: towerscope doctor [--plan MODEL [--data NAME|PATH] [--devices NAME]\n"
                "                          [--towers N] [--batch N] [--threads N] [--isa NAME]]\n\n"
                "Lists devices, libraries, terminal and data sets. With --plan: which kernel computes which "
                "layers of a\n"
                "model, what that costs, and the memory of a tower.\n");
}

static enum status read_options(int argc, char **argv, struct plan_options *out) {
    static const char *const allowed[] = {"plan",    "data", "devices", "towers", "batch", "batch-per-tower",
                                          "threads", "isa",  "help"};
    enum { ALLOWED = sizeof allowed / sizeof *allowed };
    settings_clear(&out->settings);
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
            out->help = true;
            continue;
        }
        char name[64];
        const char *value = strchr(word, '=');
        snprintf(name, sizeof name, "%.*s", value ? (int)(value - word) : (int)sizeof name, word);
        int which = 0;
        while (which < ALLOWED && (strncmp(name, "--", 2) != 0 || strcmp(name + 2, allowed[which]) != 0))
            which++;
        if (which == ALLOWED)
            return strncmp(name, "--", 2) != 0
                       ? status_fail(STATUS_BAD_INPUT, "doctor takes no \"%s\"; towerscope doctor --help",
                                     word)
                       : options_unknown("doctor: ", name + 2, allowed, ALLOWED);
        if (!value && ++i == argc)
            return status_fail(STATUS_BAD_INPUT, "%s needs a value", word);
        bool plan = which == 0;
        out->plan |= plan;
        STATUS_TRY(
            settings_set(&out->settings, name, plan ? "model" : allowed[which], value ? value + 1 : argv[i]));
    }
    if (out->settings.given && !out->plan)
        return status_fail(STATUS_BAD_INPUT,
                           "doctor: these options say what --plan MODEL is to plan; it is not given");
    return settings_check(&out->settings, "the command line");
}

int command_doctor(int argc, char **argv) {
    struct plan_options options = {0};
    if (read_options(argc, argv, &options) != STATUS_OK) {
        cli_fail(STATUS_BAD_INPUT);
        return EXIT_USAGE;
    }
    if (options.help) {
        return help_print(write_help);
    }
    if (options.plan) {
        struct session session = {0};
        enum status status = print_model(&options, &session);
        session_close(&session);
        return status == STATUS_OK ? EXIT_DONE : cli_fail(status);
    }
    print_machine();
    printf("\ndevices\n");
    device_visit(print_device, NULL);
    print_libraries();
    print_terminal();
    printf("\ndata sets\n");
    dataset_visit(print_data, NULL);
    return EXIT_DONE;
}
