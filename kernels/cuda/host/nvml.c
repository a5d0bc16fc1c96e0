#include "kernels/cuda/host/nvml.h"

#include <dlfcn.h>
#include <string.h>

/* dlsym() gives an object's address and C has no cast from that to a function's. */
static bool find(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol;
}

enum status nvml_open(const char *library, struct nvml *out) {
    const char *name = library ? library : "libnvidia-ml.so.1";
    *out = (struct nvml){0};
    void *l = out->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!l) {
        const char *said = dlerror();
        return status_fail(STATUS_UNSUPPORTED, "the GPUs' telemetry is not known: %s",
                           said ? said : "the library does not load");
    }
    if (!find(l, "nvmlInit_v2", &out->start) || !find(l, "nvmlShutdown", &out->stop) ||
        !find(l, "nvmlErrorString", &out->words) ||
        !find(l, "nvmlDeviceGetHandleByPciBusId_v2", &out->by_bus) ||
        !find(l, "nvmlDeviceGetMemoryInfo", &out->memory)) {
        out->stop = NULL;
        nvml_close(out);
        return status_fail(STATUS_UNSUPPORTED,
                           "the GPUs' telemetry is not known: %s is not a library of NVIDIA's drivers", name);
    }
    find(l, "nvmlDeviceGetUtilizationRates", &out->utilization);
    find(l, "nvmlDeviceGetTemperature", &out->temperature);
    find(l, "nvmlDeviceGetPowerUsage", &out->power);
    find(l, "nvmlDeviceGetClockInfo", &out->clock);
    int error = out->start();
    if (error == NVML_DONE)
        return STATUS_OK;
    const char *words = out->words(error);
    enum status status = status_fail(STATUS_UNSUPPORTED, "the GPUs' telemetry is not known: %s: %s", name,
                                     words ? words : "no reason given");
    out->stop = NULL;
    nvml_close(out);
    return status;
}

void nvml_close(struct nvml *nvml) {
    if (nvml->stop)
        (void)nvml->stop();
    if (nvml->library)
        dlclose(nvml->library);
    *nvml = (struct nvml){0};
}
