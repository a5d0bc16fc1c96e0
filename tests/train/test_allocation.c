/* Nothing is allocated inside a step: every call of the memory allocator is counted, on all threads, while a
 * run trains over ends of epochs and the steps that report more. */
#include <malloc.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/train/trainer.h"
#include "kernels/registry.h"
#include "tests/support/cmocka.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

int main(void) {
    printf("a sanitizer has an allocator of its own\n");
    return 77;
}

#else

/* ---- the allocator, counted */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static atomic_bool counting;
static atomic_long calls, largest;

static void count(size_t bytes) {
    if (!atomic_load_explicit(&counting, memory_order_relaxed))
        return;
    atomic_fetch_add(&calls, 1);
    long seen = atomic_load(&largest);
    while ((long)bytes > seen && !atomic_compare_exchange_weak(&largest, &seen, (long)bytes)) {
    }
}

void *malloc(size_t bytes) {
    count(bytes);
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes) {
    count(n * bytes);
    return __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes) {
    count(bytes);
    return __libc_realloc(old, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
    count(bytes);
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    count(bytes);
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes) {
    count(bytes);
    *out = __libc_memalign(alignment, bytes);
    return *out ? 0 : 12;
}

/* ---- the run */

static void must(enum status status) {
    if (status != STATUS_OK)
        fail_msg("%s", status_text());
}

static void forget(void *context, const struct event *event, bool recorded) {
    (void)event, (void)recorded;
    ++*(long *)context;
}

static void train(const char *device_name, int towers) {
    struct device_handle device;
    struct dataset *data;
    struct model *model;
    struct trainer *trainer;
    long events = 0;
    must(device_open(device_name, 2, NULL, &device));
    must(dataset_open("generated", &(struct dataset_options){1, 300, 50}, &data));
    must(model_read("cifar10", (struct model_ends){32, 32, 3, data->classes}, (double)NAN, &model));
    struct trainer_options options = {
        .run_name = "test", .data = data, .model = model, .device = device, .sink = {forget, &events}};
    settings_clear(&options.settings);
    options.settings.towers = towers;
    options.settings.batch = 8;
    options.settings.eval_every = 0;
    must(trainer_open(&options, &trainer));
    trainer_begin(trainer);
    for (int step = 0; step < 3; step++)
        must(trainer_step(trainer));
    calls = largest = 0;
    counting = true;
    enum status status = STATUS_OK;
    for (int step = 0; step < 110 && status == STATUS_OK; step++)
        status = trainer_step(trainer);
    counting = false;
    must(status);
    assert_true(events > 110);
    printf("  %s, %d towers: %ld calls of the allocator in 110 steps, the largest of %ld bytes\n",
           device_name, towers, calls, largest);
    /* oneDNN's interface allocates its lists of arguments, a few bytes each, whenever it is called. */
    assert_true(largest <= 256);
    trainer_close(trainer);
    model_free(model);
    dataset_close(data);
    device_close(&device);
}

static void test_steps_allocate_nothing(void **state) {
    (void)state;
    char *counted = malloc(1);
    counting = true;
    free(malloc(1000)); /* the counting itself works */
    free(counted);
    counting = false;
    assert_int_equal(calls, 1);
    assert_int_equal(largest, 1000);
    train("cpu", 1);
    train("cpu", 2);
    train("cpu", 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps_allocate_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
