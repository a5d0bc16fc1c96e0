/* towerscope bench: images per second by threads and towers, phases of a step, layers against the processor's
 * peak, and PyTorch beside it. Everything is measured in rounds, each thing once a round, so that what
 * disturbs the machine disturbs all alike; what is printed are medians, and for comparisons the median of the
 * rounds' ratios. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench_layers.h"
#include "cli/bench_folder.h"
#include "cli/bench_overhead.h"
#include "cli/bench_torch.h"
#include "cli/cli.h"
#include "engine/base/clock.h"
#include "kernels/cpu/isa/peak.h"
#include "kernels/cpu/team.h"
#include "kernels/registry.h"

#define MODEL "cifar10"

enum { MAX_LIST = 8, MAX_ROUNDS = 50, MAX_RUNNERS = 3 * MAX_LIST * MAX_LIST, MAX_LAYERS = 32 };

static const char help[] =
    "usage: towerscope bench [options]\n\n"
    "Measures training of " MODEL
    " on this processor: images per second by threads and towers, the phases of a\n"
    "step, each layer against the peak of multiplying and adding, and PyTorch where it is installed.\n\n"
    "  --rounds N       of each measurement (default 5)\n"
    "  --seconds X      that one takes (default 0.6)\n"
    "  --batch N        images of a step (default 128)\n"
    "  --threads LIST   as 1,2 (default: 1 and all)\n"
    "  --towers LIST    (default 1,2,4,8)\n"
    "  --isa NAME       avx512, avx2 or plain (default: the best there is)\n"
    "  --python NAME    that has PyTorch (default /usr/bin/python3)\n"
    "  --torch SCRIPT   what it runs (default tests/bench/torch_step.py); \"\": nothing\n";

struct list {
    int count, values[MAX_LIST];
};

struct bench_options {
    int rounds, batch;
    double seconds;
    struct list threads, towers;
    const char *isa, *python, *torch;
};

enum runner_kind { RUN_STEP, RUN_LOADER, RUN_TORCH };

/* Something that is measured once a round. A loader's runner follows that of the bare step of the same
 * threads and towers: those two take turns. */
struct runner {
    enum runner_kind kind;
    int threads, towers;
    enum bench_torch_setting setting;
    struct bench_step *step;
    struct bench_loader *loader;
    struct bench_overhead overhead; /* of a loader's runner, beyond the step's before it */
    struct bench_torch torch;
    double rates[MAX_ROUNDS];
};

struct bench {
    struct bench_options options;
    struct bench_folder folder;
    struct model *model;
    struct device_handle devices[MAX_LIST]; /* one for each number of threads */
    enum cpu_isa isa;
    double disturbance; /* processors that others used while the rounds ran */
    int count;
    struct runner runners[MAX_RUNNERS];
};

/* ---- options */

static bool read_int(const char *text, int low, int high, int *out) {
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < low || value > high)
        return false;
    *out = (int)value;
    return true;
}

static bool read_list(const char *text, struct list *out) {
    char copy[128];
    if ((size_t)snprintf(copy, sizeof copy, "%s", text) >= sizeof copy)
        return false;
    out->count = 0;
    char *rest;
    for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        if (out->count == MAX_LIST || !read_int(word, 1, 1024, &out->values[out->count++]))
            return false;
    return out->count > 0;
}

static bool read_seconds(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && *out >= 0 && *out <= 600;
}

