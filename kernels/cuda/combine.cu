// The towers' gradients, added up in tower order, and what is measured of them; sums as in
// kernels/ref/combine.c: in double, one per piece (a block each), which the last two functions add up.
#include "kernels/cuda/common.cuh"

namespace {

enum { PER_THREAD = CUDA_PIECE / THREADS, TOWERS_AT_ONCE = 32 };

// What G = gradient + weight_decay * parameters is made of in one piece.
struct piece_reader {
    const float *parameters;
    size_t first;
    int count;
    double decay;

    // G of the thread's j-th element; it must be inside the piece.
    __device__ __forceinline__ double total(const float *gradient, int element) const {
        double g = gradient[first + element];
        return decay != 0 ? g + decay * parameters[first + element] : g;
    }
};

__device__ __forceinline__ piece_reader reader_of(const cuda_piece &piece, const float *parameters) {
    return {parameters, static_cast<size_t>(piece.first), piece.count, piece.weight_decay};
}

// Leave each warp's sum of a tower's values in `room`; after the barrier one thread per tower adds the
// warps'.
__device__ __forceinline__ void put_warp_sum(double value, double *room) {
    value = warp_sum(value);
    if (threadIdx.x % LANES == 0)
        room[threadIdx.x / LANES] = value;
}

__device__ __forceinline__ void write_tower_sums(const double (*room)[WARPS], int first_tower, int towers,
                                                 double *out, int pieces) {
    int tower = static_cast<int>(threadIdx.x);
    if (tower < TOWERS_AT_ONCE && first_tower + tower < towers) {
        double sum = 0;
        for (int w = 0; w < WARPS; w++)
            sum += room[tower][w];
        out[static_cast<size_t>(first_tower + tower) * pieces + blockIdx.x] = sum;
    }
}

} // namespace

static __global__ void __launch_bounds__(THREADS)
    combine(const cuda_piece *table, int pieces, int towers, const float *const *gradients,
            const double *weights, const float *parameters, float *sum, double *norms2) {
    __shared__ double room[TOWERS_AT_ONCE][WARPS];
    piece_reader piece = reader_of(table[blockIdx.x], parameters);
    double total[PER_THREAD] = {};
    for (int begin = 0; begin < towers; begin += TOWERS_AT_ONCE) {
        for (int k = begin; k < towers && k < begin + TOWERS_AT_ONCE; k++) {
            double weight = weights[k], norm2 = 0;
            if (weight != 0)
                for (int j = 0; j < PER_THREAD; j++) {
                    int element = static_cast<int>(threadIdx.x) + j * THREADS;
                    if (element < piece.count) {
                        double g = piece.total(gradients[k], element);
                        total[j] += weight * g;
                        norm2 += g * g;
                    }
                }
            if (norms2)
                put_warp_sum(norm2, room[k - begin]);
        }
        if (norms2) {
            __syncthreads();
            write_tower_sums(room, begin, towers, norms2, pieces);
            __syncthreads();
        }
    }
    for (int j = 0; j < PER_THREAD; j++) {
        int element = static_cast<int>(threadIdx.x) + j * THREADS;
        if (element < piece.count)
            sum[piece.first + element] = static_cast<float>(total[j]);
    }
}

static __global__ void __launch_bounds__(THREADS)
    dots_with_average(const cuda_piece *table, int pieces, int towers, const float *const *gradients,
                      const double *weights, const float *parameters, const float *average, double *dots,
                      double *average_norms2) {
    __shared__ double room[TOWERS_AT_ONCE][WARPS], average_room[WARPS];
    piece_reader piece = reader_of(table[blockIdx.x], parameters);
    double a[PER_THREAD] = {}, norm2 = 0;
    for (int j = 0; j < PER_THREAD; j++) {
        int element = static_cast<int>(threadIdx.x) + j * THREADS;
        if (element < piece.count)
            a[j] = average[piece.first + element];
        norm2 += a[j] * a[j];
    }
    norm2 = block_sum(norm2, average_room);
    if (threadIdx.x == 0)
        average_norms2[blockIdx.x] = norm2;
    for (int begin = 0; begin < towers; begin += TOWERS_AT_ONCE) {
        for (int k = begin; k < towers && k < begin + TOWERS_AT_ONCE; k++) {
            double dot = 0;
            if (weights[k] != 0)
                for (int j = 0; j < PER_THREAD; j++) {
                    int element = static_cast<int>(threadIdx.x) + j * THREADS;
                    if (element < piece.count)
                        dot += piece.total(gradients[k], element) * a[j];
                }
            put_warp_sum(dot, room[k - begin]);
        }
        __syncthreads();
        write_tower_sums(room, begin, towers, dots, pieces);
        __syncthreads();
    }
}

// out[blockIdx.x] = sum of sums[begin .. end): values THREADS apart by one thread, then as block_sum does.
static __device__ __forceinline__ void sum_range(const double *sums, size_t begin, size_t end, double *out) {
    __shared__ double room[WARPS];
    double sum = 0;
    for (size_t i = begin + threadIdx.x; i < end; i += THREADS)
        sum += sums[i];
    sum = block_sum(sum, room);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

static __global__ void __launch_bounds__(THREADS) sum_pieces(const double *sums, int pieces, double *out) {
    sum_range(sums, static_cast<size_t>(blockIdx.x) * pieces, static_cast<size_t>(blockIdx.x + 1) * pieces,
              out);
}

static __global__ void __launch_bounds__(THREADS)
    sum_segments(const double *sums, const int *begin, double *out) {
    sum_range(sums, static_cast<size_t>(begin[blockIdx.x]), static_cast<size_t>(begin[blockIdx.x + 1]), out);
}

cudaError_t cuda_combine(cudaStream_t stream, const struct cuda_piece *table, int pieces, int towers,
                         const float *const *gradients, const double *weights, const float *parameters,
                         float *sum, double *norms2) {
    if (pieces < 1 || towers < 1)
        return cudaErrorInvalidValue;
    return LAUNCH(combine, dim3(pieces), dim3(THREADS), 0, stream, combine, table, pieces, towers, gradients,
                  weights, parameters, sum, norms2);
}

cudaError_t cuda_dots(cudaStream_t stream, const struct cuda_piece *table, int pieces, int towers,
                      const float *const *gradients, const double *weights, const float *parameters,
                      const float *average, double *dots, double *average_norms2) {
    if (pieces < 1 || towers < 0)
        return cudaErrorInvalidValue;
    return LAUNCH(dots_with_average, dim3(pieces), dim3(THREADS), 0, stream, dots_with_average, table, pieces,
                  towers, gradients, weights, parameters, average, dots, average_norms2);
}

cudaError_t cuda_sum_pieces(cudaStream_t stream, const double *sums, int rows, int pieces, double *out) {
    if (rows < 1 || pieces < 1)
        return cudaErrorInvalidValue;
    return LAUNCH(sum_pieces, dim3(rows), dim3(THREADS), 0, stream, sum_pieces, sums, pieces, out);
}

cudaError_t cuda_sum_segments(cudaStream_t stream, const double *sums, const int *begin, int segments,
                              double *out) {
    if (segments < 1)
        return cudaErrorInvalidValue;
    return LAUNCH(sum_segments, dim3(segments), dim3(THREADS), 0, stream, sum_segments, sums, begin, out);
}
