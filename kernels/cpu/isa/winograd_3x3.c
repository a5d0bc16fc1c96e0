/* F(4x4, 3x3) and, for the gradient of the weights, F(3x3, 4x4). */
#define KERNEL 3
#include "kernels/cpu/isa/points6.h"
#include "kernels/cpu/isa/winograd.inc"

const struct winograd_kernels ISA_SYMBOL(winograd_3x3_kernels) = WINOGRAD_TABLE;
