/* Which GPU may be used, and the reasons why not, told apart: cuda_probe() on a CUDA runtime that says what
 * the test wants. */
#include "kernels/cuda/runtime.h"
#include "tests/support/cmocka.h"

#include <string.h>

static struct {
    cudaError_t error; /* of counting */
    int count, driver, major, minor;
} fake;

/* ---- the runtime, by its real prototypes */

cudaError_t cudaGetDeviceCount(int *count) {
    if (fake.error == cudaSuccess)
        *count = fake.count; /* left alone otherwise, as the real one does */
    return fake.error;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
    (void)device;
    memset(out, 0, sizeof *out);
    memcpy(out->name, "Fake GPU", sizeof "Fake GPU");
    out->major = fake.major;
    out->minor = fake.minor;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = fake.driver;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    return fake.error;
}

const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorMemoryAllocation ? "out of memory" : "some error";
}

/* ---- */

static void expect(int index, enum status status, const char *words) {
    struct cudaDeviceProp properties;
    assert_int_equal(cuda_probe(index, &properties), status);
    if (status != STATUS_OK && !strstr(status_text(), words))
        fail_msg("expected \"%s\" in: %s", words, status_text());
}

static void test_reasons(void **state) {
    (void)state;
    fake.error = cudaErrorInsufficientDriver;
    expect(0, STATUS_UNSUPPORTED, "no driver");
    fake.error = cudaErrorStubLibrary;
    expect(0, STATUS_UNSUPPORTED, "no driver");
    fake.error = cudaErrorInsufficientDriver;
    fake.driver = 12040;
    expect(0, STATUS_UNSUPPORTED, "driver too old: it serves CUDA 12.4, and this plugin needs 13.0");
    fake.driver = 13000;
    fake.error = cudaErrorNoDevice;
    expect(0, STATUS_UNSUPPORTED, "no device");
    fake.error = cudaErrorUnknown;
    expect(0, STATUS_UNSUPPORTED, "some error");
    fake.error = cudaSuccess;
    fake.count = 0;
    expect(0, STATUS_UNSUPPORTED, "no device");
    fake.count = 2;
    fake.major = 6;
    fake.minor = 1;
    expect(0, STATUS_UNSUPPORTED, "device too old (sm_61)");
    expect(2, STATUS_NOT_FOUND, "the last is 1");
    expect(-1, STATUS_NOT_FOUND, "number -1");
    fake.major = 7;
    fake.minor = 5;
    expect(1, STATUS_OK, "");
    fake.minor = 0;
    expect(1, STATUS_UNSUPPORTED, "device too old (sm_70)");
    fake.major = 12;
    expect(0, STATUS_OK, "");
}

static void test_errors(void **state) {
    (void)state;
    assert_int_equal(cuda_checked(cudaSuccess, "x"), STATUS_OK);
    assert_int_equal(cuda_checked(cudaErrorMemoryAllocation, "allocate"), STATUS_NO_MEMORY);
    assert_string_equal(status_text(), "CUDA cannot allocate: out of memory");
    assert_int_equal(cuda_checked(cudaErrorIllegalAddress, "wait"), STATUS_DEVICE);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reasons), cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
