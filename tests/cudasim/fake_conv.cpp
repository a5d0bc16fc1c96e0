// kernels/cuda/conv.h by plain loops, queued on the simulated stream.
extern "C" {
#include "kernels/op.h"
}
#include "kernels/cuda/conv.h"

#include "tests/cudasim/fake.h"
#include "tests/cudasim/values.h"

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <new>
#include <vector>

using cudasim::values;

struct conv_context {
    cudaStream_t stream;
    void *handle; // of the GPU's memory, as the real one has
};

struct conv_plan {
    struct conv_request request;
    struct op op;
    int gpu;
};

namespace {

enum { WORKSPACE = 512, ALIGNMENT = 16 };

// The real plans are for tensors that lie so; NULL is what is not there.
enum status aligned(std::initializer_list<const void *> tensors) {
    for (const void *at : tensors)
        if (reinterpret_cast<uintptr_t>(at) % ALIGNMENT)
            return status_fail(STATUS_DEVICE, "a tensor at %p is not aligned to %d bytes", at, int(ALIGNMENT));
    return STATUS_OK;
}

enum status queued(const char *name, const conv_context *context, const conv_plan &plan,
                   std::function<void()> work) {
    if (plan.gpu != cudasim::gpu_of(context->stream))
        return status_fail(STATUS_DEVICE, "%s: the plan is another GPU's", name);
    cudasim::library call = cudasim::library_call(context->stream);
    if (call == cudasim::library::REFUSED)
        return status_fail(STATUS_DEVICE, "%s: not while a stream is captured (simulated)", name);
    cudaError_t error = call == cudasim::library::SPOILED
                            ? cudaSuccess
                            : cudasim::enqueue(context->stream, name, std::move(work));
    if (error == cudaSuccess)
        return STATUS_OK;
    return status_fail(STATUS_DEVICE, "%s: %s", name, cudaGetErrorString(error));
}

// Every product of the convolution: visit(place of x, place of the weight, place of y), channels apart.
template <class Visit> void products(const conv_plan &plan, Visit visit) {
    const struct op &op = plan.op;
    const struct op_window &w = op.window;
    for (int n = 0; n < plan.request.images; n++)
        for (int i = 0; i < op.out.h; i++)
            for (int j = 0; j < op.out.w; j++)
                for (int u = 0; u < w.kernel_h; u++)
                    for (int v = 0; v < w.kernel_w; v++) {
                        int row = i * w.stride + u - w.pad_top, column = j * w.stride + v - w.pad_left;
                        if (row < 0 || row >= op.in.h || column < 0 || column >= op.in.w)
                            continue;
                        visit(((size_t(n) * op.in.h + row) * op.in.w + column) * op.in.c,
                              size_t(u) * w.kernel_w + v,
                              ((size_t(n) * op.out.h + i) * op.out.w + j) * op.out.c);
                    }
}

// [out][tap][in]
size_t weight_at(const struct op &op, int out, size_t tap) {
    return (size_t(out) * op.window.kernel_h * op.window.kernel_w + tap) * op.in.c;
}

// The library may write anything into its workspace.
void spoil(void *workspace) {
    memset(workspace, 0xA5, WORKSPACE);
}

} // namespace

