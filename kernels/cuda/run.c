/* The operations of a tower, queued on its worker's stream. */
#include "kernels/cuda/plan_impl.h"

#include "kernels/cuda/runtime.h"

/* A call's spans as addresses on the stream's GPU. */
struct local {
    void *x, *y, *dy, *dx, *saved, *scratch, *prepared;
    void *params[PLAN_MAX_OPS], *grads[PLAN_MAX_OPS];
};

static size_t input_bytes(const struct plan *plan) {
    return (size_t)plan->images * shape_size(plan->op.in) * cuda_type_bytes(plan_type(plan));
}

static size_t output_bytes(const struct plan *plan, enum cuda_type type) {
    return (size_t)plan->images * shape_size(plan->out) * cuda_type_bytes(type);
}

static size_t input_pixels(const struct plan *plan) {
    return (size_t)plan->images * (size_t)plan->op.in.h * (size_t)plan->op.in.w;
}

static size_t rows(const struct plan *plan) {
    return (size_t)plan->images * (size_t)plan->out.h * (size_t)plan->out.w;
}

/* Parameters of the group: of its first operation, and of the bias. */
static size_t parameter_bytes(const struct plan *plan, int op) {
    if (op == plan->bias)
        return (size_t)plan->out.c * sizeof(float);
    return op == 0 ? op_parameter_size(&plan->op) * sizeof(float) : 0;
}

static enum status find_common(struct stream *stream, const struct plan *plan, const struct plan_args *args,
                               struct local *l) {
    const struct device *d = plan->device;
    int gpu = stream->gpu;
    for (int i = 0; i < plan->info.taken; i++)
        STATUS_TRY(
            memory_local(d, gpu, args->params[i], parameter_bytes(plan, i), "a parameter", &l->params[i]));
    STATUS_TRY(memory_local(d, gpu, args->saved, plan->info.saved_bytes, "the saved values", &l->saved));
    STATUS_TRY(
        memory_local(d, gpu, args->scratch, plan->info.scratch_bytes, "the scratch memory", &l->scratch));
    return memory_local(d, gpu, args->prepared, plan->info.prepared_bytes, "the prepared parameters",
                        &l->prepared);
}

static enum status launched(const struct stream *stream, cudaError_t error, const struct plan *plan) {
    return gpu_checked(stream->device, stream->gpu, error, op_kind_name(plan->op.kind));
}

static enum status named(const struct stream *stream, enum status status) {
    return status == STATUS_OK ? STATUS_OK
                               : status_prefix(status, "%s: ", stream->device->gpu[stream->gpu].name);
}

/* What is to be rewritten on one GPU, as many as go into a launch. */
struct rewrites {
    struct cuda_rewrite of[CUDA_REWRITES_AT_ONCE];
    int count;
};

static enum status rewrite(struct device *device, int g, struct rewrites *r) {
    if (!r->count)
        return STATUS_OK;
    cudaError_t error = cuda_rewrite_all(device->gpu[g].main.handle, device_type(device), r->of, r->count);
    r->count = 0;
    return gpu_checked(device, g, error, "prepare the weights");
}

/* A plan's prepared parameters on one GPU: a convolution's weights turned, a dense layer's as they lie, and a
 * bias that cuDNN adds. */
static enum status prepare_on(struct device *device, int g, const struct plan *plan,
                              const struct plan_args *args, struct rewrites *r) {
    size_t out = (size_t)plan->op.out.c, values = op_parameter_size(&plan->op);
    bool conv = plan->op.kind == OP_CONV;
    void *from, *to;
    if (r->count + 2 > CUDA_REWRITES_AT_ONCE)
        STATUS_TRY(rewrite(device, g, r));
    STATUS_TRY(memory_local(device, g, args->params[0], parameter_bytes(plan, 0), "a parameter", &from));
    STATUS_TRY(
        memory_local(device, g, args->prepared, plan->info.prepared_bytes, "the prepared parameters", &to));
    r->of[r->count++] = (struct cuda_rewrite){from, to, values / out, out, conv};
    if (!conv || plan->info.prepared_bytes == plan->rounded_bias_at)
        return STATUS_OK;
    STATUS_TRY(memory_local(device, g, args->params[plan->bias], parameter_bytes(plan, plan->bias), "a bias",
                            &from));
    r->of[r->count++] = (struct cuda_rewrite){from, (char *)to + plan->rounded_bias_at, 1, out, false};
    return STATUS_OK;
}

