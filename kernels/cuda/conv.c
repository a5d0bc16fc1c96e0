#include "kernels/cuda/conv_impl.h"
#include "kernels/cuda/kept.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/runtime.h"

#include <stdlib.h>

enum { CANDIDATES = ENGINES_MAX }; /* how many of the heuristics' best are measured */

struct chosen {
    bool used;
    struct conv_graph graph; /* the engine refers to it */
    struct engine engine;
};

struct conv_plan {
    struct conv_request request; /* op points to `op` */
    struct op op;
    struct chosen chosen[CONV_PASSES];
    size_t workspace;
    int users;              /* those who hold it, and the cache */
    struct conv_plan *next; /* in the cache */
};

/* What was chosen for a layer once. */
struct remembered {
    struct remembered *next;
    struct conv_request request; /* op points to `op` */
    struct op op;
    enum conv_pass pass;
    bool fused;
    struct engine_choice choice;
};

struct conv_context {
    cudaStream_t stream;
    cudnnHandle_t handle;
    struct conv_plan *plans; /* all that were made with this context */
    struct remembered *choices;
    struct kept *kept; /* those of earlier runs, or NULL */
};

/* ---- contexts */

enum status conv_context_new(cudaStream_t stream, struct conv_context **out) {
    struct conv_context *context = calloc(1, sizeof *context);
    if (!context)
        return status_fail(STATUS_NO_MEMORY, "no memory for a context of cuDNN");
    context->stream = stream;
    enum status status = cudnn_checked(cudnnCreate(&context->handle), "start");
    if (status == STATUS_OK)
        status = cudnn_checked(cudnnSetStream(context->handle, stream), "use a stream");
    if (status != STATUS_OK) {
        conv_context_free(context);
        return status;
    }
    *out = context;
    return STATUS_OK;
}