extern "C" {

enum status conv_context_new(cudaStream_t stream, struct conv_context **out) {
    *out = new (std::nothrow) conv_context{stream, nullptr};
    if (*out && cudaMalloc(&(*out)->handle, 256) == cudaSuccess)
        return STATUS_OK;
    delete *out;
    *out = nullptr;
    return status_fail(STATUS_NO_MEMORY, "no memory for a simulated cuDNN handle");
}

void conv_context_free(struct conv_context *context) {
    if (context)
        (void)cudaFree(context->handle);
    delete context;
}

// The real one measures: with memory of its own, for which it waits.
enum status conv_plan_new(struct conv_context *context, const struct conv_request *request,
                          const struct conv_plan *, struct conv_plan **out) {
    int gpu;
    void *trial;
    if (cudaGetDevice(&gpu) != cudaSuccess || gpu != cudasim::gpu_of(context->stream))
        return status_fail(STATUS_INTERNAL, "a plan is made with another GPU's context");
    if (cudaMalloc(&trial, 64) == cudaSuccess)
        (void)cudaFree(trial);
    *out = new (std::nothrow) conv_plan{*request, *request->op, gpu};
    return *out ? STATUS_OK : status_fail(STATUS_NO_MEMORY, "no memory for a simulated cuDNN plan");
}

void conv_plan_free(struct conv_plan *plan) {
    delete plan;
}

size_t conv_plan_workspace(const struct conv_plan *) {
    return WORKSPACE;
}

enum status conv_forward(struct conv_context *context, const struct conv_plan *shared, const void *x,
                         const void *weights, const void *bias, const float *, void *y, void *workspace) {
    const conv_plan plan = *shared;
    cuda_type type = conv_type(plan.request.precision);
    values from(x, type), factor(weights, type), added(bias, type), to(y, type);
    STATUS_TRY(aligned({x, weights, bias, y, workspace}));
    return queued("convolution", context, plan, [=] {
        const struct op &op = plan.op;
        spoil(workspace);
        std::vector<double> sum(size_t(plan.request.images) * shape_size(op.out));
        products(plan, [&](size_t at_x, size_t tap, size_t at_y) {
            for (int o = 0; o < op.out.c; o++) {
                size_t w = weight_at(op, o, tap);
                double s = 0;
                for (int c = 0; c < op.in.c; c++)
                    s += from.get(at_x + size_t(c)) * factor.get(w + size_t(c));
                sum[at_y + size_t(o)] += s;
            }
        });
        for (size_t i = 0; i < sum.size(); i++) {
            double value = sum[i] + (plan.request.bias ? added.get(i % size_t(op.out.c)) : 0);
            to.set(i, plan.request.relu && value < 0 ? 0 : value);
        }
    });
}

enum status conv_input_gradient(struct conv_context *context, const struct conv_plan *shared, const void *dz,
                                const void *weights, void *dx, void *workspace) {
    const conv_plan plan = *shared;
    cuda_type type = conv_type(plan.request.precision);
    values gradient(dz, type), factor(weights, type), to(dx, type);
    STATUS_TRY(aligned({dz, weights, dx, workspace}));
    return queued("convolution, gradient of x", context, plan, [=] {
        const struct op &op = plan.op;
        spoil(workspace);
        std::vector<double> sum(size_t(plan.request.images) * shape_size(op.in));
        products(plan, [&](size_t at_x, size_t tap, size_t at_y) {
            for (int o = 0; o < op.out.c; o++)
                for (int c = 0; c < op.in.c; c++)
                    sum[at_x + size_t(c)] +=
                        gradient.get(at_y + size_t(o)) * factor.get(weight_at(op, o, tap) + size_t(c));
        });
        for (size_t i = 0; i < sum.size(); i++)
            to.set(i, sum[i]);
    });
}

enum status conv_weights_gradient(struct conv_context *context, const struct conv_plan *shared, const void *x,
                                  const void *dz, void *dweights, void *workspace) {
    const conv_plan plan = *shared;
    cuda_type type = conv_type(plan.request.precision);
    values from(x, type), gradient(dz, type), to(dweights, type);
    STATUS_TRY(aligned({x, dz, dweights, workspace}));
    return queued("convolution, gradient of the weights", context, plan, [=] {
        const struct op &op = plan.op;
        spoil(workspace);
        std::vector<double> sum(op_parameter_size(&op));
        products(plan, [&](size_t at_x, size_t tap, size_t at_y) {
            for (int o = 0; o < op.out.c; o++)
                for (int c = 0; c < op.in.c; c++)
                    sum[weight_at(op, o, tap) + size_t(c)] +=
                        from.get(at_x + size_t(c)) * gradient.get(at_y + size_t(o));
        });
        for (size_t i = 0; i < sum.size(); i++)
            to.set(i, sum[i]);
    });
}

} // extern "C"
