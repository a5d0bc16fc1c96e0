// The towers' gradients, added up in tower order, and what is measured of them; sums as in
// kernels/ref/combine.c: in double, one per piece (a block each), which the last two functions add up.
#include "kernels/cuda/common.cuh"

namespace {

enum { TOWERS_AT_ONCE = 32 };

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

// The towers of a GPU, as cuda_combine takes them.
struct share {
    int towers;
    const float *const *gradients;
    const double *weights;
    const float *parameters;
};

// |average|^2 of the piece, and each tower's G . average (dots NULL: not wanted). average: the thread's
// elements.
__device__ __forceinline__ void measure(const share &s, const piece_reader &piece, int pieces,
                                        const double (&average)[PER_THREAD], double (*room)[WARPS],
                                        double *dots, double *average_norms2) {
    __shared__ double average_room[WARPS];
    double norm2 = 0;
    for (int j = 0; j < PER_THREAD; j++)
        norm2 += average[j] * average[j];
    norm2 = block_sum(norm2, average_room);
    if (threadIdx.x == 0)
        average_norms2[blockIdx.x] = norm2;
    for (int begin = 0; dots && begin < s.towers; begin += TOWERS_AT_ONCE) {
        for (int k = begin; k < s.towers && k < begin + TOWERS_AT_ONCE; k++) {
            double dot = 0;
            if (s.weights[k] != 0)
                for (int j = 0; j < PER_THREAD; j++) {
                    int element = static_cast<int>(threadIdx.x) + j * THREADS;
                    if (element < piece.count)
                        dot += piece.total(s.gradients[k], element) * average[j];
                }
            put_warp_sum(dot, room[k - begin]);
        }
        __syncthreads();
        write_tower_sums(room, begin, s.towers, dots, pieces);
        __syncthreads();
    }
}

} // namespace

static __global__ void __launch_bounds__(THREADS, 4)
    combine(share s, const cuda_piece *table, int pieces, float *sum, double *norms2, double *dots,
            double *average_norms2) {
    __shared__ double room[TOWERS_AT_ONCE][WARPS];
    piece_reader piece = reader_of(table[blockIdx.x], s.parameters);
    double total[PER_THREAD] = {};
    for (int begin = 0; begin < s.towers; begin += TOWERS_AT_ONCE) {
        for (int k = begin; k < s.towers && k < begin + TOWERS_AT_ONCE; k++) {
            double weight = s.weights[k], norm2 = 0;
            if (weight != 0)
                for (int j = 0; j < PER_THREAD; j++) {
                    int element = static_cast<int>(threadIdx.x) + j * THREADS;
                    if (element < piece.count) {
                        double g = piece.total(s.gradients[k], element);
                        total[j] += weight * g;
                        norm2 += g * g;
                    }
                }
            if (norms2)
                put_warp_sum(norm2, room[k - begin]);
        }
        if (norms2) {
            __syncthreads();
            write_tower_sums(room, begin, s.towers, norms2, pieces);
            __syncthreads();
        }
    }
    for (int j = 0; j < PER_THREAD; j++) {
        int element = static_cast<int>(threadIdx.x) + j * THREADS;
        float rounded = static_cast<float>(total[j]);
        total[j] = rounded;
        if (element < piece.count)
            sum[piece.first + element] = rounded;
    }
    if (average_norms2)
        measure(s, piece, pieces, total, room, dots, average_norms2);
}

static __global__ void __launch_bounds__(THREADS, 4)
    dots_with_average(share s, const cuda_piece *table, int pieces, const float *average, double *dots,
                      double *average_norms2) {
    __shared__ double room[TOWERS_AT_ONCE][WARPS];
    piece_reader piece = reader_of(table[blockIdx.x], s.parameters);
    double a[PER_THREAD] = {};
    for (int j = 0; j < PER_THREAD; j++) {
        int element = static_cast<int>(threadIdx.x) + j * THREADS;
        if (element < piece.count)
            a[j] = average[piece.first + element];
    }
    measure(s, piece, pieces, a, room, dots, average_norms2);
}