void conv_context_free(struct conv_context *context) {
    if (!context)
        return;
    for (struct conv_plan *plan = context->plans, *next; plan; plan = next) {
        next = plan->next;
        conv_plan_free(plan);
    }
    for (struct remembered *r = context->choices, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    if (context->handle)
        (void)cudnnDestroy(context->handle);
    kept_close(context->kept);
    free(context);
}

void conv_context_keep(struct conv_context *context, const char *path, const char *gpu) {
    kept_close(context->kept);
    context->kept = kept_open(path, gpu);
}

/* ---- plans */

size_t conv_tensor_bytes(const struct conv_request *request, enum conv_tensor tensor) {
    const struct op *op = request->op;
    size_t element = cuda_type_bytes(conv_type(request->precision)), images = (size_t)request->images;
    switch (tensor) {
    case CONV_X:
        return images * shape_size(op->in) * element;
    case CONV_WEIGHTS:
        return op_parameter_size(op) * element;
    case CONV_Z:
        return images * shape_size(op->out) * element;
    case CONV_BIAS:
        return (size_t)op->out.c * element;
    }
    return 0;
}

static void chosen_free(struct chosen *c) {
    if (c->engine.plan)
        engines_free(&c->engine, 1);
    conv_graph_free(&c->graph);
    *c = (struct chosen){0};
}

static bool same_window(const struct op_window *a, const struct op_window *b) {
    return a->kernel_h == b->kernel_h && a->kernel_w == b->kernel_w && a->stride == b->stride &&
           a->pad_top == b->pad_top && a->pad_left == b->pad_left && a->pad_bottom == b->pad_bottom &&
           a->pad_right == b->pad_right;
}

static bool same_shape(struct shape a, struct shape b) {
    return a.h == b.h && a.w == b.w && a.c == b.c;
}

/* ---- the same engine for all shards of a layer
 *
 * An image's forward bytes must not hang on the shard it is in, and what cuDNN advises, or measuring finds,
 * does hang on the number of images. So a layer's forward engine is chosen once, with its tiles and splits,
 * and kept for every other number of images as long as cuDNN builds it for them. With `deterministic` it is
 * the one that is advised for ENGINE_REFERENCE_IMAGES, for all passes, so that neither the order of plans nor
 * a measurement decides. */

static bool same_layer(const struct conv_request *a, const struct conv_request *b) {
    return same_shape(a->op->in, b->op->in) && same_shape(a->op->out, b->op->out) &&
           same_window(&a->op->window, &b->op->window) && a->bias == b->bias && a->relu == b->relu &&
           a->deterministic == b->deterministic && a->precision == b->precision;
}

/* A choice made before: for the same layer, pass and (unless any will do) number of images; NULL: none. */
static const struct remembered *recall(const struct conv_context *context, const struct conv_request *request,
                                       enum conv_pass pass, bool fused, bool any_images) {
    for (const struct remembered *r = context->choices; r; r = r->next)
        if (r->pass == pass && r->fused == fused && same_layer(&r->request, request) &&
            (any_images || r->request.images == request->images))
            return r;
    return NULL;
}

/* Without memory for it nothing is remembered: a matter of speed and of the last bits. */
static const struct remembered *remember(struct conv_context *context, const struct conv_request *request,
                                         enum conv_pass pass, const struct chosen *chosen) {
    struct remembered *r = malloc(sizeof *r);
    if (!r || engine_choice_of(&chosen->engine, &r->choice) != STATUS_OK) {
        free(r);
        return NULL;
    }
    r->request = *request;
    r->op = *request->op;
    r->request.op = &r->op;
    r->pass = pass;
    r->fused = chosen->graph.fused;
    r->next = context->choices;
    context->choices = r;
    return r;
}

/* The best of what cuDNN has for this request. */
static enum status choose_best(struct conv_context *context, const struct conv_request *request,
                               enum conv_pass pass, bool fused, struct chosen *out) {
    struct engine engines[ENGINES_MAX];
    struct engine_wish wish = {.deterministic = request->deterministic,
                               .precision = request->precision,
                               .workspace_max = engines_workspace_max(request),
                               .count = request->deterministic ? 1 : CANDIDATES};
    int count = 0, best = 0;
    enum status status = conv_graph_make(request, pass, fused, context->handle, &out->graph);
    if (status == STATUS_OK)
        status = engines_find(&out->graph, &wish, engines, &count);
    if (status == STATUS_OK)
        status = conv_measure(context->handle, context->stream, request, &out->graph, engines, count, &best);
    if (status == STATUS_OK) {
        out->engine = engines[best];
        engines[best] = engines[--count];
    }
    engines_free(engines, count);
    if (status != STATUS_OK)
        chosen_free(out);
    out->used = status == STATUS_OK;
    return status;
}

/* What was chosen before, for this request. */
static enum status choose_again(struct conv_context *context, const struct conv_request *request,
                                enum conv_pass pass, bool fused, const struct engine_choice *choice,
                                struct chosen *out) {
    struct engine_wish wish = {.deterministic = request->deterministic,
                               .precision = request->precision,
                               .workspace_max = engines_workspace_max(request)};
    enum status status = conv_graph_make(request, pass, fused, context->handle, &out->graph);
    if (status == STATUS_OK)
        status = engine_again(&out->graph, choice, &wish, &out->engine);
    if (status != STATUS_OK)
        chosen_free(out);
    out->used = status == STATUS_OK;
    return status;
}

/* Neither measured nor taken before by this context: as an earlier run found it, or as is found now. */
static enum status choose_anew(struct conv_context *context, const struct conv_request *request,
                               enum conv_pass pass, bool fused, bool first, struct chosen *out) {
    struct engine_choice choice;
    bool keeps = !request->deterministic;
    if (keeps && kept_find(context->kept, request, pass, fused, &choice) &&
        choose_again(context, request, pass, fused, &choice, out) == STATUS_OK) {
        if (first)
            (void)remember(context, request, pass, out);
        return STATUS_OK;
    }
    STATUS_TRY(choose_best(context, request, pass, fused, out));
    const struct remembered *r = first ? remember(context, request, pass, out) : NULL;
    if (keeps && r)
        kept_add(context->kept, request, pass, fused, &r->choice);
    return STATUS_OK;
}

static enum status choose(struct conv_context *context, const struct conv_request *request,
                          enum conv_pass pass, bool fused, struct chosen *out) {
    bool any_images = request->deterministic || pass == CONV_FORWARD;
    const struct remembered *before = recall(context, request, pass, fused, any_images);
    if (!before && request->deterministic && request->images != ENGINE_REFERENCE_IMAGES) {
        struct conv_request reference = *request;
        struct chosen chosen = {0};
        reference.images = ENGINE_REFERENCE_IMAGES;
        STATUS_TRY(choose_best(context, &reference, pass, fused, &chosen));
        (void)remember(context, &reference, pass, &chosen);
        chosen_free(&chosen);
        before = recall(context, request, pass, fused, true);
    }
    if (before && choose_again(context, request, pass, fused, &before->choice, out) == STATUS_OK)
        return STATUS_OK;
    return choose_anew(context, request, pass, fused, !before, out);
}

/* What another GPU of the same kind took for the same request. */
static void remember_all(struct conv_context *context, const struct conv_plan *like) {
    for (int i = 0; i < CONV_PASSES; i++) {
        const struct chosen *c = &like->chosen[i];
        if (c->used && !recall(context, &like->request, (enum conv_pass)i, c->graph.fused, false))
            (void)remember(context, &like->request, (enum conv_pass)i, c);
    }
}

static enum status choose_all(struct conv_context *context, struct conv_plan *plan) {
    const struct conv_request *r = &plan->request;
    bool fused = r->bias || r->relu;
    enum status status = choose(context, r, CONV_FORWARD, fused, &plan->chosen[CONV_FORWARD]);
    if (status == STATUS_UNSUPPORTED && fused) /* the rest by our own kernel then */
        status = choose(context, r, CONV_FORWARD, false, &plan->chosen[CONV_FORWARD]);
    if (status == STATUS_OK && r->training)
        status = choose(context, r, CONV_WEIGHTS_GRADIENT, false, &plan->chosen[CONV_WEIGHTS_GRADIENT]);
    if (status == STATUS_OK && r->training && r->input_gradient)
        status = choose(context, r, CONV_INPUT_GRADIENT, false, &plan->chosen[CONV_INPUT_GRADIENT]);
    return status;
}

static size_t aligned(size_t bytes) {
    return (bytes + 255) & ~(size_t)255;
}

static void lay_out(struct conv_plan *plan) {
    for (int i = 0; i < CONV_PASSES; i++)
        if (plan->chosen[i].used && plan->chosen[i].engine.workspace > plan->workspace)
            plan->workspace = plan->chosen[i].engine.workspace;
    plan->workspace = aligned(plan->workspace);
}

static bool same_request(const struct conv_request *a, const struct conv_request *b) {
    return same_layer(a, b) && a->images == b->images && a->training == b->training &&
           a->input_gradient == b->input_gradient;
}

enum status conv_plan_new(struct conv_context *context, const struct conv_request *request,
                          const struct conv_plan *like, struct conv_plan **out) {
    for (struct conv_plan *plan = context->plans; plan; plan = plan->next)
        if (same_request(&plan->request, request)) {
            plan->users++;
            *out = plan;
            return STATUS_OK;
        }
    struct conv_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return status_fail(STATUS_NO_MEMORY, "no memory for a convolution's plan");
    plan->request = *request;
    plan->op = *request->op;
    plan->request.op = &plan->op;
    plan->users = 1;
    if (like)
        remember_all(context, like);
    enum status status = choose_all(context, plan);
    if (status != STATUS_OK) {
        conv_plan_free(plan);
        return status;
    }
    lay_out(plan);
    plan->users++;
    plan->next = context->plans;
    context->plans = plan;
    *out = plan;
    return STATUS_OK;
}

void conv_plan_free(struct conv_plan *plan) {
    if (!plan || --plan->users > 0)
        return;
    for (int i = 0; i < CONV_PASSES; i++)
        chosen_free(&plan->chosen[i]);
    free(plan);
}

size_t conv_plan_workspace(const struct conv_plan *plan) {
    return plan->workspace;
}

/* ---- calls */

enum status conv_execute(cudnnHandle_t handle, const struct engine *engine,
                         const struct conv_tensors *tensors, void *workspace) {
    cudnnBackendDescriptor_t pack = NULL;
    int64_t names[CONV_BIAS];
    const void *addresses[CONV_BIAS];
    int count = 0;
    for (int i = CONV_X; i <= CONV_BIAS; i++)
        if (tensors->at[i]) {
            names[count] = i;
            addresses[count++] = tensors->at[i];
        }
    STATUS_TRY(cudnn_make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
    enum status status = cudnn_set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
                                   (const void *)addresses);
    if (status == STATUS_OK)
        status = cudnn_set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, names);
    if (status == STATUS_OK)
        status = cudnn_set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    if (status == STATUS_OK)
        status = cudnn_finish(pack, "put a convolution's tensors together");
    if (status == STATUS_OK)
        status = cudnn_checked(cudnnBackendExecute(handle, engine->plan, pack), "compute a convolution");
    cudnnBackendDestroyDescriptor(pack);
    return status;
}

