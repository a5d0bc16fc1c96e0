/* Items over threads: worker w does items w, w + workers, ... The calling thread is worker 0. */
#include "kernels/ref/operation.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct worker {
    pthread_t thread;
    bool started;
    int number, workers, count;
    enum status (*work)(void *context, int item, int worker, struct stream *stream);
    void *context;
    enum status status; /* of its first item that failed */
    int failed_item;
    char text[1024]; /* status_text() belongs to the thread that failed */
};

static void *worker_main(void *argument) {
    struct worker *w = argument;
    struct stream stream = {.worker = w->number};
    for (int item = w->number; item < w->count; item += w->workers) {
        enum status status = w->work(w->context, item, w->number, &stream);
        if (status != STATUS_OK && w->status == STATUS_OK) {
            w->status = status;
            w->failed_item = item;
            snprintf(w->text, sizeof w->text, "%s", status_text());
        }
    }
    return NULL;
}

int REF(workers)(const struct device *device, int count) {
    return count < device->threads ? count : device->threads;
}

enum status REF(each)(struct device *device, int count,
                      enum status (*work)(void *context, int item, int worker, struct stream *stream),
                      void *context) {
    if (count < 1)
        return STATUS_OK;
    int workers = REF(workers)(device, count);
    struct worker *worker = calloc((size_t)workers, sizeof *worker);
    if (!worker)
        return status_fail(STATUS_NO_MEMORY, "no memory for %d workers", workers);
    for (int i = 0; i < workers; i++) {
        worker[i].number = i;
        worker[i].workers = workers;
        worker[i].count = count;
        worker[i].work = work;
        worker[i].context = context;
        worker[i].started = i > 0 && pthread_create(&worker[i].thread, NULL, worker_main, &worker[i]) == 0;
    }
    for (int i = 0; i < workers; i++) /* its own share, and that of threads that could not be made */
        if (!worker[i].started)
            worker_main(&worker[i]);
    const struct worker *first = NULL;
    for (int i = 0; i < workers; i++) {
        if (worker[i].started)
            pthread_join(worker[i].thread, NULL);
        if (worker[i].status != STATUS_OK && (!first || worker[i].failed_item < first->failed_item))
            first = &worker[i];
    }
    enum status status = first ? status_fail(first->status, "%s", first->text) : STATUS_OK;
    free(worker);
    return status;
}
