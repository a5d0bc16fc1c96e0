#include "kernels/cuda/runtime.h"

enum status cuda_checked(cudaError_t error, const char *what) {
    if (error == cudaSuccess)
        return STATUS_OK;
    return status_fail(error == cudaErrorMemoryAllocation ? STATUS_NO_MEMORY : STATUS_DEVICE,
                       "CUDA cannot %s: %s", what, cudaGetErrorString(error));
}

/* Versions are 1000 * major + 10 * minor. The runtime gives the same error where there is no driver and where
 * the driver is older than it; a stub of the driver's library says so itself. */
static enum status count_failed(cudaError_t error) {
    int driver = 0, runtime = 0;
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    (void)cudaGetLastError();
    if (error == cudaErrorNoDevice)
        return status_fail(STATUS_UNSUPPORTED,
                           "no device: the driver (CUDA %d.%d) sees no GPU, or "
                           "CUDA_VISIBLE_DEVICES hides it",
                           driver / 1000, driver % 1000 / 10);
    if (error == cudaErrorInsufficientDriver && driver > 0)
        return status_fail(
            STATUS_UNSUPPORTED,
            "driver too old: it serves CUDA %d.%d, and this plugin needs %d.%d; install a newer "
            "driver",
            driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (error == cudaErrorInsufficientDriver || error == cudaErrorStubLibrary)
        return status_fail(STATUS_UNSUPPORTED, "no driver: the CUDA runtime (%d.%d) finds no libcuda.so.1",
                           runtime / 1000, runtime % 1000 / 10);
    return status_fail(STATUS_UNSUPPORTED, "the CUDA runtime cannot count GPUs: %s",
                       cudaGetErrorString(error));
}

enum status cuda_probe(int index, struct cudaDeviceProp *out) {
    int count = 0; /* left alone by the call when it fails */
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess)
        return count_failed(error);
    if (count <= 0)
        return count_failed(cudaErrorNoDevice);
    if (index < 0 || index >= count)
        return status_fail(STATUS_NOT_FOUND, "there is no GPU of number %d here; the last is %d", index,
                           count - 1);
    STATUS_TRY(cuda_checked(cudaGetDeviceProperties(out, index), "read a GPU's properties"));
    if (out->major * 10 + out->minor < CUDA_OLDEST)
        return status_fail(STATUS_UNSUPPORTED,
                           "device too old (sm_%d%d): %s; this plugin has code for sm_%d and newer",
                           out->major, out->minor, out->name, CUDA_OLDEST);
    return STATUS_OK;
}
