/* Images per second of cifar10's training step on one device: throughput DEVICE SECONDS. Prints lines
 * "PRECISION BATCH TOWERS RATE", as torch_rate.py does; the batch stays the same, so that no loader is
 * measured. */
#include "cli/bench_step.h"
#include "kernels/registry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int batches[] = {128, 1024, 8192}, towers[] = {1, 2, 4};
static const char *const precisions[] = {"f32", "tf32", "bf16"};

static enum status measure(const struct model *model, const char *device, const char *precision, int batch,
                           int count, double seconds) {
    struct device_handle handle;
    struct bench_step *step = NULL;
    double warm, rate = 0;
    STATUS_TRY(device_open_with(device, &(struct device_options){.precision = precision}, &handle));
    enum status status = bench_step_open(model, handle, count, batch, &step);
    if (status == STATUS_OK)
        status = bench_step_run(step, seconds / 4, &warm);
    if (status == STATUS_OK)
        status = bench_step_run(step, seconds, &rate);
    if (status == STATUS_OK && !isfinite(bench_step_loss(step)))
        status = status_fail(STATUS_NON_FINITE, "the loss is not finite");
    if (status == STATUS_OK)
        printf("%s %d %d %.0f\n", precision, batch, count, rate);
    fflush(stdout);
    bench_step_close(step);
    device_close(&handle);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: throughput DEVICE SECONDS\n");
        return 2;
    }
    struct model *model;
    int failed = 0;
    if (model_read("cifar10", (struct model_ends){32, 32, 3, 10}, NAN, &model) != STATUS_OK) {
        fprintf(stderr, "%s\n", status_text());
        return 1;
    }
    for (int p = 0; p < 3; p++)
        for (int b = 0; b < 3; b++)
            for (int t = 0; t < 3; t++)
                if (measure(model, argv[1], precisions[p], batches[b], towers[t], atof(argv[2])) !=
                    STATUS_OK) {
                    printf("# %s, batch %d, %d towers: %s\n", precisions[p], batches[b], towers[t],
                           status_text());
                    failed = 1;
                }
    model_free(model);
    return failed;
}
