// One step of SGD with momentum and the moving average of the parameters, in one pass: elements as in
// kernels/ref/update.c, in double and rounded once; a piece per block.
#include "kernels/cuda/common.cuh"

namespace {

// The flat buffers; velocity and shadow may be NULL.
struct flat {
    const float *average;
    float *parameters, *velocity, *shadow;
};

// What is multiplied: the scalars with the clipping done.
struct factors {
    double rate, momentum, scale, toward; // toward = 1 - ema_decay
    bool hold;                            // nothing moves
};

} // namespace

static __device__ __forceinline__ factors factors_of(const cuda_update_scalars &s,
                                                     const double *average_norm2, const int *held) {
    factors f = {s.learning_rate, s.momentum, s.gradient_scale, 1 - s.ema_decay, false};
    if (s.clip_norm > 0) {
        double norm = sqrt(*average_norm2);
        if (norm > s.clip_norm)
            f.scale *= s.clip_norm / norm;
    }
    f.hold = s.guard && (*held || !isfinite(*average_norm2));
    return f;
}

// What lies at one place of the buffers; 0 where there is no buffer.
struct element {
    float parameter, average, velocity, shadow;
};

static __device__ __forceinline__ element read(const flat &b, size_t at) {
    return {b.parameters[at], b.average[at], b.velocity ? b.velocity[at] : 0, b.shadow ? b.shadow[at] : 0};
}

// Writes the element's next state, and leaves it in *e. Returns how far the parameter moved.
static __device__ __forceinline__ double move(const flat &b, const factors &f, size_t at, element *e) {
    if (f.hold)
        return 0;
    float before = e->parameter;
    double m = f.scale * e->average;
    if (b.velocity) {
        m += f.momentum * e->velocity;
        b.velocity[at] = static_cast<float>(m);
    }
    e->parameter = static_cast<float>(before - f.rate * m);
    b.parameters[at] = e->parameter;
    if (b.shadow)
        b.shadow[at] =
            static_cast<float>(e->shadow - f.toward * (static_cast<double>(e->shadow) - e->parameter));
    return static_cast<double>(e->parameter) - before;
}

static __global__ void __launch_bounds__(THREADS, 4)
    update(const cuda_piece *table, const cuda_update_scalars *scalars, const double *average_norm2, int *held,
           flat buffers, double *parameter_norms2, double *update_norms2) {
    __shared__ double room[2][WARPS];
    cuda_piece piece = table[blockIdx.x];
    factors f = factors_of(*scalars, average_norm2, held);
    double norm2 = 0, change_norm2 = 0;
    element elements[PER_THREAD] = {};
    size_t first = static_cast<size_t>(piece.first) + threadIdx.x;
    int count = piece.count - static_cast<int>(threadIdx.x); // of the thread's, THREADS apart
    for (int j = 0; j < PER_THREAD; j++) // all reads before the first write: they wait together
        if (j * THREADS < count)
            elements[j] = read(buffers, first + j * THREADS);
    for (int j = 0; j < PER_THREAD; j++)
        if (j * THREADS < count) {
            double change = move(buffers, f, first + j * THREADS, &elements[j]),
                   after = elements[j].parameter;
            norm2 += after * after;
            change_norm2 += change * change;
        }
    norm2 = block_sum(norm2, room[0]);
    change_norm2 = block_sum(change_norm2, room[1]);
    if (threadIdx.x == 0) {
        if (held && (f.hold || !scalars->guard)) // the same in all blocks
            *held = f.hold;
        parameter_norms2[blockIdx.x] = norm2;
        update_norms2[blockIdx.x] = change_norm2;
    }
}

cudaError_t cuda_update(cudaStream_t stream, const struct cuda_piece *table, int pieces,
                        const struct cuda_update_scalars *scalars, const double *average_norm2, int *held,
                        const float *average, float *parameters, float *velocity, float *shadow,
                        double *parameter_norms2, double *update_norms2) {
    if (pieces < 1)
        return cudaErrorInvalidValue;
    flat buffers = {average, parameters, velocity, shadow};
    return LAUNCH(update, dim3(pieces), dim3(THREADS), 0, stream, update, table, scalars, average_norm2,
                  held, buffers, parameter_norms2, update_norms2);
}
