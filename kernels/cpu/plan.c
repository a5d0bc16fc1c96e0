#include "kernels/cpu/impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_line(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void add_line(char *text, size_t size, const char *format, ...) {
    size_t used = strlen(text);
    if (used && used + 1 < size)
        text[used++] = '\n';
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

static enum status request_check(const struct plan_request *request) {
    if (!request->ops || request->count < 1)
        return status_fail(STATUS_INTERNAL, "plan: no operations were given");
    if (request->images < 1)
        return status_fail(STATUS_INTERNAL, "plan: %d images; at least 1 is needed", request->images);
    for (int i = 0; i < request->count && i < PLAN_MAX_OPS; i++)
        STATUS_TRY(op_verify(&request->ops[i]));
    for (int i = 0; i < request->count; i++)
        STATUS_TRY(op_verify(&request->ops[i]));
    return STATUS_OK;
}

static bool known(const struct cpu_implementation *const *list, const char *name, char *names, size_t size) {
    bool found = false;
    const char *last = "";
    for (; *list; list++) {
        found = found || strcmp((*list)->name, name) == 0;
        if (strcmp((*list)->name, last) != 0) {
            size_t used = strlen(names);
            snprintf(names + used, size - used, "%s%s", used ? ", " : "", (*list)->name);
        }
        last = (*list)->name;
    }
    return found;
}

/* Ask the implementations called `only` (NULL: all) in order. How many operations the first one takes that
 * takes any; 0: none did. */
static int choose(const struct device *device, const struct plan_request *request, const char *only,
                  struct plan *plan) {
    for (const struct cpu_implementation *const *list = cpu_implementations(device->isa); *list; list++) {
        if (only && strcmp((*list)->name, only) != 0)
            continue;
        char reason[256] = "";
        int taken = (*list)->takes(device, request, reason, sizeof reason);
        if (taken > 0) {
            plan->implementation = *list;
            return taken;
        }
        add_line(plan->refusals, sizeof plan->refusals, "%s: %s", (*list)->name, reason);
    }
    return 0;
}

enum status cpu_plan(struct device *device, const struct plan_request *request, struct plan **out) {
    *out = NULL;
    STATUS_TRY(request_check(request));
    char names[256] = "";
    if (request->force && !known(cpu_implementations(device->isa), request->force, names, sizeof names))
        return status_fail(STATUS_UNSUPPORTED, "implementation %s is not known on this device; there are: %s",
                           request->force, names);
    struct plan_request offered = *request;
    if (offered.count > PLAN_MAX_OPS)
        offered.count = PLAN_MAX_OPS;

    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return status_fail(STATUS_NO_MEMORY, "no memory for a plan");
    int taken = request->force ? choose(device, &offered, request->force, plan) : 0;
    if (!taken)
        taken = choose(device, &offered, NULL, plan);
    if (!taken) {
        enum status status = status_fail(
            STATUS_UNSUPPORTED, "no implementation does %s %dx%dx%d -> %dx%dx%d:\n%s",
            op_kind_name(request->ops->kind), request->ops->in.h, request->ops->in.w, request->ops->in.c,
            request->ops->out.h, request->ops->out.w, request->ops->out.c, plan->refusals);
        free(plan);
        return status;
    }
    plan->device = device;
    memcpy(plan->ops, request->ops, (size_t)taken * sizeof *plan->ops);
    plan->images = request->images;
    plan->training = request->training;
    plan->input_gradient = request->input_gradient;
    plan->info.taken = taken;
    snprintf(plan->info.implementation, sizeof plan->info.implementation, "%s", plan->implementation->name);
    /* oneDNN makes its primitives for the number of threads it may use when they are made. */
    int before = library_enter(&device->library);
    enum status status = plan->implementation->plan ? plan->implementation->plan(plan) : STATUS_OK;
    library_leave(&device->library, before);
    if (status != STATUS_OK) {
        cpu_plan_free(plan);
        return status;
    }
    *out = plan;
    return STATUS_OK;
}

const struct plan_info *cpu_plan_info(const struct plan *plan) {
    return &plan->info;
}

