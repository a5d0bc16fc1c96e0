/* The plugin on simulated GPUs, for tests: device_open("sim:0") knows it after sim_begin(). */
#ifndef TOWERSCOPE_TESTS_CUDASIM_SIM_H
#define TOWERSCOPE_TESTS_CUDASIM_SIM_H

#include "tests/cudasim/control.h"

#include <stdbool.h>

/* The address sanitizer looks at every value of every thread of a kernel: with it, less is tried. */
#if defined(__SANITIZE_ADDRESS__)
enum { SIM_THOROUGH = 0 };
#else
enum { SIM_THOROUGH = 1 };
#endif

/* Load it from $BUILD/sim. False: this build has none (no toolkit, no C++ compiler). */
bool sim_begin(void);

/* The plugin's own functions of control.h. */
void sim_set(struct cudasim_settings settings);
int sim_waits(void);
long sim_pieces(void);
long sim_graphs(void);
long sim_spoiled(void);
long sim_odd_engines(void);
bool sim_clean(void);

/* Nothing fails: that many GPUs, in an order by the seed. */
struct cudasim_settings sim_healthy(int gpus, unsigned seed);

/* "sim:0,sim:1" of that many; valid until the next call. */
const char *sim_names(int gpus);

#endif
