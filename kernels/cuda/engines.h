/* Which of cuDNN's engines may compute a convolution's graph, best first as cuDNN's heuristics have it. */
#ifndef TOWERSCOPE_KERNELS_CUDA_ENGINES_H
#define TOWERSCOPE_KERNELS_CUDA_ENGINES_H

#include "kernels/cuda/cudnn_graph.h"

enum { ENGINES_MAX = 10 };

/* With --deterministic a layer's engines are those for so many images, whatever the shard. */
enum { ENGINE_REFERENCE_IMAGES = 128 };

struct engine {
    cudnnBackendDescriptor_t plan, configuration; /* ready to be executed; what it was made from */
    size_t workspace;
    int64_t number; /* cuDNN's */
    bool tensor_core, nondeterministic, compiled_now;
};

struct engine_wish {
    bool deterministic;
    enum cuda_precision precision; /* CUDA_F32: no tensor cores, which would round the factors to TF32 */
    size_t workspace_max;
    int count;                       /* at most so many, 1..ENGINES_MAX */
    cudnnBackendDescriptor_t device; /* a description of another GPU, or NULL: the one that is current */
};

/* What an engine may ask for at most: as much as the tensors take in float32, and something for small ones.
 */
size_t engines_workspace_max(const struct conv_request *request);

/* Fill engines[0..*count). Heuristics of mode A are asked first, then cuDNN's fallbacks. Engines that are
 * compiled when they are built (seconds, and a compiler library) are taken only where nothing else is.
 * STATUS_UNSUPPORTED: none fits the wish. Free with engines_free. */
enum status engines_find(const struct conv_graph *graph, const struct engine_wish *wish,
                         struct engine engines[ENGINES_MAX], int *count);
void engines_free(struct engine *engines, int count);

/* What makes an engine the same kernel for another number of images: its number, and how its knobs are set
 * (tiles, splits of sums). */
#define ENGINE_KNOBS 48
struct engine_choice {
    int64_t number;
    int knobs;
    cudnnBackendKnobType_t type[ENGINE_KNOBS];
    int64_t value[ENGINE_KNOBS];
};

enum status engine_choice_of(const struct engine *engine, struct engine_choice *out);

/* The chosen engine for a graph; of the wish all but `count` is read. STATUS_UNSUPPORTED: it does not do this
 * graph, wants more memory, or is not as wished. Free with engines_free. */
enum status engine_again(const struct conv_graph *graph, const struct engine_choice *choice,
                         const struct engine_wish *wish, struct engine *out);

#endif