/* What the libraries multiply with, from the parameters, wherever those lie. */
enum status cuda_prepare_all(struct stream *stream, int count, const struct plan *const *plans,
                             const struct plan_args *args) {
    struct device *device = stream->device;
    for (int g = 0; g < device->count; g++) { /* the parameters may lie on other GPUs as well */
        struct rewrites r = {.count = 0};
        cudaStream_t main;
        STATUS_TRY(gpu_join(device, g, &main));
        for (int i = 0; i < count; i++) {
            const struct block *block;
            if (!plans[i]->info.prepared_bytes)
                continue;
            STATUS_TRY(memory_find(device, args[i].prepared, &block));
            if (block->base[g])
                STATUS_TRY(prepare_on(device, g, plans[i], &args[i], &r));
        }
        STATUS_TRY(rewrite(device, g, &r));
        STATUS_TRY(gpu_leave(device, g));
    }
    return STATUS_OK;
}

enum status cuda_prepare(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    return cuda_prepare_all(stream, 1, &plan, args);
}

/* The weights that a dense layer multiplies with. */
static const void *dense_weights(const struct plan *plan, const struct local *l) {
    return plan_type(plan) == CUDA_TYPE_BF16 ? l->prepared : l->params[0];
}

static enum status dense_forward(struct stream *stream, const struct plan *plan, const struct local *l) {
    int in = (int)shape_size(plan->op.in), out = plan->out.c;
    bool later = plan_rounds_later(plan);
    float *sums = later ? l->scratch : l->y;
    const void *weights = dense_weights(plan, l);
    if (plan->device->options.deterministic)
        STATUS_TRY(launched(
            stream, cuda_dense(stream->handle, plan_type(plan), plan->images, in, out, l->x, weights, sums),
            plan));
    else
        STATUS_TRY(named(stream, gemm_forward(stream->gemm, plan->images, in, out, l->x, weights, sums)));
    if (!later && plan->bias < 0 && plan->relu < 0)
        return STATUS_OK;
    const float *bias = plan->bias >= 0 ? l->params[plan->bias] : NULL;
    return launched(stream,
                    cuda_bias_relu(stream->handle, CUDA_TYPE_F32, sums, bias, plan_output_type(plan), l->y,
                                   rows(plan), out, plan->relu >= 0),
                    plan);
}

/* A convolution with its bias and ReLU, and what a block has behind them. */
static enum status conv_group_forward(struct stream *stream, const struct plan *plan, const struct local *l) {
    const float *bias = plan->bias >= 0 ? l->params[plan->bias] : NULL;
    char *scratch = l->scratch, *saved = l->saved;
    void *places = plan->training ? saved : NULL;
    void *before = plan->training ? saved + plan->before_at : scratch + plan->pooled_at, *result = l->y;
    enum cuda_type type = plan_type(plan);
    const void *rounded = type == CUDA_TYPE_BF16 ? (char *)l->prepared + plan->rounded_bias_at : (void *)bias;
    cudaStream_t s = stream->handle;
    if (plan_is_block(plan))
        result = plan_norm_first(plan) && plan->training ? before : scratch + plan->result_at;
    STATUS_TRY(named(stream, conv_forward(stream->conv, plan->conv[stream->gpu], l->x, l->prepared,
                                          bias ? rounded : NULL, bias, result, scratch)));
    if (!plan_is_block(plan))
        return STATUS_OK;
    if (plan->norm_at < 0)
        return launched(stream, cuda_max_pool(s, type, &plan->pool, plan->images, result, l->y, places),
                        plan);
    if (plan_norm_first(plan))
        return launched(
            stream, cuda_lrn_pool(s, type, &plan->norm.lrn, &plan->pool, plan->images, result, l->y, places),
            plan);
    return launched(
        stream,
        cuda_pool_lrn(s, type, &plan->pool, &plan->norm.lrn, plan->images, result, before, places, l->y),
        plan);
}

