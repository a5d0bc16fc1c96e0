/* Run a test on every device that is usable here. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_DEVICES_H
#define TOWERSCOPE_TESTS_SUPPORT_DEVICES_H

#include "kernels/device.h"

/* Opens each usable device in turn with three threads, prints its name, and calls the test. */
void for_each_device(void (*test)(struct device_handle device));

#endif
