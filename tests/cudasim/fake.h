// The inside of the simulated CUDA runtime, for the simulated libraries.
#ifndef TOWERSCOPE_TESTS_CUDASIM_FAKE_H
#define TOWERSCOPE_TESTS_CUDASIM_FAKE_H

#include "tests/cudasim/control.h"
#include "tests/cudasim/enqueue.h"

namespace cudasim {

const cudasim_settings &settings();
bool lost(int gpu);
int gpu_of(cudaStream_t stream);

// Work of several streams that runs once, when it stands first on all of them: a collective. `ready` is asked
// again and again; `run` is called for each stream with every GPU's memory open.
cudaError_t enqueue_when(cudaStream_t stream, const char *name, std::function<bool()> ready,
                         std::function<void()> run);

// Whoever waits for a library lets time pass: some work runs.
void time_passes();

// A library is about to queue work. REFUSED: it does what a capture forbids, and is told; SPOILED: it isn't.
enum class library { GOES_ON, REFUSED, SPOILED };
library library_call(cudaStream_t stream);

// fake_nccl.cpp: no communicator is there or about to be.
bool nccl_clean();

// fake_cudnn.cpp: no descriptor is there.
bool cudnn_clean();

[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

} // namespace cudasim

#endif
