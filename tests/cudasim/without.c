/* Stands for the tests of simulated kernels where they can't be built. */
#include <stdio.h>

int main(void) {
    puts("not found: " MISSING);
    return 77;
}
