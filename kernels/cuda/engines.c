#include "kernels/cuda/engines.h"

#include <stdlib.h>

size_t engines_workspace_max(const struct conv_request *request) {
    size_t values = shape_size(request->op->in) + shape_size(request->op->out);
    return ((size_t)64 << 20) + 4 * (size_t)request->images * values;
}

/* A heuristic's answers: descriptors of configurations of engines. */
struct answers {
    cudnnBackendDescriptor_t heuristic, *configurations;
    int64_t count;
};

static void answers_free(struct answers *a) {
    for (int64_t i = 0; i < a->count; i++)
        if (a->configurations[i])
            cudnnBackendDestroyDescriptor(a->configurations[i]);
    free(a->configurations);
    if (a->heuristic)
        cudnnBackendDestroyDescriptor(a->heuristic);
    *a = (struct answers){0};
}

static enum status ask(const struct conv_graph *graph, cudnnBackendHeurMode_t mode,
                       cudnnBackendDescriptor_t device, struct answers *out) {
    *out = (struct answers){0};
    STATUS_TRY(cudnn_make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &out->heuristic));
    cudnnBackendDescriptor_t h = out->heuristic;
    STATUS_TRY(
        cudnn_set(h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->graph));
    STATUS_TRY(cudnn_set(h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode));
#if CUDNN_VERSION >= 90800
    if (device)
        STATUS_TRY(cudnn_set(h, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device));
#else
    if (device)
        return status_fail(STATUS_UNSUPPORTED, "cuDNN plans for a GPU that is not there from version 9.8 on");
#endif
    STATUS_TRY(cudnn_finish(h, "look for engines"));
    int64_t there = 0;
    STATUS_TRY(cudnn_checked(cudnnBackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &there, NULL),
                             "count engines"));
    if (there <= 0)
        return STATUS_OK;
    out->configurations = calloc((size_t)there, sizeof *out->configurations);
    if (!out->configurations)
        return status_fail(STATUS_NO_MEMORY, "no memory for %lld engines of cuDNN", (long long)there);
    for (; out->count < there; out->count++)
        STATUS_TRY(cudnn_make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &out->configurations[out->count]));
    int64_t filled = 0;
    STATUS_TRY(cudnn_checked(cudnnBackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, there, &filled,
                                                      out->configurations),
                             "list engines"));
    while (out->count > filled)
        cudnnBackendDestroyDescriptor(out->configurations[--out->count]);
    return STATUS_OK;
}

/* What an engine's notes say. */
struct notes {
    int64_t number;
    bool tensor_core, rounded, nondeterministic, coarse_winograd, compiled_now;
    bool coarse_sums; /* parts of a sum are rounded to the output's type before they are added up */
};

static enum status read_notes(cudnnBackendDescriptor_t configuration, struct notes *out) {
    cudnnBackendDescriptor_t engine = NULL;
    cudnnBackendNumericalNote_t numerical[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    cudnnBackendBehaviorNote_t behaviour[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    int64_t one = 0, numericals = 0, behaviours = 0;
    *out = (struct notes){0};
    STATUS_TRY(cudnn_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine));
    cudnnStatus_t s = cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE,
                                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one, &engine);
    if (s == CUDNN_STATUS_SUCCESS)
        s = cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &one,
                                     &out->number);
    if (s == CUDNN_STATUS_SUCCESS)
        s = cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                     CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &numericals, numerical);
    if (s == CUDNN_STATUS_SUCCESS)
        s = cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                     CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &behaviours, behaviour);
    /* how many there are, of which there was room for those that this version knows */
    numericals = numericals < CUDNN_NUMERICAL_NOTE_TYPE_COUNT ? numericals : CUDNN_NUMERICAL_NOTE_TYPE_COUNT;
    behaviours = behaviours < CUDNN_BEHAVIOR_NOTE_TYPE_COUNT ? behaviours : CUDNN_BEHAVIOR_NOTE_TYPE_COUNT;
    for (int64_t i = 0; s == CUDNN_STATUS_SUCCESS && i < numericals; i++) {
        out->tensor_core |= numerical[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        out->rounded |= numerical[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
        out->coarse_sums |= numerical[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
        out->nondeterministic |= numerical[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
        out->coarse_winograd |= numerical[i] == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13;
    }
    for (int64_t i = 0; s == CUDNN_STATUS_SUCCESS && i < behaviours; i++)
        out->compiled_now |= behaviour[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    enum status status = cudnn_checked(s, "describe an engine");
    cudnnBackendDestroyDescriptor(engine);
    return status;
}

static bool wanted(const struct notes *n, const struct engine_wish *wish, bool compile) {
    if (n->compiled_now != compile || n->coarse_sums || (wish->deterministic && n->nondeterministic))
        return false;
    return wish->precision != CUDA_F32 || (!n->tensor_core && !n->rounded && !n->coarse_winograd);
}

/* An engine's plan, if cuDNN can make it and its workspace is small enough; else *made false. */
static enum status build(const struct conv_graph *graph, cudnnBackendDescriptor_t configuration,
                         size_t workspace_max, struct engine *out, bool *made) {
    cudnnBackendDescriptor_t plan = NULL;
    int64_t one = 0, workspace = 0;
    *made = false;
    STATUS_TRY(cudnn_make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan));
    cudnnStatus_t s = cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &configuration);
    if (s == CUDNN_STATUS_SUCCESS && graph->handle)
        s = cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                                     &graph->handle);
    if (s == CUDNN_STATUS_SUCCESS)
        s = cudnnBackendFinalize(plan);
    if (s == CUDNN_STATUS_SUCCESS)
        s = cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                     &one, &workspace);
    if (s != CUDNN_STATUS_SUCCESS || workspace < 0 || (uint64_t)workspace > workspace_max) {
        cudnnBackendDestroyDescriptor(plan); /* an engine that can't is passed over: the next one may */
        return STATUS_OK;
    }
    out->plan = plan;
    out->workspace = (size_t)workspace;
    *made = true;
    return STATUS_OK;
}

