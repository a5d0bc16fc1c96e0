/* The project's own CUDA kernels, as plain-C functions that launch them.
 *
 * Every function queues work on `stream`, on the GPU that is current, and returns cudaGetLastError() after
 * the launch: nothing waits, nothing allocates, nothing is copied. All pointers are memory of that GPU.
 * Layouts are those of kernels/tensor.h (NHWC, the channel fastest); formulas are those of kernels/ref. Every
 * sum is made in a fixed order (two passes, no atomics): the same arguments give the same bytes.
 *
 * The same .cu files are compiled by nvcc for GPUs and as C++ by tests/cudasim/cudasim.h for the processor.
 */
#ifndef TOWERSCOPE_KERNELS_CUDA_KERNELS_H
#define TOWERSCOPE_KERNELS_CUDA_KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/op.h"

/* What activations and their gradients are in memory. All that is computed of them, and all sums, are float;
 * a bfloat16 is the float's result rounded once, to the nearest, a tie to even. Where a function takes one
 * type, its `void *` values have that. */
enum cuda_type { CUDA_TYPE_F32, CUDA_TYPE_BF16 };

static inline size_t cuda_type_bytes(enum cuda_type type) {
    return type == CUDA_TYPE_BF16 ? 2 : 4;
}

/* ---- bias and ReLU. rows: images times pixels. */

/* y = x + bias, and with `relu` y = max(y, 0). bias NULL: none. y may be x where their types are the same;
 * bfloat16 to float is cudaErrorInvalidValue. */
cudaError_t cuda_bias_relu(cudaStream_t stream, enum cuda_type x_type, const void *x, const float *bias,
                           enum cuda_type y_type, void *y, size_t rows, int channels, bool relu);

/* dx = dy where y > 0 (y NULL: no ReLU, dx = dy); dbias[c] = sum over the rows of dx (NULL: not wanted).
 * dx may be dy, or NULL when it is not wanted. scratch: cuda_bias_relu_scratch() bytes when dbias is wanted.
 */
cudaError_t cuda_bias_relu_backward(cudaStream_t stream, enum cuda_type type, const void *dy, const void *y,
                                    void *dx, float *dbias, void *scratch, size_t rows, int channels);
size_t cuda_bias_relu_scratch(size_t rows, int channels);

/* ---- max pool. places: cuda_max_pool_places() bytes, which value of its window won; NULL: not wanted. */

cudaError_t cuda_max_pool(cudaStream_t stream, enum cuda_type type, const struct op *op, int images,
                          const void *x, void *y, void *places);
/* dx is written whole (each input gathers from the windows that hold it). */
cudaError_t cuda_max_pool_backward(cudaStream_t stream, enum cuda_type type, const struct op *op, int images,
                                   const void *dy, const void *places, void *dx);
size_t cuda_max_pool_places(const struct op *op, int images);

/* ---- local response normalisation over channels; pixels: images times height times width. More channels
 * than CUDA_LRN_MOST_CHANNELS or a larger radius than CUDA_LRN_MOST_RADIUS: cudaErrorInvalidValue. */

#define CUDA_LRN_MOST_CHANNELS 1024
#define CUDA_LRN_MOST_RADIUS   128

cudaError_t cuda_lrn(cudaStream_t stream, enum cuda_type type, const struct op_lrn *lrn, size_t pixels,
                     int channels, const void *x, void *y);
/* N is made again from x. dx may be dy. */
cudaError_t cuda_lrn_backward(cudaStream_t stream, enum cuda_type type, const struct op_lrn *lrn,
                              size_t pixels, int channels, const void *x, const void *dy, void *dx);

/* Neighbours in one pass, since all of these wait for memory.
 *
 * A ReLU before a max pool may be undone behind it, and so may the bias before that: what a window's gradient
 * goes to is its winner, whose value is the pooled one, and each window's gradient goes to one input. Hence
 * backwards "bias, ReLU, pool, LRN" is cuda_lrn_relu_backward at the pooled size (x: the pooled values) and
 * then cuda_max_pool_backward; "bias, ReLU, pool" is cuda_bias_relu_backward at the pooled size (y: the
 * pooled values) and then cuda_max_pool_backward: the larger y before the pool is not read at all. */