/* -1: go on; else the exit code. */
static int read_options(int argc, char **argv, struct bench_options *o) {
    static const struct option names[] = {
        {"rounds", required_argument, NULL, 'r'}, {"seconds", required_argument, NULL, 's'},
        {"batch", required_argument, NULL, 'b'},  {"threads", required_argument, NULL, 't'},
        {"towers", required_argument, NULL, 'w'}, {"isa", required_argument, NULL, 'i'},
        {"python", required_argument, NULL, 'p'}, {"torch", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    *o = (struct bench_options){.rounds = 5,
                                .batch = 128,
                                .seconds = 0.6,
                                .towers = {4, {1, 2, 4, 8}},
                                .python = "/usr/bin/python3",
                                .torch = "tests/bench/torch_step.py"};
    int option, index = 0;
    bool right = true;
    while (right && (option = getopt_long(argc, argv, "h", names, &index)) != -1)
        switch (option) {
        case 'r':
            right = read_int(optarg, 1, MAX_ROUNDS, &o->rounds);
            break;
        case 's':
            right = read_seconds(optarg, &o->seconds);
            break;
        case 'b':
            right = read_int(optarg, 1, 1 << 16, &o->batch);
            break;
        case 't':
            right = read_list(optarg, &o->threads);
            break;
        case 'w':
            right = read_list(optarg, &o->towers);
            break;
        case 'i':
            o->isa = optarg;
            break;
        case 'p':
            o->python = optarg;
            break;
        case 'o':
            o->torch = optarg;
            break;
        case 'h':
            fputs(help, stdout);
            return EXIT_DONE;
        default:
            fputs("towerscope bench --help lists the options\n", stderr);
            return EXIT_USAGE;
        }
    if (right && optind == argc)
        return -1;
    if (!right)
        fprintf(stderr, "towerscope: --%s: \"%s\" is not possible; towerscope bench --help says what is\n",
                names[index].name, optarg);
    else
        fprintf(stderr, "towerscope: bench takes no \"%s\"\n", argv[optind]);
    return EXIT_USAGE;
}

/* ---- opening */

static enum status add_runner(struct bench *b, enum runner_kind kind, int device, int towers,
                              enum bench_torch_setting setting) {
    const struct bench_options *o = &b->options;
    if (b->count == MAX_RUNNERS)
        return STATUS_OK;
    struct runner *r = &b->runners[b->count];
    *r = (struct runner){
        .kind = kind, .threads = o->threads.values[device], .towers = towers, .setting = setting};
    enum status status =
        kind == RUN_STEP ? bench_step_open(b->model, b->devices[device], towers, o->batch, &r->step)
        : kind == RUN_LOADER
            ? bench_loader_open(MODEL, b->devices[device], towers, o->batch, b->folder.path, &r->loader)
            : bench_torch_open(o->python, o->torch, setting, r->threads, o->batch, o->isa, &r->torch);
    b->count += status == STATUS_OK;
    return status;
}

static enum status open_devices(struct bench *b) {
    struct list *threads = &b->options.threads;
    if (threads->count == 0) {
        struct device_handle all;
        struct device_info info;
        STATUS_TRY(device_open("cpu", 0, b->options.isa, &all));
        enum status status = all.ops->describe(all.device, &info);
        device_close(&all);
        STATUS_TRY(status);
        *threads = (struct list){info.threads > 1 ? 2 : 1, {1, info.threads}};
    }
    for (int i = 0; i < threads->count; i++)
        STATUS_TRY(device_open("cpu", threads->values[i], b->options.isa, &b->devices[i]));
    STATUS_TRY(isa_choose(b->options.isa, &b->isa));
    struct model_ends ends = {32, 32, 3, 10};
    return model_read(MODEL, ends, strtod("nan", NULL), &b->model);
}

static enum status open_runners(struct bench *b) {
    const struct bench_options *o = &b->options;
    for (int i = 0; i < o->threads.count; i++) {
        for (int k = 0; k < o->towers.count; k++) {
            STATUS_TRY(add_runner(b, RUN_STEP, i, o->towers.values[k], 0));
            STATUS_TRY(add_runner(b, RUN_LOADER, i, o->towers.values[k], 0));
        }
    }
    for (int i = 0; *o->torch && i < o->threads.count; i++)
        for (int setting = 0; setting < TORCH_SETTINGS; setting++)
            if (add_runner(b, RUN_TORCH, i, 1, (enum bench_torch_setting)setting) != STATUS_OK) {
                printf("no PyTorch beside it: %s\n", status_text());
                return STATUS_OK;
            }
    return STATUS_OK;
}

static void close_all(struct bench *b) {
    for (int i = 0; i < b->count; i++) {
        bench_step_close(b->runners[i].step);
        bench_loader_close(b->runners[i].loader);
        bench_torch_close(&b->runners[i].torch);
    }
    model_free(b->model);
    for (int i = 0; i < MAX_LIST; i++)
        device_close(&b->devices[i]);
    bench_folder_remove(&b->folder);
}

/* ---- measuring */

/* Measure a runner, and the one after it where the two take turns: *count of them. */
static enum status run_once(struct bench *b, struct runner *r, double seconds, double *rates, int *count) {
    bool paired = r->kind == RUN_STEP && r + 1 < b->runners + b->count && r[1].kind == RUN_LOADER;
    *count = paired ? 2 : 1;
    if (paired)
        return bench_overhead_run(&r[1].overhead, r->step, r[1].loader, seconds, rates);
    return bench_torch_run(&r->torch, seconds, rates);
}

/* Seconds of processor time: of the whole machine since it started, and of one process (0: this one). */
static double machine_seconds(void) {
    FILE *file = fopen("/proc/stat", "r");
    long long user, nice, system, idle, waiting, interrupts, soft;
    int found = file ? fscanf(file, "cpu %lld %lld %lld %lld %lld %lld %lld", &user, &nice, &system, &idle,
                              &waiting, &interrupts, &soft)
                     : 0;
    if (file)
        fclose(file);
    return found == 7 ? (double)(user + nice + system + interrupts + soft) / (double)sysconf(_SC_CLK_TCK) : 0;
}

static double process_seconds(pid_t process) {
    char path[64];
    snprintf(path, sizeof path, process ? "/proc/%d/stat" : "/proc/self/stat", (int)process);
    FILE *file = fopen(path, "r");
    long long user, system;
    int found = file ? fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld",
                              &user, &system)
                     : 0;
    if (file)
        fclose(file);
    return found == 2 ? (double)(user + system) / (double)sysconf(_SC_CLK_TCK) : 0;
}

/* Processor time that others have taken since the machine started. */
static double others_seconds(const struct bench *b) {
    double seconds = machine_seconds() - process_seconds(0);
    for (int i = 0; i < b->count; i++)
        if (b->runners[i].kind == RUN_TORCH)
            seconds -= process_seconds(b->runners[i].torch.process);
    return seconds;
}

static enum status run_round(struct bench *b, int round, double seconds) {
    int count;
    for (int i = 0; i < b->count; i += count) {
        double rates[2];
        STATUS_TRY(run_once(b, &b->runners[i], seconds, rates, &count));
        for (int k = 0; k < count; k++)
            b->runners[i + k].rates[round] = rates[k];
    }
    return STATUS_OK;
}

static enum status run_rounds(struct bench *b) {
    double phases[BENCH_PHASES];
    STATUS_TRY(run_round(b, 0, b->options.seconds / 6)); /* to get warm: what it measured is dropped */
    for (int i = 0; i < b->count; i++) {
        b->runners[i].overhead.count = 0;
        if (b->runners[i].step)
            bench_step_phases(b->runners[i].step, phases);
    }
    double start = clock_seconds(), others = others_seconds(b);
    for (int round = 0; round < b->options.rounds; round++)
        STATUS_TRY(run_round(b, round, b->options.seconds));
    b->disturbance = (others_seconds(b) - others) / (clock_seconds() - start);
    return STATUS_OK;
}

/* Median over the rounds of a's rate to b's. */
static double ratio(const struct runner *a, const struct runner *b, int rounds) {
    double ratios[MAX_ROUNDS];
    for (int i = 0; i < rounds; i++)
        ratios[i] = a->rates[i] / b->rates[i];
    return bench_spread(ratios, rounds).middle;
}

struct peak {
    const struct peak_kernels *kernels;
    double operations[1024];
};

static enum status peak_part(void *context, int part, int thread) {
    (void)thread;
    struct peak *peak = context;
    peak->operations[part] = peak->kernels->multiply_add(1000000);
    return STATUS_OK;
}

/* GFLOP/s of a number of threads, median of five. */
static enum status measure_peak(enum cpu_isa isa, int threads, double *out) {
    struct pool *pool;
    struct peak peak = {.kernels = ISA_PICK(isa, peak_kernels)};
    STATUS_TRY(pool_open(threads, &pool));
    double rates[5];
    enum status status = pool_run(pool, threads, peak_part, &peak); /* once for nothing */
    for (int i = 0; i < 5 && status == STATUS_OK; i++) {
        double start = clock_seconds(), operations = 0;
        status = pool_run(pool, threads, peak_part, &peak);
        double seconds = clock_seconds() - start;
        for (int part = 0; part < threads; part++)
            operations += peak.operations[part];
        rates[i] = operations / seconds * 1e-9;
    }
    pool_close(pool);
    *out = status == STATUS_OK ? bench_spread(rates, 5).middle : 0;
    return status;
}

/* ---- printing */

static enum status print_machine(const struct bench *b) {
    struct device_info info;
    STATUS_TRY(b->devices[0].ops->describe(b->devices[0].device, &info));
    printf("processor  %s, %s\npeak      ", info.description, info.isa);
    for (int i = 0; i < b->options.threads.count; i++) {
        double peak;
        STATUS_TRY(measure_peak(b->isa, b->options.threads.values[i], &peak));
        printf("%s %.0f GFLOP/s on %d thread%s", i ? "," : "", peak, b->options.threads.values[i],
               b->options.threads.values[i] == 1 ? "" : "s");
    }
    double flops = 0;
    for (int i = 0; i < b->model->op_count; i++)
        flops += op_flops(&b->model->ops[i]);
    printf("\nnetwork    %s, %.1f MFLOP an image forward, batch %d; medians of %d rounds of %.1f s\n\n",
           b->model->name, flops * 1e-6, b->options.batch, b->options.rounds, b->options.seconds);
    fflush(stdout);
    return STATUS_OK;
}

static const struct runner *find_torch(const struct bench *b, int threads, enum bench_torch_setting setting) {
    for (int i = 0; i < b->count; i++)
        if (b->runners[i].kind == RUN_TORCH && b->runners[i].threads == threads &&
            b->runners[i].setting == setting)
            return &b->runners[i];
    return NULL;
}

static void print_rate(const struct bench *b, const struct runner *r) {
    double sorted[MAX_ROUNDS];
    memcpy(sorted, r->rates, sizeof sorted);
    double middle = bench_spread(sorted, b->options.rounds).middle;
    printf("%7d %6d %9.0f  (%.0f-%.0f)%*s", r->threads, r->towers, middle, sorted[0],
           sorted[b->options.rounds - 1], 4, "");
    for (int setting = 0; setting < TORCH_SETTINGS; setting++) {
        const struct runner *torch = find_torch(b, r->threads, (enum bench_torch_setting)setting);
        if (torch && r->kind != RUN_TORCH)
            printf("%6.2f", ratio(r, torch, b->options.rounds));
    }
}

static const char *ratio_heads(const struct bench *b) {
    return find_torch(b, b->options.threads.values[0], TORCH_BEST) ? "  x S2  x S4" : "";
}

static void print_steps(struct bench *b) {
    printf("A step on a batch that stays the same; milliseconds of its phases\n"
           "threads towers  images/s  (least-most)  %s   prepare forward    loss backward average  update\n",
           ratio_heads(b));
    for (int i = 0; i < b->count; i++) {
        if (b->runners[i].kind != RUN_STEP)
            continue;
        double phases[BENCH_PHASES];
        print_rate(b, &b->runners[i]);
        bench_step_phases(b->runners[i].step, phases);
        for (int phase = 0; phase < BENCH_PHASES; phase++)
            printf(" %8.2f", phases[phase] * 1e3);
        printf("\n");
    }
}

static void print_spread(double *values, int count) {
    struct bench_spread spread = bench_spread(values, count);
    char quartiles[32];
    snprintf(quartiles, sizeof quartiles, "(%+.1f to %+.1f)", 100 * spread.low, 100 * spread.high);
    printf("  %+5.1f %% %-16s", 100 * spread.middle, quartiles);
}

static void print_loaders(struct bench *b) {
    printf("\nA run: generated images, every distortion, each step recorded; what it takes longer than the "
           "bare step,\n"
           "median and quartiles over its turns, each beside one of the bare step\n"
           "threads towers  images/s  (least-most)  %s  time                      processor time\n",
           ratio_heads(b));
    for (int i = 0; i < b->count; i++) {
        struct runner *r = &b->runners[i];
        if (r->kind != RUN_LOADER)
            continue;
        print_rate(b, r);
        print_spread(r->overhead.time, r->overhead.count);
        print_spread(r->overhead.processor, r->overhead.count);
        printf("\n");
    }
}

static void print_torch(const struct bench *b) {
    bool head = false;
    for (int i = 0; i < b->count; i++) {
        const struct runner *r = &b->runners[i];
        if (r->kind != RUN_TORCH)
            continue;
        if (!head)
            printf("\nPyTorch %s on the same step\nthreads         images/s  (least-most)\n",
                   r->torch.version);
        head = true;
        print_rate(b, r);
        printf("  %s, %s\n", bench_torch_name(r->setting),
               r->setting == TORCH_BEST ? "channels last, LRN as banded convolution"
                                        : "channels first, torch's LRN");
    }
}

static enum status print_layers(const struct bench *b) {
    struct bench_layer layers[MAX_LAYERS];
    int count;
    double peak;
    STATUS_TRY(measure_peak(b->isa, b->options.threads.values[0], &peak));
    STATUS_TRY(bench_layers(b->model, b->devices[0], b->options.batch, layers, MAX_LAYERS, &count));
    printf("\nLayers, %d images, %d thread%s: milliseconds, GFLOP/s (padding counted), share of the peak\n"
           "%-28s %-26s %-22s %s\n",
           b->options.batch, b->options.threads.values[0], b->options.threads.values[0] == 1 ? "" : "s",
           "layer", "computed by", "forward", "backward");
    for (int i = 0; i < count; i++) {
        const struct bench_layer *l = &layers[i];
        double forward = l->flops / l->forward * 1e-9;
        double backward = l->flops * (l->input_gradient ? 2 : 1) / l->backward * 1e-9;
        printf("%-28s %-26s %6.2f %6.0f %4.0f %%   %6.2f %6.0f %4.0f %%\n", l->name, l->implementation,
               l->forward * 1e3, forward, 100 * forward / peak, l->backward * 1e3, backward,
               100 * backward / peak);
    }
    return STATUS_OK;
}

static enum status measure(struct bench *b) {
    STATUS_TRY(bench_folder_make(&b->folder));
    STATUS_TRY(open_devices(b));
    STATUS_TRY(print_machine(b));
    STATUS_TRY(open_runners(b));
    STATUS_TRY(run_rounds(b));
    if (b->disturbance > 0.06)
        printf("Other programs used %.0f %% of a processor meanwhile: these numbers say little.\n\n",
               100 * b->disturbance);
    print_steps(b);
    print_loaders(b);
    print_torch(b);
    return print_layers(b);
}

int command_bench(int argc, char **argv) {
    struct bench *b = calloc(1, sizeof *b);
    if (!b)
        return cli_fail(status_fail(STATUS_NO_MEMORY, "no memory for a benchmark"));
    int code = read_options(argc, argv, &b->options);
    if (code < 0) {
        enum status status = measure(b);
        code = status == STATUS_OK ? EXIT_DONE : cli_fail(status);
        close_all(b);
    }
    free(b);
    return code;
}