const char *cpu_plan_refusals(const struct plan *plan) {
    return plan->refusals;
}

void cpu_plan_free(struct plan *plan) {
    if (!plan)
        return;
    if (plan->implementation->free)
        plan->implementation->free(plan);
    free(plan);
}

static enum status check(const struct plan *plan, const char *what, struct span span, size_t bytes) {
    if (bytes == 0 || (span.data && span.bytes >= bytes))
        return STATUS_OK;
    return status_fail(STATUS_INTERNAL, "%s: %s has %zu bytes, the plan for %d images needs %zu",
                       plan->info.implementation, what, span.data ? span.bytes : 0, plan->images, bytes);
}

static enum status check_each(const struct plan *plan, const char *what, const struct span *spans) {
    for (int i = 0; i < plan->info.taken; i++)
        STATUS_TRY(check(plan, what, spans[i], op_parameter_size(&plan->ops[i]) * sizeof(float)));
    return STATUS_OK;
}

static size_t in_bytes(const struct plan *plan) {
    return (size_t)plan->images * shape_size(plan->ops[0].in) * sizeof(float);
}

static size_t out_bytes(const struct plan *plan) {
    return (size_t)plan->images * shape_size(plan->ops[plan->info.taken - 1].out) * sizeof(float);
}

enum status cpu_prepare(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    if (!plan->implementation->prepare)
        return STATUS_OK;
    STATUS_TRY(check_each(plan, "a parameter", args->params));
    STATUS_TRY(check(plan, "the prepared memory", args->prepared, plan->info.prepared_bytes));
    return plan->implementation->prepare(stream, plan, args);
}

enum status cpu_forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    STATUS_TRY(check(plan, "the input", args->x, in_bytes(plan)));
    STATUS_TRY(check(plan, "the output", args->y, out_bytes(plan)));
    STATUS_TRY(check_each(plan, "a parameter", args->params));
    STATUS_TRY(check(plan, "the saved memory", args->saved, plan->info.saved_bytes));
    STATUS_TRY(check(plan, "the scratch memory", args->scratch, plan->info.scratch_bytes));
    STATUS_TRY(check(plan, "the prepared memory", args->prepared, plan->info.prepared_bytes));
    return plan->implementation->forward(stream, plan, args);
}

enum status cpu_backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    if (!plan->training)
        return status_fail(STATUS_INTERNAL, "%s: backward of a plan made for forward only",
                           plan->info.implementation);
    STATUS_TRY(check(plan, "the gradient of the output", args->dy, out_bytes(plan)));
    if (plan->input_gradient)
        STATUS_TRY(check(plan, "the gradient of the input", args->dx, in_bytes(plan)));
    if (plan->info.backward_reads_x)
        STATUS_TRY(check(plan, "the input", args->x, in_bytes(plan)));
    if (plan->info.backward_reads_y)
        STATUS_TRY(check(plan, "the output", args->y, out_bytes(plan)));
    STATUS_TRY(check_each(plan, "a parameter", args->params));
    if (!plan->info.gradients_later || args->grads[0].data)
        STATUS_TRY(check_each(plan, "a gradient", args->grads));
    STATUS_TRY(check(plan, "the saved memory", args->saved, plan->info.saved_bytes));
    STATUS_TRY(check(plan, "the scratch memory", args->scratch, plan->info.scratch_bytes));
    STATUS_TRY(check(plan, "the prepared memory", args->prepared, plan->info.prepared_bytes));
    return plan->implementation->backward(stream, plan, args);
}

enum status cpu_gradients(struct stream *stream, const struct plan *plan, const struct plan_args *args,
                          int part, int parts, bool add) {
    if (!plan->training || !plan->info.gradients_later)
        return status_fail(STATUS_INTERNAL, "%s: its gradients are made by backward",
                           plan->info.implementation);
    STATUS_TRY(check(plan, "the gradient of the output", args->dy, out_bytes(plan)));
    STATUS_TRY(check(plan, "the input", args->x, in_bytes(plan)));
    STATUS_TRY(check_each(plan, "a gradient", args->grads));
    return plan->implementation->gradients(stream, plan, args, part, parts, add);
}
