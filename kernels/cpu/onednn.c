#include "kernels/cpu/onednn.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>

struct onednn {
    dnnl_engine_t engine;
};

enum status onednn_open(struct onednn **out) {
    struct onednn *onednn = calloc(1, sizeof *onednn);
    *out = onednn;
    if (!onednn)
        return status_fail(STATUS_NO_MEMORY, "no memory for oneDNN");
    if (dnnl_engine_create(&onednn->engine, dnnl_cpu, 0) != dnnl_success)
        return status_fail(STATUS_UNSUPPORTED, "oneDNN cannot use this processor");
    return STATUS_OK;
}

void onednn_close(struct onednn *onednn) {
    if (!onednn)
        return;
    dnnl_engine_destroy(onednn->engine);
    free(onednn);
}
