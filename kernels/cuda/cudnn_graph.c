#include "kernels/cuda/cudnn_graph.h"

/* ---- descriptors */

enum status cudnn_checked(cudnnStatus_t status, const char *what) {
    if (status == CUDNN_STATUS_SUCCESS)
        return STATUS_OK;
    char words[512] = "";
    cudnnGetLastErrorString(words, sizeof words);
    enum status code = status == CUDNN_STATUS_ALLOC_FAILED                           ? STATUS_NO_MEMORY
                       : CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED ? STATUS_UNSUPPORTED
                                                                                     : STATUS_DEVICE;
    size_t version = cudnnGetVersion();
    return status_fail(code, "cuDNN %zu.%zu cannot %s: %s%s%s", version / 10000, version / 100 % 100, what,
                       cudnnGetErrorString(status), *words ? ": " : "", words);
}

enum status cudnn_make(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out) {
    return cudnn_checked(cudnnBackendCreateDescriptor(type, out), "make a descriptor");
}

enum status cudnn_set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                      cudnnBackendAttributeType_t type, int64_t count, const void *value) {
    return cudnn_checked(cudnnBackendSetAttribute(descriptor, name, type, count, value), "set an attribute");
}

enum status cudnn_finish(cudnnBackendDescriptor_t descriptor, const char *what) {
    return cudnn_checked(cudnnBackendFinalize(descriptor), what);
}

/* ---- the parts of a graph. A failure stays: what follows it does nothing. */

struct builder {
    struct conv_graph *graph;
    const struct conv_request *request;
    enum status status;
};

static cudnnBackendDescriptor_t make(struct builder *b, cudnnBackendDescriptorType_t type) {
    struct conv_graph *g = b->graph;
    if (b->status == STATUS_OK && g->made_count == (int)(sizeof g->made / sizeof *g->made))
        b->status =
            status_fail(STATUS_INTERNAL, "a convolution's graph has more than %d parts", g->made_count);
    if (b->status != STATUS_OK)
        return NULL;
    cudnnBackendDescriptor_t made = NULL;
    b->status = cudnn_make(type, &made);
    if (b->status == STATUS_OK)
        g->made[g->made_count++] = made;
    return made;
}

static void set(struct builder *b, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *value) {
    if (b->status == STATUS_OK)
        b->status = cudnn_set(d, name, type, count, value);
}

