/* Convolutions by cuDNN (on the simulated device by tests/cudasim/fake_cudnn.cpp).
 *
 * A context is a stream's: calls on it are queued on that stream, in order, one thread at a time. A plan is a
 * GPU's and serves all contexts of that GPU. Everything is chosen, built and measured when the plan is made;
 * the calls only queue work: they never allocate and never wait, and may be captured into a graph.
 *
 * Layouts: x [images][h][w][c], y [images][out h][out w][out c], weights [out c][kernel h][kernel w][in c]
 * (cuDNN's; the transpose of towerscope's, see cuda_transpose). All of the type that conv_type() says; what
 * is in between is float. Failures are status_fail()ed with cuDNN's own words. */
#ifndef TOWERSCOPE_KERNELS_CUDA_CONV_H
#define TOWERSCOPE_KERNELS_CUDA_CONV_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/cuda/kernels.h"

enum cuda_precision {
    CUDA_F32,  /* true float32 */
    CUDA_TF32, /* float32 in memory, TF32 in the tensor cores */
    CUDA_BF16, /* bfloat16 in memory, sums float32; from sm_80 on */
};

/* Of a convolution's and a dense layer's tensors. */
static inline enum cuda_type conv_type(enum cuda_precision precision) {
    return precision == CUDA_BF16 ? CUDA_TYPE_BF16 : CUDA_TYPE_F32;
}

struct conv_context;
struct conv_plan;

/* What is to be computed. */
struct conv_request {
    const struct op *op; /* OP_CONV */
    int images;
    bool bias, relu;     /* forward adds a bias, and then takes max(y, 0) */
    bool training;       /* false: forward only */
    bool input_gradient; /* with training: conv_input_gradient will be called */
    bool deterministic;  /* only engines that give the same bytes each time */
    enum cuda_precision precision;
};

/* For the GPU that is current. Free with conv_context_free (NULL is fine). */
enum status conv_context_new(cudaStream_t stream, struct conv_context **out);
void conv_context_free(struct conv_context *context);

/* What is measured with this context is kept in the file `path` and taken from there (kept.h); `gpu`: the
 * kind of GPU that it is, without spaces. */
void conv_context_keep(struct conv_context *context, const char *path, const char *gpu);

/* Choose engines. `context`: any of the GPU that is current; nothing may be queued on its stream. A layer's
 * forward engine stays that of the first plan made with the context, whatever the number of images, and with
 * `deterministic` every engine does (see conv.c). `like`: the plan of the same request on another GPU of the
 * same kind, whose engines are taken unmeasured; or NULL. STATUS_UNSUPPORTED: cuDNN has no engine. */
enum status conv_plan_new(struct conv_context *context, const struct conv_request *request,
                          const struct conv_plan *like, struct conv_plan **out);
void conv_plan_free(struct conv_plan *plan);

/* Bytes of workspace that any call with the plan needs; 256-byte aligned. */
size_t conv_plan_workspace(const struct conv_plan *plan);

/* y = relu(conv(x, weights) + bias), as the request says. The bias is given twice, of the tensors' type and
 * as floats (the same where that is float): cuDNN has fused engines for the former only, our own kernel takes
 * the latter. Both NULL when there is none. */
enum status conv_forward(struct conv_context *context, const struct conv_plan *plan, const void *x,
                         const void *weights, const void *bias, const float *bias_floats, void *y,
                         void *workspace);

/* dx from dz, the gradient before bias and ReLU. */
enum status conv_input_gradient(struct conv_context *context, const struct conv_plan *plan, const void *dz,
                                const void *weights, void *dx, void *workspace);

/* dweights (written, not added to), in the weights' layout. (Of bfloat16 factors cuDNN has no float ones.) */
enum status conv_weights_gradient(struct conv_context *context, const struct conv_plan *plan, const void *x,
                                  const void *dz, void *dweights, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