/* cuda_lrn_backward, then dx = 0 where x is not above 0 (x is what a ReLU gave, pooled or not), then dbias[c]
 * = sum of dx over the pixels (NULL: not wanted; scratch: cuda_bias_relu_scratch(pixels, channels) bytes). dx
 * may be dy. */
cudaError_t cuda_lrn_relu_backward(cudaStream_t stream, enum cuda_type type, const struct op_lrn *lrn,
                                   size_t pixels, int channels, const void *x, const void *dy, void *dx,
                                   float *dbias, void *scratch);

/* pooled, places = cuda_max_pool(x); y = cuda_lrn(pooled). places NULL: not wanted. */
cudaError_t cuda_pool_lrn(cudaStream_t stream, enum cuda_type type, const struct op *pool,
                          const struct op_lrn *lrn, int images, const void *x, void *pooled, void *places,
                          void *y);

/* y, places = cuda_max_pool(cuda_lrn(x)), with the values between them in no memory; only where
 * cuda_lrn_pool_fits(). */
cudaError_t cuda_lrn_pool(cudaStream_t stream, enum cuda_type type, const struct op_lrn *lrn,
                          const struct op *pool, int images, const void *x, void *y, void *places);
bool cuda_lrn_pool_fits(const struct op_lrn *lrn, const struct op *pool);

/* cuda_max_pool_backward(dy, places), then cuda_lrn_relu_backward of it. Not limited to what cuda_lrn_pool
 * fits. scratch: for the pool's input pixels. */
cudaError_t cuda_lrn_pool_relu_backward(cudaStream_t stream, enum cuda_type type, const struct op_lrn *lrn,
                                        const struct op *pool, int images, const void *x, const void *dy,
                                        const void *places, void *dx, float *dbias, void *scratch);

/* ---- dense layer: y = x weights, with x [images][in], weights [in][out], y floats. Each sum is made in the
 * same order whatever `images` is. More than 1,048,560 images: cudaErrorInvalidValue. */
cudaError_t cuda_dense(cudaStream_t stream, enum cuda_type type, int images, int in, int out, const void *x,
                       const void *weights, float *y);

/* ---- softmax cross-entropy: struct loss_args, with the labels on the GPU. A label outside the classes makes
 * the image's loss NaN. probabilities and dlogits may be NULL. Logits may be float where dlogits are
 * bfloat16, not the other way (cudaErrorInvalidValue). */
cudaError_t cuda_softmax_loss(cudaStream_t stream, int images, int classes, enum cuda_type logits_type,
                              const void *logits, const int32_t *labels, double scale, float *losses,
                              float *probabilities, enum cuda_type dlogits_type, void *dlogits);

/* to[c][r] = from[r][c], one of the two float. Weights [h][w][in][out] are a matrix of (h*w*in) rows and
 * `out` columns; its transpose is cuDNN's [out][h][w][in]. */
cudaError_t cuda_transpose(cudaStream_t stream, enum cuda_type from_type, const void *from,
                           enum cuda_type to_type, void *to, size_t rows, size_t columns);

/* A matrix of floats that is to be written anew in `to`, and its transpose where `turned`. */
struct cuda_rewrite {
    const float *from;
    void *to;
    size_t rows, columns;
    bool turned;
};

#define CUDA_REWRITES_AT_ONCE 16

/* All of them by one launch; bfloat16 is rounded to the nearest, a tie to even, and what is not a number
 * stays so. `of` is read before the function returns. */
cudaError_t cuda_rewrite_all(cudaStream_t stream, enum cuda_type to_type, const struct cuda_rewrite *of,
                             int count);

/* ---- flat buffers. They are worked on in pieces of at most CUDA_PIECE elements, none of which crosses a
 * tensor's end; the table of pieces lies on the GPU. A kernel leaves one sum per piece, and cuda_sums adds
 * those up: the fixed order. */

#define CUDA_PIECE 1024

struct cuda_piece {
    unsigned long long first; /* element */
    int count, segment;
    double weight_decay;
};

