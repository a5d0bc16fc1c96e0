// kernels/cuda/gemm.h by plain loops, queued on the simulated stream.
extern "C" {
#include "kernels/op.h"
}
#include "kernels/cuda/gemm.h"

#include "tests/cudasim/fake.h"

#include <new>
#include <vector>

struct gemm {
    cudaStream_t stream;
};

static enum status queued(const char *name, cudaStream_t stream, std::function<void()> work) {
    cudaError_t error = cudasim::enqueue(stream, name, std::move(work));
    if (error == cudaSuccess)
        return STATUS_OK;
    return status_fail(STATUS_DEVICE, "%s: %s", name, cudaGetErrorString(error));
}

extern "C" {

enum status gemm_new(cudaStream_t stream, enum cuda_precision, struct gemm **out) {
    *out = new (std::nothrow) gemm{stream};
    return *out ? STATUS_OK : status_fail(STATUS_NO_MEMORY, "no memory for a simulated cuBLAS handle");
}

void gemm_free(struct gemm *gemm) {
    delete gemm;
}

enum status gemm_forward(struct gemm *gemm, int images, int in, int out, const float *x, const float *weights,
                         float *y) {
    return queued("dense", gemm->stream, [=] {
        std::vector<double> sum(static_cast<size_t>(out));
        for (int n = 0; n < images; n++) {
            sum.assign(sum.size(), 0);
            for (int i = 0; i < in; i++)
                for (int o = 0; o < out; o++)
                    sum[size_t(o)] += double(x[size_t(n) * in + i]) * weights[size_t(i) * out + o];
            for (int o = 0; o < out; o++)
                y[size_t(n) * out + o] = float(sum[size_t(o)]);
        }
    });
}

enum status gemm_input_gradient(struct gemm *gemm, int images, int in, int out, const float *dy,
                                const float *weights, float *dx) {
    return queued("dense, gradient of x", gemm->stream, [=] {
        for (int n = 0; n < images; n++)
            for (int i = 0; i < in; i++) {
                double sum = 0;
                for (int o = 0; o < out; o++)
                    sum += double(dy[size_t(n) * out + o]) * weights[size_t(i) * out + o];
                dx[size_t(n) * in + i] = float(sum);
            }
    });
}

enum status gemm_weights_gradient(struct gemm *gemm, int images, int in, int out, const float *x,
                                  const float *dy, float *dweights) {
    return queued("dense, gradient of the weights", gemm->stream, [=] {
        std::vector<double> sum(static_cast<size_t>(out));
        for (int i = 0; i < in; i++) {
            sum.assign(sum.size(), 0);
            for (int n = 0; n < images; n++)
                for (int o = 0; o < out; o++)
                    sum[size_t(o)] += double(x[size_t(n) * in + i]) * dy[size_t(n) * out + o];
            for (int o = 0; o < out; o++)
                dweights[size_t(i) * out + o] = float(sum[size_t(o)]);
        }
    });
}

} // extern "C"