enum status cuda_forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    const struct device *d = plan->device;
    struct local l = {0};
    cudaStream_t s = stream->handle;
    enum cuda_type type = plan_type(plan);
    STATUS_TRY(memory_local(d, stream->gpu, args->x, input_bytes(plan), "the input", &l.x));
    STATUS_TRY(memory_local(d, stream->gpu, args->y, output_bytes(plan, plan_output_type(plan)), "the output",
                            &l.y));
    STATUS_TRY(find_common(stream, plan, args, &l));
    const float *bias = plan->bias >= 0 ? l.params[plan->bias] : NULL;
    STATUS_TRY(worker_use(stream));
    switch (plan->op.kind) {
    case OP_CONV:
        return conv_group_forward(stream, plan, &l);
    case OP_DENSE:
        return dense_forward(stream, plan, &l);
    case OP_MAX_POOL:
        return launched(
            stream,
            cuda_max_pool(s, type, &plan->op, plan->images, l.x, l.y, plan->training ? l.saved : NULL), plan);
    case OP_LRN:
        return launched(stream, cuda_lrn(s, type, &plan->op.lrn, input_pixels(plan), plan->op.in.c, l.x, l.y),
                        plan);
    default: /* bias, ReLU, or both */
        return launched(
            stream, cuda_bias_relu(s, type, l.x, bias, type, l.y, rows(plan), plan->out.c, plan->relu >= 0),
            plan);
    }
}

/* dy before the bias and the ReLU, in its place, and the gradient of the bias. */
static enum status bias_relu_backward(struct stream *stream, const struct plan *plan, const struct local *l,
                                      void *dx) {
    float *dbias = plan->bias >= 0 ? l->grads[plan->bias] : NULL;
    const void *y = plan->relu >= 0 ? l->y : NULL;
    void *scratch = dbias ? (char *)l->scratch + plan->bias_at : NULL;
    if (!dbias && !y && dx == l->dy)
        return STATUS_OK;
    return launched(stream,
                    cuda_bias_relu_backward(stream->handle, plan_type(plan), l->dy, y, dx, dbias, scratch,
                                            rows(plan), plan->out.c),
                    plan);
}

/* The convolution's dz from a block's dy, with the gradient of the bias on the way. */
static enum status block_backward(struct stream *stream, const struct plan *plan, const struct local *l,
                                  void **dz) {
    float *dbias = plan->bias >= 0 ? l->grads[plan->bias] : NULL;
    char *scratch = l->scratch, *saved = l->saved;
    const void *before = saved + plan->before_at;
    void *sums = scratch + plan->bias_at, *pooled = l->dy;
    enum cuda_type type = plan_type(plan);
    cudaStream_t s = stream->handle;
    *dz = scratch + plan->result_at;
    if (plan_norm_first(plan))
        return launched(stream,
                        cuda_lrn_pool_relu_backward(s, type, &plan->norm.lrn, &plan->pool, plan->images,
                                                    before, l->dy, saved, *dz, dbias, sums),
                        plan);
    if (plan->norm_at >= 0) {
        pooled = scratch + plan->pooled_at;
        STATUS_TRY(launched(stream,
                            cuda_lrn_relu_backward(s, type, &plan->norm.lrn, rows(plan), plan->out.c, before,
                                                   l->dy, pooled, dbias, sums),
                            plan));
    } else {
        STATUS_TRY(bias_relu_backward(stream, plan, l, pooled));
    }
    return launched(stream, cuda_max_pool_backward(s, type, &plan->pool, plan->images, pooled, saved, *dz),
                    plan);
}

