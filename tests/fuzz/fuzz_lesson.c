/* The reader of lessons. The lesson is what the fuzzer says; its run is made up, so that nothing is trained.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lesson.h"
#include "engine/train/trainer.h"
#include "tests/support/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 4096, MOST_EVENTS = 2000 };

static char text[MOST + 1];
const struct lesson_source lesson_sources[] = {{"fuzz", text}, {NULL, NULL}};

/* ---- a run that only tells */

static struct trainer_sink sink;
static int events; /* told so far in this lesson */

static enum status tell(void *context, const struct event *event) {
    (void)context;
    if (++events > MOST_EVENTS)
        return status_fail(STATUS_REFUSED, "enough of this lesson");
    sink.emit(sink.context, event, true);
    return STATUS_OK;
}

static enum status play(const char *frozen) {
    return stream_play(&(struct stream_script){.towers = 3, .steps = 2, .batch = 10, .frozen = frozen}, tell,
                       NULL);
}

enum status session_open(const struct trainer_options *options, struct resume *resume, struct session *out) {
    static char nothing;
    (void)resume;
    sink = options->sink;
    out->trainer = (struct trainer *)&nothing;
    return STATUS_OK;
}

void session_close(struct session *session) {
    session->trainer = NULL;
}

void trainer_begin(struct trainer *trainer) {
    (void)trainer;
}

enum status trainer_step(struct trainer *trainer) {
    (void)trainer;
    return play(NULL);
}

enum status trainer_settle(struct trainer *trainer) {
    (void)trainer;
    return STATUS_OK;
}

enum status trainer_command(struct trainer *trainer, const struct command *command, bool *refused) {
    (void)trainer, (void)refused;
    return command->kind == COMMAND_PHASE ? play("update") : play(NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > MOST)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    char title[80];
    lesson_title(text, title, sizeof title);
    struct lesson lesson;
    events = 0;
    if (lesson_open("fuzz", &lesson) != STATUS_OK)
        abort();
    while (!lesson.done && lesson_next(&lesson) == STATUS_OK)
        if (!memchr(lesson.said, 0, sizeof lesson.said) || !memchr(lesson.keys, 0, sizeof lesson.keys))
            abort();
    if (!lesson.done && !*status_text())
        abort();
    lesson_close(&lesson);
    return 0;
}