/* sum = sum_k weights[k] * G_k with G_k = gradients[k] + weight_decay * parameters, in tower order, in
 * double; norms2[k * pieces + i] = |G_k|^2 of piece i. gradients: [towers] pointers, weights: [towers], both
 * on the GPU; a tower of weight 0 is not read, and its norms2 are 0. parameters may be NULL when every
 * weight_decay is 0. norms2 NULL: not wanted. */
cudaError_t cuda_combine(cudaStream_t stream, const struct cuda_piece *table, int pieces, int towers,
                         const float *const *gradients, const double *weights, const float *parameters,
                         float *sum, double *norms2);

/* dots[k * pieces + i] = G_k . average (towers of weight 0: 0) and average_norms2[i] = |average|^2 of piece
 * i. towers 0: only the latter. */
cudaError_t cuda_dots(cudaStream_t stream, const struct cuda_piece *table, int pieces, int towers,
                      const float *const *gradients, const double *weights, const float *parameters,
                      const float *average, double *dots, double *average_norms2);

/* Both in one pass, where all of the step's towers are on this GPU, so that their sum is the average; the
 * same bytes. dots NULL: not wanted. */
cudaError_t cuda_combine_all(cudaStream_t stream, const struct cuda_piece *table, int pieces, int towers,
                             const float *const *gradients, const double *weights, const float *parameters,
                             float *average, double *norms2, double *dots, double *average_norms2);

/* Rows of sums, to be added up: out[r] = sum of sums[begin[r] .. begin[r + 1]), begin [rows + 1] on the GPU
 * (a row per tensor), or with begin NULL of sums[r * pieces .. + pieces) (a row per tower, or one). */
struct cuda_sum {
    const double *sums;
    const int *begin;
    int rows; /* 0: nothing to do */
    double *out;
};

#define CUDA_SUMS_AT_ONCE 6

/* All of them by one launch, each row in one fixed order. `of` is read before the function returns. */
cudaError_t cuda_sums(cudaStream_t stream, const struct cuda_sum *of, int count, int pieces);

/* One of them: rows of `pieces`, and a row per tensor. */
cudaError_t cuda_sum_pieces(cudaStream_t stream, const double *sums, int rows, int pieces, double *out);
cudaError_t cuda_sum_segments(cudaStream_t stream, const double *sums, const int *begin, int segments,
                              double *out);

/* What changes from step to step, read from the GPU's memory so that a graph can be launched again. */
struct cuda_update_scalars {
    double learning_rate, momentum, gradient_scale, ema_decay;
    double
        clip_norm; /* 0: no clipping, else the gradient is scaled further by min(1, clip_norm / |average|) */
    int guard; /* not 0: nothing but the sums and *held is written when |average| is not finite, or *held */
};

/* struct update_args over the pieces. average_norm2: |average|^2 on the GPU, read when clip_norm > 0 or
 * guard; may be NULL otherwise. *held: whether the last update with guard, or one before it, wrote nothing;
 * an update without guard makes it 0; NULL where there is no guard. velocity and shadow may be NULL.
 * parameter_norms2[i], update_norms2[i]: of piece i. parameters may be `average` where the learning rate is
 * 0. */
cudaError_t cuda_update(cudaStream_t stream, const struct cuda_piece *table, int pieces,
                        const struct cuda_update_scalars *scalars, const double *average_norm2, int *held,
                        const float *average, float *parameters, float *velocity, float *shadow,
                        double *parameter_norms2, double *update_norms2);

/* ---- what is asked of many values now and then. scratch: cuda_measure_scratch() bytes. */

size_t cuda_measure_scratch(size_t count);

/* *out = how many of the values are 0 */
cudaError_t cuda_count_zeros(cudaStream_t stream, enum cuda_type type, const void *values, size_t count,
                             void *scratch, long long *out);

/* *out = index of the first value that is not finite; -1: all are */
cudaError_t cuda_first_non_finite(cudaStream_t stream, enum cuda_type type, const void *values, size_t count,
                                  void *scratch, long long *out);

#ifdef __cplusplus
}
#endif

#endif
