#include "kernels/cpu/onednn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status onednn_check(dnnl_status_t status, const char *what) {
    switch (status) {
    case dnnl_success:
        return STATUS_OK;
    case dnnl_out_of_memory:
        return status_fail(STATUS_NO_MEMORY, "oneDNN: %s: out of memory", what);
    case dnnl_unimplemented:
        return status_fail(STATUS_UNSUPPORTED, "oneDNN: %s: not implemented", what);
    default:
        return status_fail(STATUS_DEVICE, "oneDNN: %s failed with code %d", what, (int)status);
    }
}

static enum status open_streams(struct onednn *onednn) {
    ONEDNN_TRY(dnnl_engine_create(&onednn->engine, dnnl_cpu, 0));
    ONEDNN_TRY(dnnl_primitive_attr_create(&onednn->attributes));
    ONEDNN_TRY(dnnl_primitive_attr_set_scratchpad_mode(onednn->attributes, dnnl_scratchpad_mode_user));
    for (int i = 0; i < onednn->threads; i++)
        ONEDNN_TRY(dnnl_stream_create(&onednn->streams[i], onednn->engine, dnnl_stream_default_flags));
    return STATUS_OK;
}

enum status onednn_open(int threads, struct onednn **out) {
    *out = NULL;
    struct onednn *onednn = calloc(1, sizeof *onednn);
    dnnl_stream_t *streams = calloc((size_t)threads, sizeof *streams);
    if (!onednn || !streams) {
        free(onednn);
        free(streams);
        return status_fail(STATUS_NO_MEMORY, "no memory for oneDNN");
    }
    onednn->threads = threads;
    onednn->streams = streams;
    enum status status = open_streams(onednn);
    if (status != STATUS_OK) {
        onednn_close(onednn);
        return status;
    }
    *out = onednn;
    return STATUS_OK;
}

void onednn_close(struct onednn *onednn) {
    if (!onednn)
        return;
    for (int i = 0; i < onednn->threads; i++)
        if (onednn->streams[i])
            dnnl_stream_destroy(onednn->streams[i]);
    if (onednn->attributes)
        dnnl_primitive_attr_destroy(onednn->attributes);
    if (onednn->engine)
        dnnl_engine_destroy(onednn->engine);
    free(onednn->streams);
    free(onednn);
}

static enum status make_memories(struct onednn_call *call, const dnnl_memory_desc_t *layouts[]) {
    size_t total = (size_t)call->onednn->threads * (size_t)call->count;
    call->memory = calloc(total, sizeof *call->memory);
    call->set = calloc(total, sizeof *call->set);
    if (!call->memory || !call->set)
        return status_fail(STATUS_NO_MEMORY, "no memory for the arguments of a primitive");
    for (size_t i = 0; i < total; i++)
        ONEDNN_TRY(dnnl_memory_create(&call->memory[i], layouts[i % (size_t)call->count],
                                      call->onednn->engine, DNNL_MEMORY_NONE));
    return STATUS_OK;
}

/* Make the primitive of a description, with names and layouts of its arguments. */
static enum status call_build(struct onednn_call *call, const_dnnl_primitive_desc_t description) {
    const char *implementation = "";
    ONEDNN_TRY(dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, (void *)&implementation));
    snprintf(call->implementation, sizeof call->implementation, "%s", implementation);
    ONEDNN_TRY(dnnl_primitive_create(&call->primitive, description));

    const dnnl_memory_desc_t *scratchpad =
        dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
    call->scratchpad_bytes = scratchpad ? dnnl_memory_desc_get_size(scratchpad) : 0;
    if (call->scratchpad_bytes)
        call->names[call->count++] = DNNL_ARG_SCRATCHPAD;
    const dnnl_memory_desc_t *layouts[ONEDNN_MAX_ARGUMENTS];
    for (int i = 0; i < call->count; i++) {
        layouts[i] = call->names[i] == DNNL_ARG_SCRATCHPAD
                         ? scratchpad
                         : dnnl_primitive_desc_query_md(description, dnnl_query_exec_arg_md, call->names[i]);
        if (!layouts[i])
            return status_fail(STATUS_INTERNAL, "oneDNN: %s has no argument %d", call->implementation,
                               call->names[i]);
        call->bytes[i] = dnnl_memory_desc_get_size(layouts[i]);
    }
    return make_memories(call, layouts);
}

