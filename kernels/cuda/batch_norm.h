/* Batch normalisation over rows (images times pixels) of channels, forward, backward and for evaluation. For
 * the networks to come: nothing but its test calls it yet. Conventions as in kernels.h.
 *
 * Statistics stand apart from what is done with them, so that those of several towers can be joined between
 * the two: a mean and a variance per tower and its rows give the mean and variance of all. */
#ifndef TOWERSCOPE_KERNELS_CUDA_BATCH_NORM_H
#define TOWERSCOPE_KERNELS_CUDA_BATCH_NORM_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y = gamma * (x - mean) / sqrt(variance + epsilon) + beta; all of `channels` values. mean and variance are
 * the batch's in training, the running ones in evaluation. */
struct cuda_batch_norm {
    int channels;
    float epsilon;
    const float *mean, *variance, *gamma, *beta;
};

/* Bytes of the scratch memory of the functions below that take one. */
size_t cuda_batch_norm_scratch(size_t rows, int channels);

/* Mean and (biased: divided by rows) variance of each channel. */
cudaError_t cuda_batch_norm_statistics(cudaStream_t stream, const float *x, size_t rows, int channels,
                                       void *scratch, float *mean, float *variance);

/* y as above, and with `relu` max(y, 0). y may be x. */
cudaError_t cuda_batch_norm_forward(cudaStream_t stream, const struct cuda_batch_norm *b, const float *x,
                                    size_t rows, bool relu, float *y);

/* running = keep * running + (1 - keep) * batch, the variance as rows / (rows - 1) of the biased one. */
cudaError_t cuda_batch_norm_running(cudaStream_t stream, int channels, size_t rows, const float *mean,
                                    const float *variance, double keep, float *running_mean,
                                    float *running_variance);

/* dbeta = sum of g, dgamma = sum of g * (x - mean) / sqrt(variance + epsilon), over the rows; g is dy, with y
 * (NULL: no ReLU) where y > 0 only. */
cudaError_t cuda_batch_norm_sums(cudaStream_t stream, const struct cuda_batch_norm *b, const float *x,
                                 const float *dy, const float *y, size_t rows, void *scratch, float *dgamma,
                                 float *dbeta);

/* dx for statistics that were made over all_rows rows, of which these are `rows`; dgamma and dbeta are the
 * sums over all_rows. dx may be dy. */
cudaError_t cuda_batch_norm_backward(cudaStream_t stream, const struct cuda_batch_norm *b, const float *x,
                                     const float *dy, const float *y, const float *dgamma, const float *dbeta,
                                     size_t all_rows, size_t rows, float *dx);

#ifdef __cplusplus
}
#endif

#endif
