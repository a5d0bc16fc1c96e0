// Softmax cross-entropy: a warp per image.
#include "kernels/cuda/common.cuh"

// The largest number over a warp, in every lane.
static __device__ __forceinline__ float warp_largest(float value) {
    for (int lanes = LANES / 2; lanes > 0; lanes /= 2)
        value = fmaxf(value, __shfl_xor_sync(~0u, value, lanes));
    return value;
}

// exp and log are made in double as in ref: there are few, and the loss is what people look at.
template <class L, class G>
static __global__ void __launch_bounds__(THREADS, 4)
    softmax_loss(int images, int classes, const L *logits, const int32_t *labels, double scale, float *losses,
                 float *probabilities, G *dlogits) {
    int image = static_cast<int>(blockIdx.x * WARPS + threadIdx.x / LANES),
        lane = static_cast<int>(threadIdx.x % LANES);
    if (image >= images)
        return; // the whole warp
    const L *row = logits + static_cast<size_t>(image) * classes;
    float largest = -INFINITY;
    for (int c = lane; c < classes; c += LANES)
        largest = fmaxf(largest, widen(row[c])); // what is not a number comes into the sum
    largest = warp_largest(largest);
    double sum = 0;
    for (int c = lane; c < classes; c += LANES)
        sum += exp(static_cast<double>(widen(row[c])) - largest);
    sum = __shfl_sync(~0u, warp_sum(sum), 0);
    int label = labels[image];
    for (int c = lane; c < classes && (probabilities || dlogits); c += LANES) {
        size_t at = static_cast<size_t>(image) * classes + c;
        double p = exp(static_cast<double>(widen(row[c])) - largest) / sum;
        if (probabilities)
            probabilities[at] = static_cast<float>(p);
        if (dlogits)
            dlogits[at] = narrow<G>(static_cast<float>((p - (c == label)) * scale));
    }
    if (lane == 0)
        losses[image] = label >= 0 && label < classes
                            ? static_cast<float>(log(sum) + largest - static_cast<double>(widen(row[label])))
                            : NAN;
}

template <class L, class G>
static cudaError_t run(cudaStream_t stream, int images, int classes, const L *logits, const int32_t *labels,
                       double scale, float *losses, float *probabilities, G *dlogits) {
    return LAUNCH(softmax_loss, dim3(static_cast<unsigned>(divide_up(images, WARPS))), dim3(THREADS), 0,
                  stream, (softmax_loss<L, G>), images, classes, logits, labels, scale, losses, probabilities,
                  dlogits);
}

cudaError_t cuda_softmax_loss(cudaStream_t stream, int images, int classes, enum cuda_type logits_type,
                              const void *logits, const int32_t *labels, double scale, float *losses,
                              float *probabilities, enum cuda_type dlogits_type, void *dlogits) {
    if (images < 1 || classes < 1 || (logits_type == CUDA_TYPE_BF16 && dlogits_type == CUDA_TYPE_F32))
        return cudaErrorInvalidValue;
    if (logits_type == CUDA_TYPE_BF16)
        return run(stream, images, classes, static_cast<const __nv_bfloat16 *>(logits), labels, scale, losses,
                   probabilities, static_cast<__nv_bfloat16 *>(dlogits));
    return of_type(dlogits_type, [&](auto value) {
        return run(stream, images, classes, static_cast<const float *>(logits), labels, scale, losses,
                   probabilities, static_cast<decltype(value) *>(dlogits));
    });
}
