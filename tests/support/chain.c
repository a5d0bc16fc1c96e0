#include "tests/support/chain.h"

#include "tests/support/cmocka.h"

#include <stdio.h>
#include <string.h>

struct shape chain_shape(const struct chain *chain, int boundary) {
    if (boundary == 0)
        return chain->ops[0].in;
    const struct chain_group *group = &chain->group[boundary - 1];
    return chain->ops[group->first + group->taken - 1].out;
}

static enum status plan_groups(struct chain *chain, const char *force) {
    for (int done = 0; done < chain->count;) {
        struct chain_group *group = &chain->group[chain->groups];
        int left = chain->count - done;
        struct plan_request request = {.ops = chain->ops + done,
                                       .count = left < PLAN_MAX_OPS ? left : PLAN_MAX_OPS,
                                       .images = chain->images,
                                       .training = chain->training,
                                       .input_gradient = done > 0 || chain->input_gradient,
                                       .reaches_end = left <= PLAN_MAX_OPS,
                                       .force = force};
        STATUS_TRY(chain->device.ops->plan(chain->device.device, &request, &group->plan));
        group->info = chain->device.ops->plan_info(group->plan);
        group->first = done;
        group->taken = group->info->taken;
        chain->groups++;
        assert_in_range(group->taken, 1, request.count);
        done += group->taken;
    }
    return STATUS_OK;
}

static void allocate(struct chain *chain) {
    struct device_info info;
    expect_ok(chain->device.ops->describe(chain->device.device, &info), "describe");
    size_t element = (size_t)info.element_bytes, activation = (size_t)info.activation_bytes, scratch = 0;
    for (int b = 0; b <= chain->groups; b++) {
        size_t values = (size_t)chain->images * shape_size(chain_shape(chain, b));
        bool real = b > 0 && chain->group[b - 1].info->real_output;
        chain->value[b] = guarded_new(chain->device, values * (real ? element : activation));
        if (chain->training && (b > 0 || chain->input_gradient))
            chain->gradient[b] = guarded_new(chain->device, values * activation);
    }
    for (int i = 0; i < chain->count; i++) {
        size_t bytes = op_parameter_size(&chain->ops[i]) * element;
        chain->parameter[i] = guarded_new(chain->device, bytes);
        if (chain->training)
            chain->parameter_gradient[i] = guarded_new(chain->device, bytes);
    }
    for (int g = 0; g < chain->groups; g++) {
        struct chain_group *group = &chain->group[g];
        group->saved = guarded_new(chain->device, group->info->saved_bytes);
        group->prepared = guarded_new(chain->device, group->info->prepared_bytes);
        scratch = group->info->scratch_bytes > scratch ? group->info->scratch_bytes : scratch;
    }
    chain->scratch = guarded_new(chain->device, scratch);
}

enum status chain_open(struct chain *chain, struct device_handle device, const struct op *ops, int count,
                       int images, bool training, bool input_gradient, const char *force) {
    assert_in_range(count, 1, CHAIN_MAX);
    *chain = (struct chain){.device = device,
                            .count = count,
                            .images = images,
                            .training = training,
                            .input_gradient = input_gradient};
    memcpy(chain->ops, ops, (size_t)count * sizeof *ops);
    enum status status = plan_groups(chain, force);
    if (status == STATUS_OK)
        allocate(chain);
    else
        chain_close(chain);
    return status;
}

void chain_close(struct chain *chain) {
    for (int g = 0; g < chain->groups; g++) {
        chain->device.ops->plan_free(chain->group[g].plan);
        guarded_free(chain->device, &chain->group[g].saved);
        guarded_free(chain->device, &chain->group[g].prepared);
    }
    for (int b = 0; b <= chain->groups; b++) {
        guarded_free(chain->device, &chain->value[b]);
        guarded_free(chain->device, &chain->gradient[b]);
    }
    for (int i = 0; i < chain->count; i++) {
        guarded_free(chain->device, &chain->parameter[i]);
        guarded_free(chain->device, &chain->parameter_gradient[i]);
    }
    guarded_free(chain->device, &chain->scratch);
    chain->groups = 0;
}

