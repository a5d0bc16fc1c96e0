/* What of oneDNN concerns threads and the whole process. Debian's library splits its work with OpenMP; here
 * it is called by threads of our own, so each tells OpenMP that it may use one thread: a setting of the
 * calling thread alone. */
#ifndef TOWERSCOPE_KERNELS_CPU_LIBRARY_H
#define TOWERSCOPE_KERNELS_CPU_LIBRARY_H

#include "kernels/cpu/isa.h"

/* OpenMP's two functions, NULL where the libraries don't use it. */
struct library_threads {
    void (*set)(int threads);
    int (*get)(void);
};

/* Look among the libraries that are loaded. */
struct library_threads library_threads_find(void);

/* From here on libraries use one thread when called from this thread; returns what library_leave() wants. */
int library_enter(const struct library_threads *threads);
void library_leave(const struct library_threads *threads, int before);

/* Keep oneDNN from using more than `isa`. It can be said once a process, before the library is first used: a
 * device opened later with another instruction set has to do with what the first one allowed. */
void library_limit_isa(enum cpu_isa isa);

#endif
