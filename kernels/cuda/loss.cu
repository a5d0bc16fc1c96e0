// Softmax cross-entropy: a warp per image.
#include "kernels/cuda/common.cuh"

// The largest number over a warp, in every lane.
static __device__ __forceinline__ float warp_largest(float value) {
    for (int lanes = LANES / 2; lanes > 0; lanes /= 2)
        value = fmaxf(value, __shfl_xor_sync(~0u, value, lanes));
    return value;
}

// exp and log are made in double as in ref: there are few, and the loss is what people look at.
static __global__ void __launch_bounds__(THREADS, 4)
    softmax_loss(int images, int classes, const float *logits, const int32_t *labels, double scale,
                 float *losses, float *probabilities, float *dlogits) {
    int image = static_cast<int>(blockIdx.x * WARPS + threadIdx.x / LANES),
        lane = static_cast<int>(threadIdx.x % LANES);
    if (image >= images)
        return; // the whole warp
    const float *row = logits + static_cast<size_t>(image) * classes;
    float largest = -INFINITY;
    for (int c = lane; c < classes; c += LANES)
        largest = fmaxf(largest, row[c]); // what is not a number comes into the sum
    largest = warp_largest(largest);
    double sum = 0;
    for (int c = lane; c < classes; c += LANES)
        sum += exp(static_cast<double>(row[c]) - largest);
    sum = __shfl_sync(~0u, warp_sum(sum), 0);
    int label = labels[image];
    for (int c = lane; c < classes && (probabilities || dlogits); c += LANES) {
        size_t at = static_cast<size_t>(image) * classes + c;
        double p = exp(static_cast<double>(row[c]) - largest) / sum;
        if (probabilities)
            probabilities[at] = static_cast<float>(p);
        if (dlogits)
            dlogits[at] = static_cast<float>((p - (c == label)) * scale);
    }
    if (lane == 0)
        losses[image] = label >= 0 && label < classes
                            ? static_cast<float>(log(sum) + largest - static_cast<double>(row[label]))
                            : NAN;
}

cudaError_t cuda_softmax_loss(cudaStream_t stream, int images, int classes, const float *logits,
                              const int32_t *labels, double scale, float *losses, float *probabilities,
                              float *dlogits) {
    if (images < 1 || classes < 1)
        return cudaErrorInvalidValue;
    return LAUNCH(softmax_loss, dim3(static_cast<unsigned>(divide_up(images, WARPS))), dim3(THREADS), 0,
                  stream, softmax_loss, images, classes, logits, labels, scale, losses, probabilities,
                  dlogits);
}
