// A simulated cuBLAS over the simulated streams, built against the real header: what gemm.c asks of it, by
// plain loops in the library's own order of rows and columns. It refuses leading dimensions, types and
// precisions that the real one does, and without a workspace of the caller's it allocates, which no capture
// allows.
#include "tests/cudasim/fake.h"
#include "tests/cudasim/memory.h"
#include "tests/cudasim/values.h"

#include <cublas_v2.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

using namespace cudasim;

struct cublasContext {
    int gpu;
    cudaStream_t stream;
    void *workspace; // nullptr: its own
    size_t bytes;
};

static bool type_of(cudaDataType_t type, cuda_type *out) {
    *out = type == CUDA_R_16BF ? CUDA_TYPE_BF16 : CUDA_TYPE_F32;
    return type == CUDA_R_16BF || type == CUDA_R_32F;
}

// The combinations of types that the manual lists for sums in float.
static bool types_fit(cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cublasComputeType_t sums) {
    if (sums == CUBLAS_COMPUTE_32F_FAST_TF32)
        return a == CUDA_R_32F && b == CUDA_R_32F && c == CUDA_R_32F;
    return sums == CUBLAS_COMPUTE_32F && a == b && (c == CUDA_R_32F || a == CUDA_R_16BF);
}

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t *out) {
    int gpu;
    void *own;
    *out = nullptr;
    if (cudaGetDevice(&gpu) != cudaSuccess || cudaMalloc(&own, 64) != cudaSuccess)
        return CUBLAS_STATUS_ALLOC_FAILED;
    (void)cudaFree(own);
    *out = new cublasContext{gpu, nullptr, nullptr, 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    if (gpu_of(stream) != handle->gpu)
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->stream = stream;
    handle->workspace = nullptr;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes) {
    if (reinterpret_cast<uintptr_t>(workspace) % 256 || memory_gpu(workspace) != handle->gpu)
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace;
    handle->bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t mode) {
    return mode & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION ? CUBLAS_STATUS_INVALID_VALUE
                                                                    : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t mode) {
    return mode == CUBLAS_POINTER_MODE_HOST ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t) {
    return CUBLAS_STATUS_SUCCESS;
}

// c (m x n) = alpha op(a) op(b) + beta c, columns one behind the other.
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                            int n, int k, const void *alpha, const void *a, cudaDataType_t a_type, int a_lead,
                            const void *b, cudaDataType_t b_type, int b_lead, const void *beta, void *c,
                            cudaDataType_t c_type, int c_lead, cublasComputeType_t sums, cublasGemmAlgo_t) {
    cuda_type type_a, type_b, type_c;
    bool a_turned = op_a == CUBLAS_OP_T, b_turned = op_b == CUBLAS_OP_T,
         tf32 = sums == CUBLAS_COMPUTE_32F_FAST_TF32;
    if (m < 0 || n < 0 || k < 0 || a_lead < std::max(1, a_turned ? k : m) ||
        b_lead < std::max(1, b_turned ? n : k) || c_lead < std::max(1, m) || op_a == CUBLAS_OP_C ||
        op_b == CUBLAS_OP_C)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!type_of(a_type, &type_a) || !type_of(b_type, &type_b) || !type_of(c_type, &type_c) ||
        !types_fit(a_type, b_type, c_type, sums))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!handle->workspace) { // its own is made when it is wanted first
        void *own;
        if (cudaMalloc(&own, 64) != cudaSuccess)
            return CUBLAS_STATUS_ALLOC_FAILED;
        (void)cudaFree(own);
    }
    float one = *static_cast<const float *>(alpha), old = *static_cast<const float *>(beta);
    values from_a(a, type_a), from_b(b, type_b), to(c, type_c);
    void *workspace = handle->workspace;
    size_t bytes = std::min<size_t>(handle->bytes, 256); // as much as it touches
    library call = library_call(handle->stream);
    if (call != library::GOES_ON)
        return call == library::REFUSED ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
    cudaError_t error = enqueue(handle->stream, "gemm", [=] {
        if (workspace)
            memset(workspace, 0xA5, bytes);
        for (int column = 0; column < n; column++)
            for (int row = 0; row < m; row++) {
                double sum = 0;
                for (int i = 0; i < k; i++) {
                    size_t at_a = a_turned ? size_t(row) * a_lead + i : size_t(i) * a_lead + row,
                           at_b = b_turned ? size_t(i) * b_lead + column : size_t(column) * b_lead + i;
                    sum += factor(from_a.get(at_a), tf32) * factor(from_b.get(at_b), tf32);
                }
                size_t at = size_t(column) * c_lead + row;
                to.set(at, one * sum + (old != 0 ? old * to.get(at) : 0));
            }
    });
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

const char *cublasGetStatusString(cublasStatus_t status) {
    switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "the resource allocation failed (simulated)";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an unsupported value or parameter was passed to the function (simulated)";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "the functionality requested is not supported (simulated)";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "the GPU program failed to execute (simulated)";
    default:
        return "an error of the simulation";
    }
}

} // extern "C"