enum status onednn_call_new(const struct onednn *onednn, const void *description, dnnl_primitive_desc_t hint,
                            const int *names, int count, struct onednn_call *out,
                            dnnl_primitive_desc_t *keep) {
    *out = (struct onednn_call){.onednn = onednn, .count = count};
    memcpy(out->names, names, (size_t)count * sizeof *names);
    dnnl_primitive_desc_t built;
    ONEDNN_TRY(dnnl_primitive_desc_create(&built, description, onednn->attributes, onednn->engine, hint));
    enum status status = call_build(out, built);
    if (keep && status == STATUS_OK)
        *keep = built;
    else
        dnnl_primitive_desc_destroy(built);
    return status;
}

enum status onednn_reorder_new(const struct onednn *onednn, const dnnl_memory_desc_t *from,
                               const dnnl_memory_desc_t *to, struct onednn_call *out) {
    *out = (struct onednn_call){.onednn = onednn, .count = 2, .names = {DNNL_ARG_FROM, DNNL_ARG_TO}};
    dnnl_primitive_desc_t built;
    ONEDNN_TRY(dnnl_reorder_primitive_desc_create(&built, from, onednn->engine, to, onednn->engine,
                                                  onednn->attributes));
    enum status status = call_build(out, built);
    dnnl_primitive_desc_destroy(built);
    return status;
}

void onednn_call_free(struct onednn_call *call) {
    if (call->memory)
        for (size_t i = 0; i < (size_t)call->onednn->threads * (size_t)call->count; i++)
            if (call->memory[i])
                dnnl_memory_destroy(call->memory[i]);
    free(call->memory);
    free(call->set);
    if (call->primitive)
        dnnl_primitive_destroy(call->primitive);
    *call = (struct onednn_call){0};
}

void onednn_name(struct plan *plan, const struct onednn_call *forward) {
    snprintf(plan->info.implementation, sizeof plan->info.implementation, "onednn %s",
             forward->implementation);
}

enum status onednn_call_run(const struct onednn_call *call, int thread, void *const *data, void *scratchpad) {
    dnnl_exec_arg_t arguments[ONEDNN_MAX_ARGUMENTS];
    dnnl_memory_t *memory = call->memory + (size_t)thread * (size_t)call->count;
    void **set = call->set + (size_t)thread * (size_t)call->count;
    for (int i = 0; i < call->count; i++) {
        void *wanted = call->names[i] == DNNL_ARG_SCRATCHPAD ? scratchpad : data[i];
        if (set[i] != wanted) {
            ONEDNN_TRY(dnnl_memory_set_data_handle(memory[i], wanted));
            set[i] = wanted;
        }
        arguments[i] = (dnnl_exec_arg_t){call->names[i], memory[i]};
    }
    return onednn_check(
        dnnl_primitive_execute(call->primitive, call->onednn->streams[thread], call->count, arguments),
        call->implementation);
}

enum status onednn_layout(dnnl_memory_desc_t *out, int dimensions, const dnnl_dims_t sizes,
                          dnnl_format_tag_t format) {
    return onednn_check(dnnl_memory_desc_init_by_tag(out, dimensions, sizes, dnnl_f32, format),
                        "a tensor's layout");
}

enum status onednn_images_layout(dnnl_memory_desc_t *out, int images, struct shape shape) {
    const dnnl_dims_t sizes = {images, shape.c, shape.h, shape.w};
    return onednn_layout(out, 4, sizes, dnnl_nhwc);
}

struct onednn_window onednn_window_of(const struct op_window *window) {
    return (struct onednn_window){
        .strides = {window->stride, window->stride},
        .kernel = {window->kernel_h, window->kernel_w},
        .before = {window->pad_top, window->pad_left},
        .after = {window->pad_bottom, window->pad_right},
    };
}