static enum status run(struct conv_context *context, const struct conv_plan *plan, enum conv_pass pass,
                       const struct conv_tensors *tensors, void *workspace) {
    const struct chosen *chosen = &plan->chosen[pass];
    if (!chosen->used)
        return status_fail(STATUS_INTERNAL, "a convolution was not planned for this pass");
    return conv_execute(context->handle, &chosen->engine, tensors, workspace);
}

enum status conv_forward(struct conv_context *context, const struct conv_plan *plan, const void *x,
                         const void *weights, const void *bias, const float *bias_floats, void *y,
                         void *workspace) {
    const struct conv_request *r = &plan->request;
    enum cuda_type type = conv_type(r->precision);
    bool fused = plan->chosen[CONV_FORWARD].graph.fused;
    struct conv_tensors tensors = {{0}};
    tensors.at[CONV_X] = x;
    tensors.at[CONV_WEIGHTS] = weights;
    tensors.at[CONV_Z] = y;
    if (fused && r->bias)
        tensors.at[CONV_BIAS] = bias;
    STATUS_TRY(run(context, plan, CONV_FORWARD, &tensors, workspace));
    if (fused || !(r->bias || r->relu))
        return STATUS_OK;
    size_t rows = (size_t)r->images * (size_t)r->op->out.h * (size_t)r->op->out.w;
    return cuda_checked(cuda_bias_relu(context->stream, type, y, r->bias ? bias_floats : NULL, type, y, rows,
                                       r->op->out.c, r->relu),
                        "add a bias");
}

enum status conv_input_gradient(struct conv_context *context, const struct conv_plan *plan, const void *dz,
                                const void *weights, void *dx, void *workspace) {
    struct conv_tensors tensors = {{0}};
    tensors.at[CONV_X] = dx;
    tensors.at[CONV_WEIGHTS] = weights;
    tensors.at[CONV_Z] = dz;
    return run(context, plan, CONV_INPUT_GRADIENT, &tensors, workspace);
}

enum status conv_weights_gradient(struct conv_context *context, const struct conv_plan *plan, const void *x,
                                  const void *dz, void *dweights, void *workspace) {
    struct conv_tensors tensors = {{0}};
    tensors.at[CONV_X] = x;
    tensors.at[CONV_WEIGHTS] = dweights;
    tensors.at[CONV_Z] = dz;
    return run(context, plan, CONV_WEIGHTS_GRADIENT, &tensors, workspace);
}
