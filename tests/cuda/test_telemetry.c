/* The GPUs' telemetry against a library that is not NVIDIA's. */
#include "kernels/cuda/host/telemetry.h"
#include "tests/cuda/fake_nvml.h"
#include "tests/support/cmocka.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct device_gpus two = {2, {{"cuda:0", FAKE_NVML_BUS}, {"cuda:1", "0000:af:00.0"}}};
static char library[512];
static struct fake_nvml *fake;

static int find_fake(void **state) {
    (void)state;
    const char *build = getenv("BUILD");
    snprintf(library, sizeof library, "%s/tests/cuda/libfake_nvml.so", build ? build : ".");
    void *loaded = dlopen(library, RTLD_NOW);
    assert_non_null(loaded);
    void *symbol = dlsym(loaded, "fake_nvml");
    struct fake_nvml *(*get)(void);
    memcpy(&get, &symbol, sizeof get);
    fake = get();
    return 0;
}

/* Wait until the GPU was looked up `times` more; what was told before is then to be had. */
static void await_rounds(int times) {
    pthread_mutex_lock(&fake->lock);
    int until = fake->rounds + times;
    while (fake->rounds < until)
        pthread_cond_wait(&fake->asked_again, &fake->lock);
    pthread_mutex_unlock(&fake->lock);
}

static void set_fake(unsigned use, int lookup_error, int power_error) {
    pthread_mutex_lock(&fake->lock);
    fake->use = use;
    fake->lookup_error = lookup_error;
    fake->power_error = power_error;
    fake->celsius = 61;
    fake->milliwatts = 312500;
    fake->mhz = 1755;
    fake->used = 3ull << 30;
    fake->total = 80ull << 30;
    pthread_mutex_unlock(&fake->lock);
}

static struct gpu_telemetry *open_fake(void) {
    struct gpu_telemetry *t = NULL;
    if (gpu_telemetry_open(&two, 0.002, library, &t) != STATUS_OK)
        fail_msg("%s", status_text());
    return t;
}

static void test_values(void **state) {
    (void)state;
    struct gpu_reading r;
    set_fake(87, 0, 0);
    struct gpu_telemetry *t = open_fake();
    await_rounds(2);
    assert_true(gpu_telemetry_read(t, 0, &r));
    assert_int_equal(r.valid, (1u << GPU_VALUES) - 1);
    assert_true(r.value[GPU_USE] == 0.87);
    assert_true(r.value[GPU_MEMORY_USED] == 3.0 * (1 << 30));
    assert_true(r.value[GPU_MEMORY_TOTAL] == 80.0 * (1 << 30));
    assert_true(r.value[GPU_TEMPERATURE] == 61);
    assert_true(r.value[GPU_POWER] == 312.5);
    assert_true(r.value[GPU_CLOCK] == 1755);
    assert_true(r.value[GPU_MEMORY_CLOCK] == 2755);
    /* the second GPU is not known to this library: nothing of it is made up */
    assert_true(gpu_telemetry_read(t, 1, &r));
    assert_int_equal(r.valid, 0);
    assert_false(gpu_telemetry_read(t, 2, &r));
    assert_false(gpu_telemetry_read(t, -1, &r));
    gpu_telemetry_close(t);
    assert_int_equal(fake->started, 0);
}

static void test_unknown_values(void **state) {
    (void)state;
    struct gpu_reading r;
    set_fake(120, 0, 3); /* a share that can't be; power is not supported */
    struct gpu_telemetry *t = open_fake();
    await_rounds(2);
    assert_true(gpu_telemetry_read(t, 0, &r));
    assert_int_equal(r.valid, ((1u << GPU_VALUES) - 1) & ~(1u << GPU_POWER) & ~(1u << GPU_USE));
    set_fake(50, 15, 0); /* the GPU falls off the bus */
    await_rounds(2);
    assert_true(gpu_telemetry_read(t, 0, &r));
    assert_int_equal(r.valid, 0);
    set_fake(50, 0, 0); /* and comes back */
    await_rounds(2);
    assert_true(gpu_telemetry_read(t, 0, &r));
    assert_true(r.valid & 1u << GPU_USE);
    assert_true(r.value[GPU_USE] == 0.5);
    gpu_telemetry_close(t);
}

/* A reading is given once; the next comes with the next round. */
static void test_freshness(void **state) {
    (void)state;
    struct gpu_reading r;
    struct gpu_telemetry *t = NULL;
    set_fake(10, 0, 0);
    assert_int_equal(gpu_telemetry_open(&two, 3600, library, &t), STATUS_OK);
    while (!gpu_telemetry_read(t, 1, &r))
        sched_yield();
    assert_true(gpu_telemetry_read(t, 0, &r)); /* GPU 0 was read before GPU 1 */
    assert_false(gpu_telemetry_read(t, 0, &r));
    gpu_telemetry_close(t); /* does not wait for the hour to pass */
}

static void test_refusals(void **state) {
    (void)state;
    struct gpu_telemetry *t = NULL;
    assert_int_equal(gpu_telemetry_open(&two, 1, "libnothing-like-this.so.1", &t), STATUS_UNSUPPORTED);
    assert_non_null(strstr(status_text(), "libnothing-like-this.so.1"));
    assert_int_equal(gpu_telemetry_open(&two, 1, "libz.so.1", &t), STATUS_UNSUPPORTED);
    assert_non_null(strstr(status_text(), "not a library of NVIDIA's drivers"));
    fake->start_error = 9;
    assert_int_equal(gpu_telemetry_open(&two, 1, library, &t), STATUS_UNSUPPORTED);
    assert_non_null(strstr(status_text(), "Driver Not Loaded"));
    fake->start_error = 0;
    assert_null(t);
    gpu_telemetry_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_unknown_values),
        cmocka_unit_test(test_freshness),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, find_fake, NULL);
}