namespace {

struct sum_list {
    cuda_sum of[CUDA_SUMS_AT_ONCE];
};

} // namespace

// A block adds up one row of one of the lists: values THREADS apart by one thread, then as block_sum does.
static __global__ void __launch_bounds__(THREADS) sums(sum_list list, int pieces) {
    __shared__ double room[WARPS];
    int row = static_cast<int>(blockIdx.x), job = 0;
    while (row >= list.of[job].rows)
        row -= list.of[job++].rows;
    const cuda_sum &of = list.of[job];
    size_t begin = of.begin ? static_cast<size_t>(of.begin[row]) : static_cast<size_t>(row) * pieces;
    size_t end = of.begin ? static_cast<size_t>(of.begin[row + 1]) : begin + pieces;
    double sum = 0;
    for (size_t i = begin + threadIdx.x; i < end; i += THREADS)
        sum += of.sums[i];
    sum = block_sum(sum, room);
    if (threadIdx.x == 0)
        of.out[row] = sum;
}

cudaError_t cuda_combine(cudaStream_t stream, const struct cuda_piece *table, int pieces, int towers,
                         const float *const *gradients, const double *weights, const float *parameters,
                         float *sum, double *norms2) {
    return cuda_combine_all(stream, table, pieces, towers, gradients, weights, parameters, sum, norms2, NULL,
                            NULL);
}

cudaError_t cuda_combine_all(cudaStream_t stream, const struct cuda_piece *table, int pieces, int towers,
                             const float *const *gradients, const double *weights, const float *parameters,
                             float *average, double *norms2, double *dots, double *average_norms2) {
    if (pieces < 1 || towers < 1 || (dots && !average_norms2))
        return cudaErrorInvalidValue;
    share s = {towers, gradients, weights, parameters};
    return LAUNCH(combine, dim3(pieces), dim3(THREADS), 0, stream, combine, s, table, pieces, average, norms2,
                  dots, average_norms2);
}

cudaError_t cuda_dots(cudaStream_t stream, const struct cuda_piece *table, int pieces, int towers,
                      const float *const *gradients, const double *weights, const float *parameters,
                      const float *average, double *dots, double *average_norms2) {
    if (pieces < 1 || towers < 0)
        return cudaErrorInvalidValue;
    share s = {towers, gradients, weights, parameters};
    return LAUNCH(dots_with_average, dim3(pieces), dim3(THREADS), 0, stream, dots_with_average, s, table,
                  pieces, average, dots, average_norms2);
}

cudaError_t cuda_sums(cudaStream_t stream, const struct cuda_sum *of, int count, int pieces) {
    sum_list list = {};
    int rows = 0, used = 0;
    if (pieces < 1 || count < 0 || count > CUDA_SUMS_AT_ONCE)
        return cudaErrorInvalidValue;
    for (int i = 0; i < count; i++) {
        if (of[i].rows < 1)
            continue;
        list.of[used++] = of[i];
        rows += of[i].rows;
    }
    return rows ? LAUNCH(sums, dim3(rows), dim3(THREADS), 0, stream, sums, list, pieces) : cudaSuccess;
}

cudaError_t cuda_sum_pieces(cudaStream_t stream, const double *sums, int rows, int pieces, double *out) {
    cuda_sum of = {sums, NULL, rows, out};
    return rows < 1 ? cudaErrorInvalidValue : cuda_sums(stream, &of, 1, pieces);
}

cudaError_t cuda_sum_segments(cudaStream_t stream, const double *sums, const int *begin, int segments,
                              double *out) {
    cuda_sum of = {sums, begin, segments, out};
    return segments < 1 ? cudaErrorInvalidValue : cuda_sums(stream, &of, 1, 1);
}