static void set_part(struct builder *b, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                     cudnnBackendDescriptor_t part) {
    set(b, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
}

static void finish(struct builder *b, cudnnBackendDescriptor_t d, const char *what) {
    if (b->status == STATUS_OK)
        b->status = cudnn_finish(d, what);
}

/* dims in cuDNN's order (images, channels, height, width; weights: out, in, height, width); the channel is
 * the fastest in memory. Between operations that are done at once a tensor is not in memory and float. */
static cudnnBackendDescriptor_t tensor(struct builder *b, int64_t name, const int64_t dims[4],
                                       bool in_memory) {
    cudnnBackendDescriptor_t d = make(b, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    cudnnDataType_t type =
        in_memory && b->request->precision == CUDA_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
    int64_t strides[4] = {dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]}, alignment = 16;
    bool away = !in_memory;
    set(b, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &name);
    set(b, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(b, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    set(b, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    set(b, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    if (away)
        set(b, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &away);
    finish(b, d, "describe a tensor");
    return d;
}

static cudnnBackendDescriptor_t convolution(struct builder *b) {
    const struct op_window *w = &b->request->op->window;
    cudnnBackendDescriptor_t d = make(b, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    int64_t two = 2, before[2] = {w->pad_top, w->pad_left}, after[2] = {w->pad_bottom, w->pad_right},
            strides[2] = {w->stride, w->stride}, dilations[2] = {1, 1};
    set(b, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &two);
    set(b, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    set(b, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(b, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, before);
    set(b, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, after);
    set(b, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilations);
    set(b, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides);
    finish(b, d, "describe a convolution");
    return d;
}

/* The names that a pass's operation has for the same things. */
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t alpha, beta, convolution, weights, x, z;
} pass_names[CONV_PASSES] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

static cudnnBackendDescriptor_t pass_operation(struct builder *b, enum conv_pass pass,
                                               cudnnBackendDescriptor_t z) {
    const struct op *op = b->request->op;
    const int64_t x[4] = {b->request->images, op->in.c, op->in.h, op->in.w},
                  weights[4] = {op->out.c, op->in.c, op->window.kernel_h, op->window.kernel_w};
    float one = 1, zero = 0;
    cudnnBackendDescriptor_t d = make(b, pass_names[pass].type);
    set(b, d, pass_names[pass].alpha, CUDNN_TYPE_FLOAT, 1, &one);
    set(b, d, pass_names[pass].beta, CUDNN_TYPE_FLOAT, 1, &zero);
    set_part(b, d, pass_names[pass].convolution, convolution(b));
    set_part(b, d, pass_names[pass].weights, tensor(b, CONV_WEIGHTS, weights, true));
    set_part(b, d, pass_names[pass].x, tensor(b, CONV_X, x, true));
    set_part(b, d, pass_names[pass].z, z);
    finish(b, d, "describe a pass of a convolution");
    return d;
}

/* out = in + other, or max(in, 0) with other NULL. */
static cudnnBackendDescriptor_t pointwise(struct builder *b, cudnnPointwiseMode_t mode,
                                          cudnnBackendDescriptor_t in, cudnnBackendDescriptor_t other,
                                          cudnnBackendDescriptor_t out) {
    cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    cudnnNanPropagation_t keep = CUDNN_PROPAGATE_NAN; /* what is not a number stays so */
    cudnnBackendDescriptor_t how = make(b, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(b, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(b, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    /* By default it makes 0 of it. A version of cuDNN that knows no such setting does without. */
    if (mode == CUDNN_POINTWISE_RELU_FWD && b->status == STATUS_OK)
        (void)cudnnBackendSetAttribute(how, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION,
                                       1, &keep);
    finish(b, how, "describe bias or ReLU");
    cudnnBackendDescriptor_t d = make(b, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_part(b, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    set_part(b, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, in);
    if (other)
        set_part(b, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, other);
    set_part(b, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, out);
    finish(b, d, "describe bias or ReLU of a convolution");
    return d;
}

enum status conv_graph_make(const struct conv_request *request, enum conv_pass pass, bool fused,
                            cudnnHandle_t handle, struct conv_graph *out) {
    const struct op *op = request->op;
    *out = (struct conv_graph){.handle = handle};
    struct builder b = {.graph = out, .request = request};
    const int64_t z_dims[4] = {request->images, op->out.c, op->out.h, op->out.w},
                  bias_dims[4] = {1, op->out.c, 1, 1};
    enum { BETWEEN = 10 };
    bool bias = fused && pass == CONV_FORWARD && request->bias,
         relu = fused && pass == CONV_FORWARD && request->relu;
    out->fused = bias || relu;
    cudnnBackendDescriptor_t operations[3];
    int count = 0, left = bias + relu; /* operations still to come decide whether a result is written */
    cudnnBackendDescriptor_t z = tensor(&b, left ? BETWEEN : CONV_Z, z_dims, !left);
    operations[count++] = pass_operation(&b, pass, z);
    if (bias) {
        cudnnBackendDescriptor_t sum = tensor(&b, --left ? BETWEEN + 1 : CONV_Z, z_dims, !relu);
        operations[count++] =
            pointwise(&b, CUDNN_POINTWISE_ADD, z, tensor(&b, CONV_BIAS, bias_dims, true), sum);
        z = sum;
    }
    if (relu)
        operations[count++] =
            pointwise(&b, CUDNN_POINTWISE_RELU_FWD, z, NULL, tensor(&b, CONV_Z, z_dims, true));
    cudnnBackendDescriptor_t d = make(&b, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(&b, d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, operations);
    if (handle)
        set(&b, d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    finish(&b, d, "put the operations of a convolution together");
    out->graph = d;
    return b.status;
}

void conv_graph_free(struct conv_graph *graph) {
    while (graph->made_count)
        cudnnBackendDestroyDescriptor(graph->made[--graph->made_count]);
    *graph = (struct conv_graph){0};
}
