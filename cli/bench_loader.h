/* A real training run for towerscope bench: pictures, metrics, events and their record included. */
#ifndef TOWERSCOPE_CLI_BENCH_LOADER_H
#define TOWERSCOPE_CLI_BENCH_LOADER_H

#include "engine/model/model.h"

struct bench_loader;

/* What a step that is recorded takes beside the network's own work. */
enum bench_part {
    BENCH_PICTURES, /* images found, distorted and standardised, by all workers */
    BENCH_EVENTS,   /* all that the step's thread does between two steps: events made and queued, commands
                       looked for, the last good state kept */
    BENCH_RECORD,   /* processor time of the thread that writes the record: taken from the workers when they
                       have all processors, and the others then wait for the one that was stopped */
    BENCH_COSINES,  /* how much longer the average takes when they are wanted */
    BENCH_PARTS
};

/* Of some recorded steps: seconds from one's beginning to the next one's, and of each part in them. */
struct bench_rest {
    int steps;
    double seconds, part[BENCH_PARTS];
};

/* Trains `model_name` on the generated images with every distortion. Every second step is recorded, in a run
 * folder that is made in `folder`. */
enum status bench_loader_open(const char *model_name, struct device_handle device, int towers, int batch,
                              const char *folder, struct bench_loader **out);
void bench_loader_close(struct bench_loader *bench); /* NULL is fine */

/* Steps for at least `seconds`; images/s in *rate. The cosines, which a single turn can't tell, are left out
 * of *rest. */
enum status bench_loader_run(struct bench_loader *bench, double seconds, double *rate,
                             struct bench_rest *rest);

/* Seconds that its cosines take of a recorded step: the median of how much longer its average took than that
 * of the step before it. */
double bench_loader_cosines(const struct bench_loader *bench);

#endif
