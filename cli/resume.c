#include "cli/resume.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/wire/codec.h"
#include "engine/wire/record.h"

void resume_checkpoints(const struct run_folder *folder, char *out, size_t size) {
    snprintf(out, size, "%s/checkpoints", folder->path);
}

/* Settings of a run that has no checkpoint: config.ini, or nothing when it ended before that was written. */
static enum status read_config(const struct run_folder *folder, struct resume *out) {
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/config.ini", folder->path);
    enum status status = settings_read(&out->settings, path);
    out->has_config = status != STATUS_NOT_FOUND;
    return out->has_config ? status : STATUS_OK;
}

void resume_note(struct resume *resume, const char *format, ...) {
    size_t used = strlen(resume->notes);
    int length = used ? snprintf(resume->notes + used, sizeof resume->notes - used, "; ") : 0;
    va_list arguments;
    va_start(arguments, format);
    if (length >= 0 && used + (size_t)length < sizeof resume->notes)
        vsnprintf(resume->notes + used + length, sizeof resume->notes - used - (size_t)length, format,
                  arguments);
    va_end(arguments);
}

/* Whether a line begins as an event of this kind does. */
static bool is_kind(const char *line, size_t length, const char *word) {
    return memmem(line, length < 64 ? length : 64, word, strlen(word)) != NULL;
}

/* What the record of a run says of it: of its newest start, and the step that was saved last. */
static struct resume_record read_record(const struct run_folder *folder) {
    struct resume_record out = {.saved = -1, .seed = WIRE_UNKNOWN_INT, .train = WIRE_UNKNOWN_INT};
    struct record_reader *reader;
    struct arena arena = {0};
    struct event event;
    const char *line;
    size_t length;
    if (record_reader_open(folder->path, 0, &reader) != STATUS_OK)
        return out;
    while (record_next_line(reader, -1, &line, &length) == STATUS_OK) {
        if ((!is_kind(line, length, "\"event\":\"checkpoint\"") &&
             !is_kind(line, length, "\"event\":\"run_start\"")) ||
            event_decode(line, length, &arena, &event) != STATUS_OK)
            continue;
        if (event.kind == EVENT_CHECKPOINT)
            out.saved = event.checkpoint.step;
        if (event.kind == EVENT_RUN_START) {
            out.seed = event.run_start.seed;
            out.train = event.run_start.data_train;
            snprintf(out.model, sizeof out.model, "%s", event.run_start.model ? event.run_start.model : "");
        }
        arena_reset(&arena);
    }
    arena_free(&arena);
    record_reader_close(reader);
    return out;
}

/* No checkpoint: a run that ended before its first one begins again; one whose checkpoints are gone does not
 * do so by itself. */
static enum status without_checkpoint(const struct run_folder *folder, const char *checkpoints,
                                      struct resume *out) {
    int64_t saved = out->record.saved;
    *out->checkpoint = 0;
    if (saved >= 0 && !out->begin_again)
        return status_fail(
            STATUS_REFUSED,
            "%s: its record says that step %lld was saved, and there is no checkpoint in %s: put them back "
            "there; --begin-again begins at step 0",
            folder->path, (long long)saved, checkpoints);
    if (saved >= 0)
        resume_note(out, "its record says that step %lld was saved, and the checkpoints are gone",
                    (long long)saved);
    return read_config(folder, out);
}

/* A file that was renamed or put in another one's place would take the run back without a word. */
static enum status check_name(const struct resume *resume) {
    const char *slash = strrchr(resume->checkpoint, '/');
    long long step;
    if (!slash || sscanf(slash + 1, "step-%lld", &step) != 1 || step == resume->about.step)
        return STATUS_OK;
    return status_fail(STATUS_BAD_INPUT,
                       "%s: by its name it is of step %lld, but it holds step %lld (renamed, or copied "
                       "over another?)",
                       resume->checkpoint, step, (long long)resume->about.step);
}

