// Memory of the simulated GPUs: one piece of address space for each, closed to the host but while work runs.
#ifndef TOWERSCOPE_TESTS_CUDASIM_MEMORY_H
#define TOWERSCOPE_TESTS_CUDASIM_MEMORY_H

#include <cstddef>

namespace cudasim {

enum { MAX_GPUS = 16, ALL_GPUS = -1, NO_GPU = -2 };

void *memory_take(int gpu, size_t bytes); // nullptr: there isn't as much
bool memory_give(int gpu, void *at);      // false: no such piece
int memory_gpu(const void *at);           // whose memory that is; NO_GPU: the host's
void memory_open(int gpu);                // readable and writable: that GPU's alone, ALL_GPUS or NO_GPU
size_t memory_used(int gpu);
bool memory_empty(void);

} // namespace cudasim

#endif