static enum status take(const struct conv_graph *graph, const struct engine_wish *wish,
                        struct answers *answers, bool compile, struct engine *engines, int *count) {
    for (int64_t i = 0; i < answers->count && *count < wish->count; i++) {
        struct notes notes;
        bool made;
        if (!answers->configurations[i]) /* taken */
            continue;
        STATUS_TRY(read_notes(answers->configurations[i], &notes));
        if (!wanted(&notes, wish, compile))
            continue;
        struct engine *e = &engines[*count];
        *e = (struct engine){NULL, NULL, 0, notes.number, notes.tensor_core, notes.nondeterministic, compile};
        STATUS_TRY(build(graph, answers->configurations[i], wish->workspace_max, e, &made));
        if (made) {
            e->configuration = answers->configurations[i];
            answers->configurations[i] = NULL;
            ++*count;
        }
    }
    return STATUS_OK;
}

enum status engines_find(const struct conv_graph *graph, const struct engine_wish *wish,
                         struct engine engines[ENGINES_MAX], int *count) {
    static const cudnnBackendHeurMode_t modes[2] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    struct answers answers[2] = {{0}};
    enum status asked[2], status = STATUS_OK;
    int64_t there = 0;
    *count = 0;
    for (int m = 0; m < 2; m++) { /* one that has no answer leaves it to the other */
        asked[m] = ask(graph, modes[m], wish->device, &answers[m]);
        there += answers[m].count;
    }
    for (int pass = 0; pass < 4 && status == STATUS_OK && !(*count && pass == 2); pass++)
        if (asked[pass % 2] == STATUS_OK)
            status = take(graph, wish, &answers[pass % 2], pass >= 2, engines, count);
    if (status == STATUS_OK && !*count) {
        if (asked[0] == STATUS_OK || asked[1] == STATUS_OK)
            status = status_fail(STATUS_UNSUPPORTED,
                                 "none of cuDNN's %lld engines for this convolution is %sof the precision "
                                 "asked for and content with %zu bytes of workspace",
                                 (long long)there, wish->deterministic ? "deterministic, " : "",
                                 wish->workspace_max);
        else
            status = asked[1]; /* its text is the newest */
    }
    if (status != STATUS_OK) {
        engines_free(engines, *count);
        *count = 0;
    }
    for (int m = 0; m < 2; m++)
        answers_free(&answers[m]);
    return status;
}

void engines_free(struct engine *engines, int count) {
    for (int i = 0; i < count; i++) {
        cudnnBackendDestroyDescriptor(engines[i].plan);
        cudnnBackendDestroyDescriptor(engines[i].configuration);
    }
}

/* ---- the same engine again */

/* Up to ENGINE_KNOBS descriptors of knobs' settings. */
struct knobs {
    cudnnBackendDescriptor_t made[ENGINE_KNOBS];
    int count;
};

static void knobs_free(struct knobs *k) {
    while (k->count)
        cudnnBackendDestroyDescriptor(k->made[--k->count]);
}

static enum status knobs_make(struct knobs *k, int64_t count) {
    if (count > ENGINE_KNOBS)
        return status_fail(STATUS_UNSUPPORTED, "an engine of cuDNN has %lld knobs, more than %d",
                           (long long)count, ENGINE_KNOBS);
    for (; k->count < count; k->count++)
        STATUS_TRY(cudnn_make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &k->made[k->count]));
    return STATUS_OK;
}