/* The gradient of the weights, in the order of the flat buffer. */
static enum status conv_weights(const struct stream *stream, cudaStream_t s, struct conv_context *context,
                                const struct plan *plan, const struct local *l, const void *dz) {
    void *dweights = (char *)l->scratch + plan->weights_at;
    size_t out = (size_t)plan->op.out.c, in = op_parameter_size(&plan->op) / out;
    STATUS_TRY(named(
        stream, conv_weights_gradient(context, plan->conv[stream->gpu], l->x, dz, dweights, l->scratch)));
    return launched(stream, cuda_transpose(s, plan_type(plan), dweights, CUDA_TYPE_F32, l->grads[0], out, in),
                    plan);
}

/* Both gradients read dz and write apart from each other (dx lies apart from x, which is in use as long), and
 * alone neither fills a GPU when there are few images: side by side. */
static enum status conv_gradients(struct stream *stream, const struct plan *plan, const struct local *l,
                                  const void *dz) {
    const struct beside *b = &stream->beside;
    void *workspace = (char *)l->scratch + plan->beside_at;
    STATUS_TRY(beside_begin(stream));
    enum status weights = conv_weights(stream, b->handle, b->conv, plan, l, dz);
    enum status input = weights == STATUS_OK
                            ? named(stream, conv_input_gradient(stream->conv, plan->conv[stream->gpu], dz,
                                                                l->prepared, l->dx, workspace))
                            : weights;
    enum status joined = beside_end(stream);
    return input == STATUS_OK ? joined : input;
}

static enum status conv_backward(struct stream *stream, const struct plan *plan, const struct local *l) {
    void *dz = l->dy;
    if (plan_is_block(plan))
        STATUS_TRY(block_backward(stream, plan, l, &dz));
    else
        STATUS_TRY(bias_relu_backward(stream, plan, l, dz));
    return l->dx ? conv_gradients(stream, plan, l, dz)
                 : conv_weights(stream, stream->handle, stream->conv, plan, l, dz);
}

static enum status dense_backward(struct stream *stream, const struct plan *plan, const struct local *l) {
    int in = (int)shape_size(plan->op.in), out = plan->out.c;
    STATUS_TRY(
        named(stream, gemm_weights_gradient(stream->gemm, plan->images, in, out, l->x, l->dy, l->grads[0])));
    if (!l->dx)
        return STATUS_OK;
    return named(stream, gemm_input_gradient(stream->gemm, plan->images, in, out, l->dy,
                                             dense_weights(plan, l), l->dx));
}

static enum status find_backward(struct stream *stream, const struct plan *plan, const struct plan_args *args,
                                 struct local *l) {
    const struct device *d = plan->device;
    size_t in = input_bytes(plan), out = output_bytes(plan, plan_output_type(plan));
    int gpu = stream->gpu;
    STATUS_TRY(memory_local(d, gpu, args->x, plan->info.backward_reads_x ? in : 0, "the input", &l->x));
    STATUS_TRY(memory_local(d, gpu, args->y, plan->info.backward_reads_y ? out : 0, "the output", &l->y));
    STATUS_TRY(
        memory_local(d, gpu, args->dy, output_bytes(plan, plan_type(plan)), "the output's gradient", &l->dy));
    STATUS_TRY(memory_local(d, gpu, args->dx, args->dx.data ? in : 0, "the input's gradient", &l->dx));
    for (int i = 0; i < plan->info.taken; i++)
        STATUS_TRY(memory_local(d, gpu, args->grads[i], parameter_bytes(plan, i), "a parameter's gradient",
                                &l->grads[i]));
    return find_common(stream, plan, args, l);
}

