/* Gives events their number and time and appends those of the record to the run's events.jsonl. */
#ifndef TOWERSCOPE_CLI_RECORDER_H
#define TOWERSCOPE_CLI_RECORDER_H

#include "engine/base/arena.h"
#include "engine/wire/record.h"

struct recorder {
    struct record_writer *writer; /* NULL: nothing is stored */
    struct arena arena;           /* of one line */
    bool waiting;                 /* lines that the disk did not take yet */
    int64_t seq;                  /* of the last event */
};

enum status recorder_open(const char *folder, struct recorder *out);
void recorder_close(struct recorder *recorder);

/* Append an event. STATUS_IO: the line waits in memory and is tried again with the next; STATUS_BAD_INPUT:
 * the event is too long for a line and is not part of the record. */
enum status recorder_append(struct recorder *recorder, const struct event *event);

#endif
