/* Images per second of a model's training step on one device: throughput DEVICE MODEL SECONDS [KEPT]. It is
 * asked line by line, "PRECISION BATCH TOWERS", and answers each by the same with the rate behind it, or by
 * "# " and why not: so check.sh can take turns with PyTorch (torch_rate.py is asked the same way). The batch
 * stays the same, so that no loader is measured. KEPT: device_options.kept. */
#include "cli/bench_step.h"
#include "kernels/registry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static enum status measure(const struct model *model, const char *device,
                           const struct device_options *options, int batch, int towers, double seconds,
                           double *rate) {
    struct device_handle handle;
    struct bench_step *step = NULL;
    double warm;
    STATUS_TRY(device_open_with(device, options, &handle));
    enum status status = bench_step_open(model, handle, towers, batch, &step);
    if (status == STATUS_OK)
        status = bench_step_run(step, seconds / 4, &warm);
    if (status == STATUS_OK)
        status = bench_step_run(step, seconds, rate);
    if (status == STATUS_OK && !isfinite(bench_step_loss(step)))
        status = status_fail(STATUS_NON_FINITE, "the loss is not finite");
    bench_step_close(step);
    device_close(&handle);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: throughput DEVICE MODEL SECONDS [KEPT]\n");
        return 2;
    }
    struct model *model;
    char line[128], precision[16];
    int failed = 0, batch, towers;
    if (model_read(argv[2], (struct model_ends){32, 32, 3, 10}, NAN, &model) != STATUS_OK) {
        fprintf(stderr, "%s\n", status_text());
        return 1;
    }
    while (fgets(line, sizeof line, stdin)) {
        double rate = 0;
        const struct device_options options = {.precision = precision, .kept = argv[4]};
        enum status status =
            sscanf(line, "%15s %d %d", precision, &batch, &towers) == 3 && batch > 0 && towers > 0
                ? measure(model, argv[1], &options, batch, towers, atof(argv[3]), &rate)
                : status_fail(STATUS_BAD_INPUT, "not a PRECISION, a BATCH and a number of TOWERS");
        if (status == STATUS_OK)
            printf("%s %d %d %.0f\n", precision, batch, towers, rate);
        else
            printf("# %s\n", status_text());
        failed |= status != STATUS_OK;
        fflush(stdout);
    }
    model_free(model);
    return failed;
}