/* What stays the same as long as a run lasts: a file that says otherwise was put here from another one. */
static enum status check_run(const struct resume *resume) {
    const struct resume_record *record = &resume->record;
    const struct checkpoint_about *about = &resume->about;
    if (*record->model && strcmp(record->model, about->model) != 0)
        return status_fail(STATUS_BAD_INPUT, "%s is of another run: its model is %s, this run's %s",
                           resume->checkpoint, about->model, record->model);
    if (record->seed != WIRE_UNKNOWN_INT && about->settings.seed >= 0 && record->seed != about->settings.seed)
        return status_fail(STATUS_BAD_INPUT, "%s is of another run: its seed is %lld, this run's %lld",
                           resume->checkpoint, (long long)about->settings.seed, (long long)record->seed);
    return STATUS_OK;
}

static bool is_newer(const struct stat *a, const struct stat *b) {
    return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec > b->st_mtim.tv_sec
                                                  : a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

/* Whoever writes into config.ini of a run that ended is told that it is not what a run goes on with, before
 * it is written anew. One that is older than the checkpoint may differ from it by `towers` and `set` alone.
 */
static void note_edited(const struct run_folder *folder, const struct settings *given, struct resume *out) {
    char path[PATH_MAX + 16], changes[1024];
    struct stat config, saved;
    struct settings file, both = out->settings;
    snprintf(path, sizeof path, "%s/config.ini", folder->path);
    settings_clear(&file);
    if (stat(path, &config) != 0 || stat(out->checkpoint, &saved) != 0 || !is_newer(&config, &saved))
        return;
    if (settings_read(&file, path) != STATUS_OK) {
        resume_note(out, "%s; the run goes on with the settings of its checkpoint", status_text());
        return;
    }
    file.given &= ~given->given;
    settings_overlay(&both, &file);
    if (settings_changes(&out->settings, &both, changes, sizeof changes) > 0)
        resume_note(
            out,
            "config.ini was changed since, but a run goes on with the settings of its checkpoint: give as "
            "options what it changes (%s)",
            changes);
}

static enum status with_checkpoint(const struct run_folder *folder, const struct settings *given,
                                   struct resume *out) {
    if (out->begin_again)
        return status_fail(
            STATUS_REFUSED,
            "%s has checkpoints, as %s: --begin-again is for a run whose checkpoints are gone; start another "
            "run, or move them away",
            folder->path, out->checkpoint);
    enum status status = checkpoint_look(out->checkpoint, &out->about);
    if (status == STATUS_OK)
        status = check_name(out);
    else if (status == STATUS_NOT_FOUND) /* though its name is there */
        status = status_fail(STATUS_BAD_INPUT, "%s is a broken link", out->checkpoint);
    if (status == STATUS_OK)
        status = check_run(out);
    if (status == STATUS_BAD_INPUT)
        return status_fail(status, "%s; move it away to go on from the checkpoint before it", status_text());
    STATUS_TRY(status);
    out->settings = out->about.settings;
    out->has_config = true;
    note_edited(folder, given, out);
    int64_t saved = out->record.saved;
    if (saved > out->about.step)
        resume_note(
            out, "its record says that step %lld was saved last, and the newest checkpoint is of step %lld",
            (long long)saved, (long long)out->about.step);
    return STATUS_OK;
}

enum status resume_find(const struct run_folder *folder, const struct settings *given, struct resume *out) {
    *out = (struct resume){.model_given = *given->model, .begin_again = given->begin_again};
    char checkpoints[PATH_MAX + 16];
    resume_checkpoints(folder, checkpoints, sizeof checkpoints);
    settings_clear(&out->settings);
    out->record = read_record(folder);
    enum status status = checkpoint_newest(checkpoints, out->checkpoint, sizeof out->checkpoint);
    if (status == STATUS_NOT_FOUND)
        STATUS_TRY(without_checkpoint(folder, checkpoints, out));
    else if (status == STATUS_OK)
        STATUS_TRY(with_checkpoint(folder, given, out));
    else
        return status;
    settings_overlay(&out->settings, given);
    return STATUS_OK;
}

void resume_free(struct resume *resume) {
    checkpoint_about_free(&resume->about);
}
