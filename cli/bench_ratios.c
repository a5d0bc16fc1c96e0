#include "cli/bench_ratios.h"

#include "cli/bench_peak.h"

static void add(struct bench_ratios *r, const struct bench_runner *over, const struct bench_runner *under) {
    if (over != under && r->count < BENCH_RATIOS)
        r->ratio[r->count++] = (struct bench_ratio){.over = over, .under = under};
}

/* The number of towers that others are compared with: the most of those that give none less than a thread. */
static int usual_towers(const struct bench_list *towers, int threads) {
    int usual = 0, least = towers->values[0];
    for (int i = 0; i < towers->count; i++) {
        int value = towers->values[i];
        least = value < least ? value : least;
        if (value <= threads && value > usual)
            usual = value;
    }
    return usual ? usual : least;
}

void bench_ratios_open(const struct bench_runners *runners, struct bench_ratios *r) {
    const struct bench_list *threads = &runners->threads, *towers = &runners->options->towers;
    *r = (struct bench_ratios){.runners = runners, .kernels = ISA_PICK(runners->isa, peak_kernels)};
    r->pairs = runners->options->seconds > 0 ? BENCH_TURNS * runners->options->rounds : 1;
    for (int k = 0; k < towers->count; k++)
        for (int i = 1; i < threads->count; i++)
            add(r, bench_find_step(runners, threads->values[i], towers->values[k]),
                bench_find_step(runners, threads->values[0], towers->values[k]));
    r->threads = r->count;
    int all = threads->values[threads->count - 1], usual = usual_towers(towers, all);
    for (int k = 0; k < towers->count; k++) {
        bool more = towers->values[k] > usual;
        add(r, bench_find_step(runners, all, more ? towers->values[k] : usual),
            bench_find_step(runners, all, more ? usual : towers->values[k]));
    }
}

/* Of the step, and of the peak. */
static double turn_seconds(const struct bench_ratios *r) {
    return r->runners->options->seconds / 6;
}

static double peak_seconds(const struct bench_ratios *r) {
    return r->runners->options->seconds / 30;
}

/* The first step finds in the caches what others have left there: it does not count. */
static enum status step_turn(const struct bench_ratios *r, const struct bench_runner *runner, double *rate) {
    STATUS_TRY(bench_step_run(runner->step, 0, rate));
    return bench_step_run(runner->step, turn_seconds(r), rate);
}

/* Every number of threads once, forwards and backwards by turns, with a number of towers. */
static enum status threads_turn(struct bench_ratios *r, int towers, int pair) {
    const struct bench_list *threads = &r->runners->threads;
    double rates[BENCH_LIST];
    for (int k = 0; k < threads->count; k++) {
        int i = pair % 2 ? threads->count - 1 - k : k;
        const struct bench_runner *step = bench_find_step(r->runners, threads->values[i], towers);
        STATUS_TRY(bench_peak_run(r->kernels, r->runners->devices[i], peak_seconds(r), &r->peak[i][pair]));
        if (threads->count > 1)
            STATUS_TRY(step_turn(r, step, &rates[i]));
    }
    for (int n = 0; n < r->threads; n++) {
        struct bench_ratio *ratio = &r->ratio[n];
        for (int i = 1; i < threads->count && ratio->over->towers == towers; i++)
            if (threads->values[i] == ratio->over->threads) {
                ratio->ratio[pair] = rates[i] / rates[0];
                ratio->peak[pair] = r->peak[i][pair] / r->peak[0][pair];
            }
    }
    return STATUS_OK;
}

static enum status towers_turn(struct bench_ratios *r, struct bench_ratio *ratio, int pair) {
    double rates[2];
    for (int k = 0; k < 2; k++) {
        int which = pair % 2 ? 1 - k : k;
        STATUS_TRY(step_turn(r, which ? ratio->under : ratio->over, &rates[which]));
    }
    ratio->ratio[pair] = rates[0] / rates[1];
    return STATUS_OK;
}

static double threads_planned(const struct bench_ratios *r) {
    const struct bench_list *threads = &r->runners->threads;
    return threads->count * (peak_seconds(r) + (threads->count > 1 ? turn_seconds(r) : 0));
}

double bench_ratios_planned(const struct bench_ratios *r) {
    return r->pairs * (r->runners->options->towers.count * threads_planned(r) +
                       (r->count - r->threads) * 2 * turn_seconds(r));
}

enum status bench_ratios_run(struct bench_ratios *r, struct bench_progress *progress) {
    const struct bench_list *towers = &r->runners->options->towers;
    const char *words = "threads and towers against fewer, in turns";
    for (int pair = 0; pair < r->pairs; pair++) {
        for (int k = 0; k < towers->count; k++) {
            STATUS_TRY(threads_turn(r, towers->values[k], pair));
            STATUS_TRY(bench_progress_tell(progress, threads_planned(r), words));
        }
        for (int i = r->threads; i < r->count; i++) {
            STATUS_TRY(towers_turn(r, &r->ratio[i], pair));
            STATUS_TRY(bench_progress_tell(progress, 2 * turn_seconds(r), words));
        }
    }
    return STATUS_OK;
}
