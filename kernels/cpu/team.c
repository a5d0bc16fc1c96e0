#include "kernels/cpu/team.h"

#include "kernels/cpu/library.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Pauses before a thread goes to sleep: between 15 to 50 microseconds and 16 times as long. To sleep and to
 * be woken costs more than most waits are long, but who spins in vain keeps a processor from others. So a
 * thread goes to sleep sooner when it has spun in vain, and later when that was worth while. */
enum { LEAST_SPINS = 1000, MOST_SPINS = 16000 };
enum { MOST_THREADS = 1024 };

/* A number that one thread raises and another waits for. */
struct gate {
    _Atomic uint32_t value;
    _Atomic uint32_t sleeping;
    int spins; /* of the one thread that waits: pauses before it sleeps; 0: none */
};

typedef void thread_job(void *context, int thread); /* of a function: C has no other way to name one */

struct worker {
    _Alignas(128) struct gate posted; /* jobs given to this thread */
    struct gate finished;             /* jobs it has done */
    thread_job *job;                  /* NULL: leave */
    void *context;
    struct pool *pool;
    int index;
    pthread_t thread;
    /* What the job left: of the lowest item or part that failed. */
    enum status status;
    int failed;
    char text[1024];
};

struct pool {
    int threads, started;
    struct library_threads library;
    struct worker *workers; /* [threads]; the first is the calling thread: its gates are not used */
};

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

