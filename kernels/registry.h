/* Which devices there are, and why one that is not usable is not. */
#ifndef TOWERSCOPE_KERNELS_REGISTRY_H
#define TOWERSCOPE_KERNELS_REGISTRY_H

#include "kernels/device.h"

/* Open the device called `names`: "cpu", "ref", "ref64", "cuda:0" ("cuda" means cuda:0), or a group of
 * several of one kind, "cuda:0,cuda:1". A plugin's device that is named is tried even where there seems to be
 * no driver for it. Of `options` the indices are not read. STATUS_BAD_INPUT: no device has that name (the
 * known ones are listed in the text), one stands there twice, or they are of several kinds;
 * STATUS_UNSUPPORTED: it exists and can't be used here, and the text says why. Close with device_close(). */
enum status device_open_with(const char *names, const struct device_options *options,
                             struct device_handle *out);

/* The same with threads and isa, all else as by default. */
enum status device_open(const char *names, int threads, const char *isa, struct device_handle *out);

/* The name of the GPU at a place ("cuda:1"), or the device's own where there is one alone. */
void device_place_name(struct device_handle handle, int place, char *out, size_t size);

/* Close; a zeroed handle is fine. All buffers and plans of it must be freed before. */
void device_close(struct device_handle *handle);

/* Open the first device that works, best first (cuda when its plugin and driver are there, cpu, ref). */
enum status device_open_default(const struct device_options *options, struct device_handle *out);

/* Call `visit` for every device known to the program, usable or not: `reason` is "" when usable. Of a kind
 * that is numbered, for each that there is ("cuda:0", "cuda:1"), or for the kind ("cuda") when none can be
 * used. */
void device_visit(void (*visit)(void *context, const char *name, bool usable, const char *reason,
                                const struct device_info *info),
                  void *context);

#endif
