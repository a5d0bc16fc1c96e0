/* Kernels that are wrong, each in one way (faulty.cu). */
#ifndef TOWERSCOPE_TESTS_CUDASIM_FAULTY_H
#define TOWERSCOPE_TESTS_CUDASIM_FAULTY_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FAULTY_THREADS 64

enum faulty {
    FAULTY_DIVERGENT_BARRIER,
    FAULTY_TWO_BARRIERS,
    FAULTY_MISSING_LANES,
    FAULTY_OUTSIDE_MASK,
    FAULTY_MISSING_BARRIER,
    FAULTY_UNSET_SHARED,   /* two blocks: out has 2 * FAULTY_THREADS values */
    FAULTY_BEYOND_THE_END, /* writes out[FAULTY_THREADS] */
    FAULTY_BEYOND_SHARED,
};

/* out: FAULTY_THREADS values, but where it says otherwise. */
cudaError_t faulty_run(enum faulty which, float *out);

/* A launch of any size. */
cudaError_t faulty_launch(unsigned blocks, unsigned threads, size_t shared_bytes, float *out);

#ifdef __cplusplus
}
#endif

#endif
