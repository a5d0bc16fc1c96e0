/* The pool's threads: every item and part done once and by the right thread, fixed splits, failures in order,
 * what libraries were told put back. Under the thread sanitizer this is the test of its synchronisation. */
#include "kernels/cpu/library.h"
#include "kernels/cpu/team.h"
#include "tests/support/cmocka.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 300, PARTS = 40, ITEMS = 20 };

static struct pool *opened(int threads) {
    struct pool *pool;
    if (pool_open(threads, &pool) != STATUS_OK)
        fail_msg("%s", status_text());
    return pool;
}

static void test_parts_cover(void **state) {
    (void)state;
    for (int count = 0; count < 40; count++)
        for (int parts = 1; parts < 12; parts++) {
            int next = 0, least = count / parts;
            for (int part = 0; part < parts; part++) {
                struct part p = part_of(count, parts, part);
                assert_int_equal(p.first, next);
                assert_true(p.count == least || p.count == least + 1);
                next += p.count;
            }
            assert_int_equal(next, count);
        }
}

/* What an item writes by way of its team, without any lock: the sanitizer sees whether that is enough. */
struct item {
    int value[PARTS];
    int thread[PARTS];
    int worker, first, size;
};

struct work {
    int round, parts;
    struct item items[ITEMS];
};

struct part_work {
    struct work *work;
    struct item *item;
};

static enum status add_part(void *context, int part, int thread) {
    struct part_work *p = context;
    p->item->value[part] += p->work->round;
    p->item->thread[part] = thread;
    return STATUS_OK;
}

static enum status do_item(void *context, int item, int worker, struct stream *stream) {
    struct work *work = context;
    struct item *mine = &work->items[item];
    mine->worker = worker;
    mine->first = stream->first;
    mine->size = stream->size;
    struct part_work p = {work, mine};
    STATUS_TRY(team_run(stream, work->parts, add_part, &p));
    /* The leader reads what its team wrote, and the team what the leader writes. */
    for (int i = 0; i < work->parts; i++)
        mine->value[i]++;
    return team_run(stream, work->parts, add_part, &p);
}

static void check_item(const struct work *work, int threads, int count, int i, int rounds) {
    const struct item *item = &work->items[i];
    int workers = count < threads ? count : threads;
    assert_true(item->worker >= 0 && item->worker < workers);
    assert_int_equal(item->size, threads / workers);
    assert_int_equal(item->first, item->worker * item->size);
    if (i < workers) /* a worker's first item is always its own */
        assert_int_equal(item->worker, i);
    int size = work->parts < item->size ? work->parts : item->size;
    for (int part = 0; part < work->parts; part++) {
        assert_int_equal(item->thread[part], item->first + part % size);
        assert_int_equal(item->value[part], rounds * (rounds + 1) + rounds);
    }
}

static void test_each_and_team(void **state) {
    (void)state;
    static struct work work;
    for (int threads = 1; threads <= 5; threads++) {
        struct pool *pool = opened(threads);
        assert_int_equal(pool_threads(pool), threads);
        for (int count = 1; count <= ITEMS; count += 1 + count / 3) {
            memset(&work, 0, sizeof work);
            work.parts = 1 + count * 7 % PARTS;
            int rounds = ROUNDS / threads / count + 1;
            for (work.round = 1; work.round <= rounds; work.round++)
                assert_int_equal(pool_each(pool, count, do_item, &work), STATUS_OK);
            assert_int_equal(pool_workers(pool, count), count < threads ? count : threads);
            for (int i = 0; i < count; i++)
                check_item(&work, threads, count, i, rounds);
        }
        pool_close(pool);
    }
}

static void test_whole_pool(void **state) {
    (void)state;
    static struct work work;
    struct pool *pool = opened(3);
    memset(&work, 0, sizeof work);
    struct part_work p = {&work, &work.items[0]};
    for (work.round = 1; work.round <= ROUNDS; work.round++) {
        assert_int_equal(pool_run(pool, PARTS, add_part, &p), STATUS_OK);
        if (work.round % 50 == 0)
            usleep(1000); /* let them fall asleep: not waited for, only made likely */
    }
    for (int part = 0; part < PARTS; part++) {
        assert_int_equal(work.items[0].value[part], ROUNDS * (ROUNDS + 1) / 2);
        assert_int_equal(work.items[0].thread[part], part % 3);
    }
    pool_close(pool);
}

static enum status fail_part(void *context, int part, int thread) {
    (void)thread;
    const int *from = context;
    if (part >= *from)
        return status_fail(STATUS_DEVICE, "part %d failed", part);
    return STATUS_OK;
}

static enum status fail_item(void *context, int item, int worker, struct stream *stream) {
    (void)context, (void)worker;
    int from = item < 4 ? 100 : 7;
    STATUS_TRY(status_prefix(team_run(stream, 10, fail_part, &from), "item %d: ", item));
    return STATUS_OK;
}

static void test_failures_in_order(void **state) {
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        struct pool *pool = opened(threads);
        int from = 5;
        assert_int_equal(pool_run(pool, 12, fail_part, &from), STATUS_DEVICE);
        assert_string_equal(status_text(), "part 5 failed");
        assert_int_equal(pool_each(pool, 9, fail_item, NULL), STATUS_DEVICE);
        assert_string_equal(status_text(), "item 4: part 7 failed");
        from = 100;
        assert_int_equal(pool_run(pool, 12, fail_part, &from), STATUS_OK); /* nothing sticks */
        pool_close(pool);
    }
}

static enum status library_has_one(void *context, int part, int thread) {
    (void)part, (void)thread;
    const struct library_threads *library = context;
    if (library->get && library->get() != 1)
        return status_fail(STATUS_INTERNAL, "a library may use %d threads", library->get());
    return STATUS_OK;
}

static void test_libraries_use_one_thread(void **state) {
    (void)state;
    struct library_threads library = library_threads_find();
    assert_non_null(library.set); /* Debian's oneDNN uses OpenMP */
    library.set(3);
    struct pool *pool = opened(2);
    assert_int_equal(pool_run(pool, 8, library_has_one, &library), STATUS_OK);
    assert_int_equal(library.get(), 3);
    pool_close(pool);
}

static void test_number_of_threads(void **state) {
    (void)state;
    struct pool *pool;
    assert_int_equal(pool_open(-1, &pool), STATUS_BAD_INPUT);
    assert_null(pool);
    assert_int_equal(pool_open(1 << 20, &pool), STATUS_BAD_INPUT);
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    pool = opened(0);
    assert_int_equal(pool_threads(pool), CPU_COUNT(&before));
    pool_close(pool);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    pool = opened(0);
    assert_int_equal(pool_threads(pool), 1);
    pool_close(pool);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    pool_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_cover),
        cmocka_unit_test(test_each_and_team),
        cmocka_unit_test(test_whole_pool),
        cmocka_unit_test(test_failures_in_order),
        cmocka_unit_test(test_libraries_use_one_thread),
        cmocka_unit_test(test_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
