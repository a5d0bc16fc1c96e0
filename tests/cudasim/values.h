// Values of the simulated libraries' tensors: floats, or bfloat16 where the precision is so.
#ifndef TOWERSCOPE_TESTS_CUDASIM_VALUES_H
#define TOWERSCOPE_TESTS_CUDASIM_VALUES_H

#include "kernels/cuda/kernels.h"

#include <cuda_bf16.h>

#include <cstdint>
#include <cstring>

namespace cudasim {

struct values {
    void *data;
    cuda_type type;

    values(void *to, cuda_type t) : data(to), type(t) {}
    values(const void *from, cuda_type t) : data(const_cast<void *>(from)), type(t) {}
    double get(size_t i) const {
        if (type == CUDA_TYPE_BF16)
            return __bfloat162float(static_cast<const __nv_bfloat16 *>(data)[i]);
        return static_cast<const float *>(data)[i];
    }
    void set(size_t i, double value) const {
        if (type == CUDA_TYPE_BF16)
            static_cast<__nv_bfloat16 *>(data)[i] = __float2bfloat16_rn(static_cast<float>(value));
        else
            static_cast<float *>(data)[i] = static_cast<float>(value);
    }
};

// What TF32 keeps of a factor: ten bits behind the point.
inline double factor(double value, bool tf32) {
    if (!tf32)
        return value;
    float f = static_cast<float>(value);
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits = (bits + 0x1000) & 0xffffe000;
    memcpy(&f, &bits, sizeof bits);
    return f;
}

} // namespace cudasim

#endif