enum status cuda_backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct local l = {0};
    cudaStream_t s = stream->handle;
    enum cuda_type type = plan_type(plan);
    if (!plan->training)
        return status_fail(STATUS_INTERNAL, "backward of a plan that was made for forward only");
    STATUS_TRY(find_backward(stream, plan, args, &l));
    STATUS_TRY(worker_use(stream));
    switch (plan->op.kind) {
    case OP_CONV:
        return conv_backward(stream, plan, &l);
    case OP_DENSE:
        STATUS_TRY(bias_relu_backward(stream, plan, &l, l.dy));
        return dense_backward(stream, plan, &l);
    case OP_MAX_POOL:
        return !l.dx ? STATUS_OK
                     : launched(stream,
                                cuda_max_pool_backward(s, type, &plan->op, plan->images, l.dy, l.saved, l.dx),
                                plan);
    case OP_LRN:
        return !l.dx ? STATUS_OK
                     : launched(stream,
                                cuda_lrn_backward(s, type, &plan->op.lrn, input_pixels(plan), plan->op.in.c,
                                                  l.x, l.dy, l.dx),
                                plan);
    default:
        return bias_relu_backward(stream, plan, &l, l.dx);
    }
}

static enum status labels_room(struct stream *stream, int images) {
    if (stream->labels_room >= images)
        return STATUS_OK;
    if (stream->labels)
        (void)cudaFree(stream->labels); /* waits for whoever reads them */
    stream->labels = NULL;
    stream->labels_room = 0;
    void *labels;
    STATUS_TRY(gpu_checked(stream->device, stream->gpu, cudaMalloc(&labels, (size_t)images * sizeof(int32_t)),
                           "make room for labels"));
    stream->labels = labels;
    stream->labels_room = images;
    return STATUS_OK;
}

static enum status send_labels(struct stream *stream, const struct loss_args *a, const int32_t **out) {
    STATUS_TRY(labels_room(stream, a->images));
    *out = stream->labels;
    return staging_send(stream->device, stream->gpu, stream->handle, stream->labels, a->labels,
                        (size_t)a->images * sizeof *a->labels);
}

enum status cuda_loss(struct stream *stream, const struct loss_args *a) {
    struct device *d = stream->device;
    int gpu = stream->gpu;
    if (a->images < 1 || a->classes < 1)
        return status_fail(STATUS_INTERNAL, "loss of %d images with %d classes", a->images, a->classes);
    for (int n = 0; n < a->images; n++)
        if (a->labels[n] < 0 || a->labels[n] >= a->classes)
            return status_fail(STATUS_INTERNAL, "label %d of image %d: expected 0 to %d", (int)a->labels[n],
                               n, a->classes - 1);
    size_t images = (size_t)a->images, values = images * (size_t)a->classes;
    enum cuda_type type = device_type(d), logits_type = a->real_logits ? CUDA_TYPE_F32 : type;
    void *logits, *losses, *probabilities, *dlogits;
    STATUS_TRY(memory_local(d, gpu, a->logits, values * cuda_type_bytes(logits_type), "the logits", &logits));
    STATUS_TRY(memory_local(d, gpu, a->losses, images * sizeof(float), "the losses", &losses));
    STATUS_TRY(memory_local(d, gpu, a->probabilities, a->probabilities.data ? values * sizeof(float) : 0,
                            "the probabilities", &probabilities));
    STATUS_TRY(memory_local(d, gpu, a->dlogits, a->dlogits.data ? values * cuda_type_bytes(type) : 0,
                            "the logits' gradient", &dlogits));
    STATUS_TRY(worker_use(stream));
    const int32_t *labels;
    if (stream->graph)
        labels = graph_labels(stream->graph);
    else
        STATUS_TRY(send_labels(stream, a, &labels));
    return gpu_checked(d, gpu,
                       cuda_softmax_loss(stream->handle, a->images, a->classes, logits_type, logits, labels,
                                         a->scale, losses, probabilities, type, dlogits),
                       "compute the losses");
}