static struct plan_args arguments(const struct chain *chain, int g) {
    const struct chain_group *group = &chain->group[g];
    struct plan_args args = {
        .x = chain->value[g].span,
        .y = chain->value[g + 1].span,
        .dy = chain->gradient[g + 1].span,
        .dx = chain->gradient[g].span,
        .saved = group->saved.span,
        .scratch = {chain->scratch.span.data, group->info->scratch_bytes},
        .prepared = group->prepared.span,
    };
    for (int i = 0; i < group->taken; i++) {
        args.params[i] = chain->parameter[group->first + i].span;
        args.grads[i] = chain->parameter_gradient[group->first + i].span;
    }
    return args;
}

enum status chain_prepare(struct chain *chain, struct stream *stream) {
    for (int g = 0; g < chain->groups && chain->device.ops->prepare; g++) {
        struct plan_args args = arguments(chain, g);
        STATUS_TRY(chain->device.ops->prepare(stream, chain->group[g].plan, &args));
    }
    return STATUS_OK;
}

enum status chain_forward(struct chain *chain, struct stream *stream) {
    for (int g = 0; g < chain->groups; g++) {
        struct plan_args args = arguments(chain, g);
        args.dy = args.dx = (struct span){NULL, 0};
        memset(args.grads, 0, sizeof args.grads);
        STATUS_TRY(chain->device.ops->forward(stream, chain->group[g].plan, &args));
    }
    return STATUS_OK;
}

void chain_forget_unread(struct chain *chain) {
    for (int b = 0; b <= chain->groups; b++) {
        bool read = (b < chain->groups && chain->group[b].info->backward_reads_x) ||
                    (b > 0 && chain->group[b - 1].info->backward_reads_y);
        if (!read)
            guarded_poison(chain->device, &chain->value[b]);
    }
}

enum status chain_backward(struct chain *chain, struct stream *stream) {
    for (int g = chain->groups - 1; g >= 0; g--) {
        struct plan_args args = arguments(chain, g);
        STATUS_TRY(chain->device.ops->backward(stream, chain->group[g].plan, &args));
    }
    return STATUS_OK;
}

void chain_check_guards(const struct chain *chain, const char *when) {
    char what[96];
#define CHECK(buffer, name, number)                                                                          \
    snprintf(what, sizeof what, "%s, " name " %d", when, number);                                            \
    guarded_check(chain->device, &(buffer), what)
    for (int b = 0; b <= chain->groups; b++) {
        CHECK(chain->value[b], "value", b);
        CHECK(chain->gradient[b], "gradient", b);
    }
    for (int i = 0; i < chain->count; i++) {
        CHECK(chain->parameter[i], "parameter of operation", i);
        CHECK(chain->parameter_gradient[i], "parameter's gradient of operation", i);
    }
    for (int g = 0; g < chain->groups; g++) {
        CHECK(chain->group[g].saved, "saved of group", g);
        CHECK(chain->group[g].prepared, "prepared of group", g);
    }
    CHECK(chain->scratch, "scratch", 0);
#undef CHECK
}

/* each() with chains as items: what runs side by side has buffers of its own. */
struct job {
    struct chain *chains;
    chain_step *step;
};

static enum status job_item(void *context, int item, int worker, struct stream *stream) {
    struct job *job = context;
    (void)worker;
    return job->step(&job->chains[item], stream);
}

void chain_run_all(struct chain *chains, int count, chain_step *step, const char *what) {
    struct job job = {chains, step};
    struct device_handle device = chains[0].device;
    for (int i = 0; i < count; i++)
        guarded_poison(device, &chains[i].scratch);
    expect_ok(device.ops->each(device.device, count, job_item, &job), what);
    device_finish(device);
    for (int i = 0; i < count; i++)
        chain_check_guards(&chains[i], what);
}

void chain_run(struct chain *chain, chain_step *step, const char *what) {
    chain_run_all(chain, 1, step, what);
}
