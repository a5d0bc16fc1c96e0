// A dense layer whose sums are made in the same order whatever the number of images: for --deterministic,
// where an image's bytes must not hang on the shard it is in (cuBLAS chooses its kernel, and how it splits
// sums, by the size of the matrices). Tiles of x and of the weights go through shared memory; a thread adds
// up OUTS outputs of one image, from the first input to the last.
#include "kernels/cuda/common.cuh"

enum { IMAGES = 16, COLUMNS = 16, OUTS = 4, DEPTH = 32 };

template <class T>
static __global__ void __launch_bounds__(IMAGES *COLUMNS)
    dense_forward(int images, int in, int out, const T *x, const T *weights, float *y) {
    __shared__ float x_tile[IMAGES][DEPTH + 1]; // one more: a column's values lie in different banks
    __shared__ float weights_tile[DEPTH][COLUMNS * OUTS];
    int column = static_cast<int>(threadIdx.x), row = static_cast<int>(threadIdx.y),
        thread = row * COLUMNS + column, image = static_cast<int>(blockIdx.y) * IMAGES + row,
        first = static_cast<int>(blockIdx.x) * COLUMNS * OUTS;
    float sum[OUTS] = {};
    for (int begin = 0; begin < in; begin += DEPTH) {
        for (int i = thread; i < IMAGES * DEPTH; i += IMAGES * COLUMNS) {
            int n = static_cast<int>(blockIdx.y) * IMAGES + i / DEPTH, k = begin + i % DEPTH;
            x_tile[i / DEPTH][i % DEPTH] =
                n < images && k < in ? widen(x[static_cast<size_t>(n) * in + k]) : 0;
        }
        for (int i = thread; i < DEPTH * COLUMNS * OUTS; i += IMAGES * COLUMNS) {
            int k = begin + i / (COLUMNS * OUTS), o = first + i % (COLUMNS * OUTS);
            weights_tile[i / (COLUMNS * OUTS)][i % (COLUMNS * OUTS)] =
                k < in && o < out ? widen(weights[static_cast<size_t>(k) * out + o]) : 0;
        }
        __syncthreads();
        for (int k = 0; k < DEPTH && begin + k < in; k++)
            for (int j = 0; j < OUTS; j++)
                sum[j] += x_tile[row][k] * weights_tile[k][j * COLUMNS + column];
        __syncthreads();
    }
    for (int j = 0; j < OUTS && image < images; j++) {
        int o = first + j * COLUMNS + column;
        if (o < out)
            y[static_cast<size_t>(image) * out + o] = sum[j];
    }
}

cudaError_t cuda_dense(cudaStream_t stream, enum cuda_type type, int images, int in, int out, const void *x,
                       const void *weights, float *y) {
    if (images < 1 || in < 1 || out < 1)
        return cudaErrorInvalidValue;
    size_t rows = divide_up(static_cast<size_t>(images), IMAGES),
           columns = divide_up(static_cast<size_t>(out), COLUMNS * OUTS);
    if (rows > 65535) // of a grid's second dimension
        return cudaErrorInvalidValue;
    return of_type(type, [&](auto value) {
        using T = decltype(value);
        return LAUNCH(dense_forward, dim3(static_cast<unsigned>(columns), static_cast<unsigned>(rows)),
                      dim3(COLUMNS, IMAGES), 0, stream, dense_forward<T>, images, in, out,
                      static_cast<const T *>(x), static_cast<const T *>(weights), y);
    });
}
