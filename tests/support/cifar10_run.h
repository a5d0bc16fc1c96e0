/* The tutorial's network on a small generated set, and its training compared over numbers of towers. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_CIFAR10_RUN_H
#define TOWERSCOPE_TESTS_SUPPORT_CIFAR10_RUN_H

#include "tests/support/train_run.h"

/* 420 colour images of ten classes; close with dataset_close. */
struct dataset *open_generated(void);

/* A run of "cifar10" or "cifar10-2017" on it, batches of 84; lr as a word, "lr=0.1". */
struct train_run *open_cifar10(const struct dataset *data, const char *model, int towers, const char *lr);

/* The losses of that many steps with 2, 3, 4 and 7 towers, each within 1e-5 of the one with one tower. */
void compare_cifar10(const char *lr, int steps);

#endif
