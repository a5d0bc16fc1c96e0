#include "cli/recorder.h"

#include "engine/base/clock.h"
#include "engine/wire/codec.h"

enum status recorder_open(const char *folder, struct recorder *out) {
    *out = (struct recorder){0};
    STATUS_TRY(record_writer_open(folder, &out->writer));
    out->seq = record_last_seq(out->writer);
    return STATUS_OK;
}

void recorder_close(struct recorder *recorder) {
    record_writer_close(recorder->writer);
    arena_free(&recorder->arena);
    *recorder = (struct recorder){0};
}

enum status recorder_append(struct recorder *recorder, const struct event *event) {
    if (!recorder->writer)
        return STATUS_OK;
    struct event numbered = *event;
    numbered.seq = recorder->seq + 1;
    numbered.time = clock_wall();
    char *line;
    size_t length;
    arena_reset(&recorder->arena);
    STATUS_TRY(event_encode(&numbered, &recorder->arena, &line, &length));
    recorder->seq++;
    if (recorder->waiting)
        (void)record_retry(recorder->writer);
    enum status status = record_append(recorder->writer, line, length, numbered.seq);
    recorder->waiting = status == STATUS_IO;
    return status;
}
