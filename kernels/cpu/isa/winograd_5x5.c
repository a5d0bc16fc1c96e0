/* F(4x4, 5x5) and, for the gradient of the weights, F(5x5, 4x4). */
#define KERNEL 5
#include "kernels/cpu/isa/points8.h"
#include "kernels/cpu/isa/winograd.inc"

const struct winograd_kernels ISA_SYMBOL(winograd_5x5_kernels) = WINOGRAD_TABLE;