static enum status read_knobs(cudnnBackendDescriptor_t configuration, struct knobs *k,
                              struct engine_choice *out) {
    int64_t there = 0, one = 0;
    STATUS_TRY(cudnn_checked(cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &there, NULL),
                             "count an engine's knobs"));
    STATUS_TRY(knobs_make(k, there));
    if (there)
        STATUS_TRY(
            cudnn_checked(cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, there, &there, k->made),
                          "list an engine's knobs"));
    for (out->knobs = 0; out->knobs < there; out->knobs++) {
        cudnnBackendDescriptor_t knob = k->made[out->knobs];
        STATUS_TRY(
            cudnn_checked(cudnnBackendGetAttribute(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                                   CUDNN_TYPE_KNOB_TYPE, 1, &one, &out->type[out->knobs]),
                          "read a knob"));
        STATUS_TRY(cudnn_checked(cudnnBackendGetAttribute(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                                                          CUDNN_TYPE_INT64, 1, &one, &out->value[out->knobs]),
                                 "read a knob"));
    }
    return STATUS_OK;
}

enum status engine_choice_of(const struct engine *engine, struct engine_choice *out) {
    struct knobs knobs = {{NULL}, 0};
    *out = (struct engine_choice){.number = engine->number};
    enum status status = read_knobs(engine->configuration, &knobs, out);
    knobs_free(&knobs);
    return status;
}

static enum status set_knobs(cudnnBackendDescriptor_t configuration, struct knobs *k,
                             const struct engine_choice *choice) {
    STATUS_TRY(knobs_make(k, choice->knobs));
    for (int i = 0; i < choice->knobs; i++) {
        STATUS_TRY(cudnn_set(k->made[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1,
                             &choice->type[i]));
        STATUS_TRY(
            cudnn_set(k->made[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &choice->value[i]));
        STATUS_TRY(cudnn_finish(k->made[i], "set a knob"));
    }
    return choice->knobs ? cudnn_set(configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, choice->knobs, k->made)
                         : STATUS_OK;
}

static enum status configure(const struct conv_graph *graph, const struct engine_choice *choice,
                             cudnnBackendDescriptor_t device, cudnnBackendDescriptor_t engine,
                             cudnnBackendDescriptor_t configuration, struct knobs *knobs) {
    STATUS_TRY(cudnn_set(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                         &graph->graph));
    STATUS_TRY(cudnn_set(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &choice->number));
#if CUDNN_VERSION >= 90800
    if (device)
        STATUS_TRY(
            cudnn_set(engine, CUDNN_ATTR_ENGINE_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device));
#else
    (void)device;
#endif
    STATUS_TRY(cudnn_finish(engine, "take an engine again"));
    STATUS_TRY(
        cudnn_set(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine));
    STATUS_TRY(set_knobs(configuration, knobs, choice));
    return cudnn_finish(configuration, "set an engine up again");
}

enum status engine_again(const struct conv_graph *graph, const struct engine_choice *choice,
                         const struct engine_wish *wish, struct engine *out) {
    cudnnBackendDescriptor_t engine = NULL, configuration = NULL;
    struct knobs knobs = {{NULL}, 0};
    struct notes notes = {0};
    bool made = false;
    enum status status = cudnn_make(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);
    if (status == STATUS_OK)
        status = cudnn_make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configuration);
    if (status == STATUS_OK)
        status = configure(graph, choice, wish->device, engine, configuration, &knobs);
    if (status == STATUS_OK)
        status = read_notes(configuration, &notes);
    if (status == STATUS_OK && !wanted(&notes, wish, notes.compiled_now))
        status = status_fail(STATUS_UNSUPPORTED, "it is not as wished");
    *out = (struct engine){
        NULL, configuration, 0, notes.number, notes.tensor_core, notes.nondeterministic, notes.compiled_now};
    if (status == STATUS_OK)
        status = build(graph, configuration, wish->workspace_max, out, &made);
    knobs_free(&knobs);
    if (engine)
        cudnnBackendDestroyDescriptor(engine);
    if (status == STATUS_OK && made)
        return STATUS_OK;
    if (configuration)
        cudnnBackendDestroyDescriptor(configuration);
    *out = (struct engine){0};
    return status_fail(STATUS_UNSUPPORTED, "cuDNN's engine %lld does not do this convolution%s%s",
                       (long long)choice->number, status == STATUS_OK ? "" : ": ",
                       status == STATUS_OK ? "" : status_text());
}
