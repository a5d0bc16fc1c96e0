/* Dense layers by cuBLAS (on the simulated device by tests/cudasim/fake_cublas.cpp).
 *
 * A gemm is a stream's: a cuBLAS handle with a workspace of its own (set explicitly, so that graphs can
 * capture it and results stay the same bytes). Calls are queued on that stream and never allocate or wait.
 * Matrices are row-major as everywhere: x [images][in], y [images][out], weights [in][out]. x, dx, dy and the
 * weights that are multiplied with are of the type that conv_type() says, sums are float. */
#ifndef TOWERSCOPE_KERNELS_CUDA_GEMM_H
#define TOWERSCOPE_KERNELS_CUDA_GEMM_H

#include "kernels/cuda/conv.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gemm;

/* For the GPU that is current. Free with gemm_free (NULL is fine). */
enum status gemm_new(cudaStream_t stream, enum cuda_precision precision, struct gemm **out);
void gemm_free(struct gemm *gemm);

/* y = x weights, as floats */
enum status gemm_forward(struct gemm *gemm, int images, int in, int out, const void *x, const void *weights,
                         float *y);

/* dx = dy weights^T */
enum status gemm_input_gradient(struct gemm *gemm, int images, int in, int out, const void *dy,
                                const void *weights, void *dx);

/* dweights = x^T dy (written, not added to), as floats */
enum status gemm_weights_gradient(struct gemm *gemm, int images, int in, int out, const void *x,
                                  const void *dy, float *dweights);

#ifdef __cplusplus
}
#endif

#endif
