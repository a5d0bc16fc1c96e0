#include "kernels/cpu/library.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <string.h>

struct library_threads library_threads_find(void) {
    struct library_threads found = {0};
    void *set = dlsym(RTLD_DEFAULT, "omp_set_num_threads"), *get = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    if (set && get) {
        memcpy(&found.set, &set, sizeof set);
        memcpy(&found.get, &get, sizeof get);
    }
    return found;
}

int library_enter(const struct library_threads *threads) {
    if (!threads->set)
        return 1;
    int before = threads->get();
    threads->set(1);
    return before;
}

void library_leave(const struct library_threads *threads, int before) {
    if (threads->set)
        threads->set(before);
}

void library_limit_isa(enum cpu_isa isa) {
    /* Best is "all": limiting to avx512_core would shut out newer instructions of the same width. */
    static const dnnl_cpu_isa_t limits[ISA_COUNT] = {dnnl_cpu_isa_all, dnnl_cpu_isa_avx2, dnnl_cpu_isa_sse41};
    dnnl_set_max_cpu_isa(limits[isa]); /* fails once the library is in use, see the header */
}
