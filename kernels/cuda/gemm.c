#include "kernels/cuda/gemm.h"
#include "kernels/cuda/runtime.h"

#include <cublas_v2.h>
#include <stdlib.h>

#ifdef CUDASIM
enum { WORKSPACE_BYTES = 1 << 10 };
#else
enum { WORKSPACE_BYTES = 32 << 20 }; /* what the library advises for Hopper; older GPUs are content with less */
#endif

struct gemm {
    cublasHandle_t handle;
    void *workspace;
    cublasComputeType_t sums;
    cudaDataType_t factors;
};

static enum status blas_checked(cublasStatus_t status, const char *what) {
    if (status == CUBLAS_STATUS_SUCCESS)
        return STATUS_OK;
    return status_fail(status == CUBLAS_STATUS_ALLOC_FAILED    ? STATUS_NO_MEMORY
                       : status == CUBLAS_STATUS_NOT_SUPPORTED ? STATUS_UNSUPPORTED
                                                               : STATUS_DEVICE,
                       "cuBLAS cannot %s: %s", what, cublasGetStatusString(status));
}

/* Without FAST in its name a type keeps to its precision, and takes the quickest way that does (PEDANTIC ones
 * don't). */
static cublasComputeType_t compute_type(enum cuda_precision precision) {
    return precision == CUDA_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

static enum status gemm_start(struct gemm *gemm, cudaStream_t stream) {
    STATUS_TRY(cuda_checked(cudaMalloc(&gemm->workspace, WORKSPACE_BYTES), "allocate cuBLAS's workspace"));
    STATUS_TRY(blas_checked(cublasCreate(&gemm->handle), "start"));
    STATUS_TRY(blas_checked(cublasSetStream(gemm->handle, stream), "use a stream"));
    /* after the stream: setting that one puts the library's own workspace back */
    STATUS_TRY(
        blas_checked(cublasSetWorkspace(gemm->handle, gemm->workspace, WORKSPACE_BYTES), "use a workspace"));
    /* sums are float to their end, also where they are stored as bfloat16 */
    STATUS_TRY(blas_checked(
        cublasSetMathMode(gemm->handle, (cublasMath_t)(CUBLAS_DEFAULT_MATH |
                                                       CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
        "be set up"));
    STATUS_TRY(blas_checked(cublasSetPointerMode(gemm->handle, CUBLAS_POINTER_MODE_HOST), "be set up"));
    return blas_checked(cublasSetAtomicsMode(gemm->handle, CUBLAS_ATOMICS_NOT_ALLOWED), "be set up");
}

enum status gemm_new(cudaStream_t stream, enum cuda_precision precision, struct gemm **out) {
    struct gemm *gemm = calloc(1, sizeof *gemm);
    if (!gemm)
        return status_fail(STATUS_NO_MEMORY, "no memory for a handle of cuBLAS");
    gemm->sums = compute_type(precision);
    gemm->factors = conv_type(precision) == CUDA_TYPE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
    enum status status = gemm_start(gemm, stream);
    if (status != STATUS_OK) {
        gemm_free(gemm);
        return status;
    }
    *out = gemm;
    return STATUS_OK;
}

void gemm_free(struct gemm *gemm) {
    if (!gemm)
        return;
    if (gemm->handle)
        (void)cublasDestroy(gemm->handle);
    if (gemm->workspace)
        (void)cudaFree(gemm->workspace);
    free(gemm);
}

/* cuBLAS counts by columns, so it sees each of our matrices transposed: c[rows][columns] = a b in rows is
 * c^T = b^T a^T there. left is [rows][inner] (or its transpose), right [inner][columns]. */
static enum status multiply(struct gemm *gemm, int rows, int inner, int columns, const void *left,
                            bool left_transposed, const void *right, bool right_transposed, void *out,
                            cudaDataType_t out_type, const char *what) {
    const float one = 1, zero = 0;
    return blas_checked(cublasGemmEx(gemm->handle, right_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                                     left_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, columns, rows, inner, &one,
                                     right, gemm->factors, right_transposed ? inner : columns, left,
                                     gemm->factors, left_transposed ? rows : inner, &zero, out, out_type,
                                     columns, gemm->sums, CUBLAS_GEMM_DEFAULT),
                        what);
}

enum status gemm_forward(struct gemm *gemm, int images, int in, int out, const void *x, const void *weights,
                         float *y) {
    return multiply(gemm, images, in, out, x, false, weights, false, y, CUDA_R_32F, "compute a dense layer");
}

enum status gemm_input_gradient(struct gemm *gemm, int images, int in, int out, const void *dy,
                                const void *weights, void *dx) {
    return multiply(gemm, images, out, in, dy, false, weights, true, dx, gemm->factors,
                    "compute a dense layer's gradient");
}

enum status gemm_weights_gradient(struct gemm *gemm, int images, int in, int out, const void *x,
                                  const void *dy, float *dweights) {
    return multiply(gemm, in, images, out, x, true, dy, false, dweights, CUDA_R_32F,
                    "compute the gradient of a dense layer's weights");
}
