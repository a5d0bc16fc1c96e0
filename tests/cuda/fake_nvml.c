/* Built as libfake_nvml.so; loaded in place of the driver's libnvidia-ml.so.1. */
#include "tests/cuda/fake_nvml.h"

#include <string.h>

enum { NOT_FOUND = 6 };

struct utilization {
    unsigned gpu, memory;
};

struct memory {
    unsigned long long total, free, used;
};

static struct fake_nvml fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .asked_again = PTHREAD_COND_INITIALIZER};

struct fake_nvml *fake_nvml(void) {
    return &fake;
}

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int error);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
int nvmlDeviceGetMemoryInfo(void *device, struct memory *out);
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *out);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *out);
int nvmlDeviceGetPowerUsage(void *device, unsigned *out);
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *out);

int nvmlInit_v2(void) {
    pthread_mutex_lock(&fake.lock);
    int error = fake.start_error;
    fake.started += !error;
    pthread_mutex_unlock(&fake.lock);
    return error;
}

int nvmlShutdown(void) {
    pthread_mutex_lock(&fake.lock);
    fake.started--;
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

const char *nvmlErrorString(int error) {
    return error == 9 ? "Driver Not Loaded" : "Unknown Error";
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
    pthread_mutex_lock(&fake.lock);
    int error = strcmp(bus, FAKE_NVML_BUS) != 0 ? NOT_FOUND : fake.lookup_error;
    fake.rounds += !strcmp(bus, FAKE_NVML_BUS);
    pthread_cond_broadcast(&fake.asked_again);
    pthread_mutex_unlock(&fake.lock);
    *device = error ? NULL : &fake;
    return error;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *out) {
    (void)device;
    pthread_mutex_lock(&fake.lock);
    *out = (struct memory){fake.total, fake.total - fake.used, fake.used};
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *out) {
    (void)device;
    pthread_mutex_lock(&fake.lock);
    *out = (struct utilization){fake.use, 99};
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

static int tell(unsigned *out, const unsigned *value, const int *error) {
    pthread_mutex_lock(&fake.lock);
    int result = error ? *error : 0;
    *out = *value;
    pthread_mutex_unlock(&fake.lock);
    return result;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *out) {
    (void)device;
    return sensor == 0 ? tell(out, &fake.celsius, NULL) : 2;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *out) {
    (void)device;
    return tell(out, &fake.milliwatts, &fake.power_error);
}

int nvmlDeviceGetClockInfo(void *device, int which, unsigned *out) {
    (void)device;
    int error = tell(out, &fake.mhz, NULL);
    *out += which == 2 ? 1000 : 0; /* the memory's clock */
    return which == 1 || which == 2 ? error : 2;
}
