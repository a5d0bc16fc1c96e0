/* One net on one device with all memory it wants, for tests. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_NET_RUN_H
#define TOWERSCOPE_TESTS_SUPPORT_NET_RUN_H

#include "engine/model/net.h"
#include "kernels/registry.h"

struct net_run {
    struct device_handle device;
    const struct model *model;
    struct net *net;
    struct net_memory memory;
    struct span parameters, prepared, scratch;
    size_t element; /* bytes of the device's real */
    int images;
};

/* Plan and allocate; memory of the arena and scratch is filled with bytes 0xFF (NaN). The device must be one
 * of host memory. Fails the test on any error. */
void net_run_open(struct net_run *run, struct device_handle device, const struct model *model, int images,
                  bool training);
/* The same with all that can be chosen. */
void net_run_open_with(struct net_run *run, struct device_handle device, const struct model *model,
                       const struct net_options *options);
void net_run_close(struct net_run *run);

/* Fill all that a step may not rely on with 0xFF again. */
void net_run_poison(struct net_run *run);

/* What the run's passes read: its parameters, what was prepared of them, its scratch; no labels. */
struct net_operands net_run_operands(const struct net_run *run);

/* Write the pixels into the net's input. */
void net_run_fill(struct net_run *run, const double *pixels);

/* Prepare, forward, loss and (training) backward, each in a pass of its own. parameters: flat,
 * model->flat_count; pixels: [images] of the input's shape; labels [images]. */
void net_run_step(struct net_run *run, const double *parameters, const double *pixels, const int32_t *labels);

/* A span's values, whatever the device's real is. */
double net_run_value(const struct net_run *run, struct span span, size_t i);

/* Mean of the losses of the last step. */
double net_run_mean_loss(const struct net_run *run);

/* Standard normal pixels and random labels, the same for the same seed; to free(). */
double *net_run_pixels(const struct model *model, int images, uint64_t seed);
int32_t *net_run_labels(const struct model *model, int images, uint64_t seed);

/* model_initialise in double; to free(). */
double *net_run_parameters(const struct model *model, uint64_t seed);

/* A model with every kind of layer, each order of pool and norm and two strides, small enough for plain C in
 * double (images of 12x12x2, 5 classes); and the tutorial's. To model_free(). */
struct model *net_run_small(void);
struct model *net_run_cifar10(void);

/* Open a device; fails the test when that fails. To device_close(). */
void net_run_device(const char *name, int threads, struct device_handle *device);

/* For device_ops.each(), with a net_run: those parts of a step alone. */
enum status net_run_prepare(void *run, int item, int worker, struct stream *stream);
enum status net_run_forward(void *run, int item, int worker, struct stream *stream);

#endif
