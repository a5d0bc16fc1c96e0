// kernels/cuda/gemm.h by plain loops, queued on the simulated stream.
extern "C" {
#include "kernels/op.h"
}
#include "kernels/cuda/gemm.h"

#include "tests/cudasim/fake.h"
#include "tests/cudasim/values.h"

#include <new>
#include <vector>

using cudasim::values;

struct gemm {
    cudaStream_t stream;
    cuda_type type;
    void *workspace; // of the GPU's memory, as the real one has
};

static enum status queued(const char *name, cudaStream_t stream, std::function<void()> work) {
    cudasim::library call = cudasim::library_call(stream);
    if (call == cudasim::library::REFUSED)
        return status_fail(STATUS_DEVICE, "%s: not while a stream is captured (simulated)", name);
    cudaError_t error = call == cudasim::library::SPOILED ? cudaSuccess
                                                          : cudasim::enqueue(stream, name, std::move(work));
    if (error == cudaSuccess)
        return STATUS_OK;
    return status_fail(STATUS_DEVICE, "%s: %s", name, cudaGetErrorString(error));
}

extern "C" {

enum status gemm_new(cudaStream_t stream, enum cuda_precision precision, struct gemm **out) {
    *out = new (std::nothrow) gemm{stream, conv_type(precision), nullptr};
    if (*out && cudaMalloc(&(*out)->workspace, 256) == cudaSuccess)
        return STATUS_OK;
    delete *out;
    *out = nullptr;
    return status_fail(STATUS_NO_MEMORY, "no memory for a simulated cuBLAS handle");
}

void gemm_free(struct gemm *gemm) {
    if (gemm)
        (void)cudaFree(gemm->workspace);
    delete gemm;
}

enum status gemm_forward(struct gemm *gemm, int images, int in, int out, const void *x, const void *weights,
                         float *y) {
    values from(x, gemm->type), factor(weights, gemm->type);
    return queued("dense", gemm->stream, [=] {
        std::vector<double> sum(static_cast<size_t>(out));
        for (int n = 0; n < images; n++) {
            sum.assign(sum.size(), 0);
            for (int i = 0; i < in; i++) {
                double value = from.get(size_t(n) * in + i);
                for (int o = 0; o < out; o++)
                    sum[size_t(o)] += value * factor.get(size_t(i) * out + o);
            }
            for (int o = 0; o < out; o++)
                y[size_t(n) * out + o] = float(sum[size_t(o)]);
        }
    });
}

enum status gemm_input_gradient(struct gemm *gemm, int images, int in, int out, const void *dy,
                                const void *weights, void *dx) {
    values gradient(dy, gemm->type), factor(weights, gemm->type), to(dx, gemm->type);
    return queued("dense, gradient of x", gemm->stream, [=] {
        for (int n = 0; n < images; n++)
            for (int i = 0; i < in; i++) {
                double sum = 0;
                for (int o = 0; o < out; o++)
                    sum += gradient.get(size_t(n) * out + o) * factor.get(size_t(i) * out + o);
                to.set(size_t(n) * in + i, sum);
            }
    });
}

enum status gemm_weights_gradient(struct gemm *gemm, int images, int in, int out, const void *x,
                                  const void *dy, float *dweights) {
    values from(x, gemm->type), gradient(dy, gemm->type);
    return queued("dense, gradient of the weights", gemm->stream, [=] {
        std::vector<double> sum(static_cast<size_t>(out));
        for (int i = 0; i < in; i++) {
            sum.assign(sum.size(), 0);
            for (int n = 0; n < images; n++) {
                double value = from.get(size_t(n) * in + i);
                for (int o = 0; o < out; o++)
                    sum[size_t(o)] += value * gradient.get(size_t(n) * out + o);
            }
            for (int o = 0; o < out; o++)
                dweights[size_t(i) * out + o] = float(sum[size_t(o)]);
        }
    });
}

} // extern "C"
