/* The threads of the CPU device: a pool, and teams of it.
 *
 * A pool has a fixed number of threads, the calling one being thread 0. pool_each() runs items on
 * workers = min(count, threads) workers at once; each worker leads a team of size = max(1, threads / workers)
 * threads (thread numbers first .. first + size - 1) for a tower's lanes (device.h), and for what is made of
 * the parameters once a step, with team_run(). An operation runs on the thread that calls for it,
 * stream->first.
 *
 * Every team of one call of pool_each() has the same size: so the same number of threads gives the same
 * lanes, and the same bytes, whichever thread does what.
 *
 * Idle threads spin for some tens to hundreds of microseconds, then sleep on a futex: the less the more often
 * it was in vain. With more threads than processors they don't spin. Libraries are told to use one thread in
 * each of these threads. */
#ifndef TOWERSCOPE_KERNELS_CPU_TEAM_H
#define TOWERSCOPE_KERNELS_CPU_TEAM_H

#include "kernels/status.h"

struct pool;

/* A worker and its team. Valid within the call that handed it out. */
struct stream {
    struct pool *pool;
    int worker;
    int first, size;
};

/* threads: 0 = one per processor in the affinity mask of the caller. */
enum status pool_open(int threads, struct pool **out);
void pool_close(struct pool *pool); /* NULL is fine */
int pool_threads(const struct pool *pool);
int pool_workers(const struct pool *pool, int count);

/* As device_ops.each. Not to be called from inside itself, nor by two threads at once. */
enum status pool_each(struct pool *pool, int count,
                      enum status (*work)(void *context, int item, int worker, struct stream *stream),
                      void *context);

/* Run work(context, part, thread) for part 0 .. parts - 1 on the stream's team: part p on the team's thread
 * p modulo size, so that the same part of the next operation finds its data in the same core's cache.
 * `thread` is the number within the pool, to pick memory of that thread's own. Returns when all are done;
 * the failure of the lowest part is the result. */
enum status team_run(struct stream *stream, int parts,
                     enum status (*work)(void *context, int part, int thread), void *context);

/* The whole pool as one team, for what runs between calls of pool_each(): work(context, part, thread) as in
 * team_run(). Same restrictions as pool_each(). */
enum status pool_run(struct pool *pool, int parts, enum status (*work)(void *context, int part, int thread),
                     void *context);

/* Part `part` of `parts` of `count` things: sizes differ by at most one, the larger ones come first. */
struct part {
    int first, count;
};
struct part part_of(int count, int parts, int part);
#endif