static void gate_raise(struct gate *gate) {
    /* Sequentially consistent on both sides: either the waiter sees the new value or we see it sleeping. */
    atomic_fetch_add(&gate->value, 1);
    if (atomic_load(&gate->sleeping))
        syscall(SYS_futex, &gate->value, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Wait until the value is no longer `old`. */
static void gate_wait(struct gate *gate, uint32_t old) {
    for (int i = 0; i < gate->spins; i++) {
        if (atomic_load_explicit(&gate->value, memory_order_acquire) != old) {
            gate->spins += (MOST_SPINS - gate->spins) / 4;
            return;
        }
        relax();
    }
    if (gate->spins > LEAST_SPINS)
        gate->spins = gate->spins / 2 > LEAST_SPINS ? gate->spins / 2 : LEAST_SPINS;
    atomic_store(&gate->sleeping, 1);
    while (atomic_load(&gate->value) == old)
        syscall(SYS_futex, &gate->value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
    atomic_store(&gate->sleeping, 0);
}

static void *worker_main(void *argument) {
    struct worker *self = argument;
    library_enter(&self->pool->library);
    for (uint32_t done = 0;; done++) {
        gate_wait(&self->posted, done);
        thread_job *job = self->job;
        if (!job)
            return NULL;
        job(self->context, self->index);
        gate_raise(&self->finished);
    }
}

static void worker_post(struct worker *worker, thread_job *job, void *context) {
    worker->job = job;
    worker->context = context;
    gate_raise(&worker->posted);
}

static void worker_join(struct worker *worker) {
    /* Only its leader posts to a worker, so `posted` stands still here. */
    uint32_t posted = atomic_load_explicit(&worker->posted.value, memory_order_relaxed);
    uint32_t finished;
    while ((finished = atomic_load_explicit(&worker->finished.value, memory_order_acquire)) != posted)
        gate_wait(&worker->finished, finished);
}

static void worker_failed(struct worker *worker, int which, enum status status) {
    if (worker->status != STATUS_OK && worker->failed < which)
        return;
    worker->status = status;
    worker->failed = which;
    snprintf(worker->text, sizeof worker->text, "%s", status_text());
}

/* The failure of the lowest item among `count` workers from `first`, `step` apart. */
static enum status gather_failures(struct pool *pool, int first, int step, int count) {
    const struct worker *lowest = NULL;
    for (int i = 0; i < count; i++) {
        const struct worker *worker = &pool->workers[first + i * step];
        if (worker->status != STATUS_OK && (!lowest || worker->failed < lowest->failed))
            lowest = worker;
    }
    return lowest ? status_fail(lowest->status, "%s", lowest->text) : STATUS_OK;
}

static int processors(void) {
    cpu_set_t mask;
    int count = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 0;
    if (count < 1)
        count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count;
}

enum status pool_open(int threads, struct pool **out) {
    *out = NULL;
    int available = processors();
    if (threads == 0)
        threads = available < MOST_THREADS ? available : MOST_THREADS;
    if (threads < 1 || threads > MOST_THREADS)
        return status_fail(STATUS_BAD_INPUT,
                           "threads: %d is not possible; give 1 to %d, or 0 for one per processor", threads,
                           MOST_THREADS);
    struct pool *pool = calloc(1, sizeof *pool);
    struct worker *workers = pool ? aligned_alloc(128, (size_t)threads * sizeof *workers) : NULL;
    if (!workers) {
        free(pool);
        return status_fail(STATUS_NO_MEMORY, "no memory for %d threads", threads);
    }
    memset(workers, 0, (size_t)threads * sizeof *workers);
    pool->threads = threads;
    pool->workers = workers;
    pool->started = 1;
    pool->library = library_threads_find();

    /* Signals are for the program's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = 0;
    for (int i = 0; i < threads; i++) {
        workers[i].pool = pool;
        workers[i].index = i;
        workers[i].posted.spins = workers[i].finished.spins = threads <= available ? LEAST_SPINS : 0;
        if (i == 0)
            continue;
        error = pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
        if (error)
            break;
        pool->started++;
        char name[16];
        snprintf(name, sizeof name, "worker %d", i);
        pthread_setname_np(workers[i].thread, name);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        int started = pool->started;
        pool_close(pool);
        return status_fail(STATUS_NO_MEMORY, "started %d of %d threads: %s; use fewer (--threads)", started,
                           threads, strerror(error));
    }
    *out = pool;
    return STATUS_OK;
}

void pool_close(struct pool *pool) {
    if (!pool)
        return;
    for (int i = 1; i < pool->started; i++) {
        worker_post(&pool->workers[i], NULL, NULL);
        pthread_join(pool->workers[i].thread, NULL);
    }
    free(pool->workers);
    free(pool);
}

int pool_threads(const struct pool *pool) {
    return pool->threads;
}

int pool_workers(const struct pool *pool, int count) {
    return count < 1 ? 1 : count < pool->threads ? count : pool->threads;
}

struct each {
    struct pool *pool;
    int count, workers, size;
    enum status (*work)(void *context, int item, int worker, struct stream *stream);
    void *context;
    _Atomic int next; /* items not yet begun, after each worker's first */
};

static void each_worker(void *context, int thread) {
    struct each *each = context;
    struct worker *self = &each->pool->workers[thread];
    struct stream stream = {each->pool, thread / each->size, thread, each->size};
    enum status status_of_lowest = STATUS_OK;
    int failed = 0;
    char text[sizeof self->text] = "";
    /* A worker's first item is always the same, so that with as many workers as items each item stays with
     * its threads from step to step; what is left goes to whoever is free. */
    for (int item = stream.worker; item < each->count; item = atomic_fetch_add(&each->next, 1)) {
        enum status status = each->work(each->context, item, stream.worker, &stream);
        if (status != STATUS_OK && status_of_lowest == STATUS_OK) { /* its items come in rising order */
            status_of_lowest = status;
            failed = item;
            snprintf(text, sizeof text, "%s", status_text());
        }
    }
    /* Only now: team_run() inside the work used these. */
    self->status = status_of_lowest;
    self->failed = failed;
    memcpy(self->text, text, sizeof text);
}

enum status pool_each(struct pool *pool, int count,
                      enum status (*work)(void *context, int item, int worker, struct stream *stream),
                      void *context) {
    if (count <= 0)
        return STATUS_OK;
    int before = library_enter(&pool->library);
    int workers = pool_workers(pool, count);
    struct each each = {.pool = pool,
                        .count = count,
                        .workers = workers,
                        .size = pool->threads / workers,
                        .work = work,
                        .context = context,
                        .next = workers};
    for (int i = 1; i < workers; i++)
        worker_post(&pool->workers[i * each.size], each_worker, &each);
    each_worker(&each, 0);
    for (int i = 1; i < workers; i++)
        worker_join(&pool->workers[i * each.size]);
    library_leave(&pool->library, before);
    return gather_failures(pool, 0, each.size, workers);
}

struct team_job {
    struct pool *pool;
    int first, size, parts;
    enum status (*work)(void *context, int part, int thread);
    void *context;
};

static void team_thread(void *context, int thread) {
    const struct team_job *job = context;
    struct worker *self = &job->pool->workers[thread];
    self->status = STATUS_OK;
    for (int part = thread - job->first; part < job->parts; part += job->size) {
        enum status status = job->work(job->context, part, thread);
        if (status != STATUS_OK)
            worker_failed(self, part, status);
    }
}

enum status team_run(struct stream *stream, int parts,
                     enum status (*work)(void *context, int part, int thread), void *context) {
    int size = parts < stream->size ? parts : stream->size;
    if (size <= 1) {
        for (int part = 0; part < parts; part++)
            STATUS_TRY(work(context, part, stream->first));
        return STATUS_OK;
    }
    struct team_job job = {stream->pool, stream->first, size, parts, work, context};
    struct worker *workers = stream->pool->workers;
    for (int i = 1; i < size; i++)
        worker_post(&workers[stream->first + i], team_thread, &job);
    team_thread(&job, stream->first);
    for (int i = 1; i < size; i++)
        worker_join(&workers[stream->first + i]);
    return gather_failures(stream->pool, stream->first, 1, size);
}

enum status pool_run(struct pool *pool, int parts, enum status (*work)(void *context, int part, int thread),
                     void *context) {
    int before = library_enter(&pool->library);
    struct stream whole = {pool, 0, 0, pool->threads};
    enum status status = team_run(&whole, parts, work, context);
    library_leave(&pool->library, before);
    return status;
}

struct part part_of(int count, int parts, int part) {
    int least = count / parts, more = count % parts;
    return (struct part){part * least + (part < more ? part : more), least + (part < more)};
}
