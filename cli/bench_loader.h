/* A real training run for towerscope bench: pictures, metrics, events and their record included. */
#ifndef TOWERSCOPE_CLI_BENCH_LOADER_H
#define TOWERSCOPE_CLI_BENCH_LOADER_H

#include "engine/model/model.h"

struct bench_loader;

/* Trains `model_name` on the generated images with every distortion. Each step is recorded, in a run folder
 * that is made in `folder`. */
enum status bench_loader_open(const char *model_name, struct device_handle device, int towers, int batch,
                              const char *folder, struct bench_loader **out);
void bench_loader_close(struct bench_loader *bench); /* NULL is fine */
enum status bench_loader_run(struct bench_loader *bench, double seconds, double *rate);

#endif
