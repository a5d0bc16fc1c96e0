#include "cli/resume.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

enum status resume_find(const struct run_folder *folder, const struct settings *given, struct resume *out) {
    *out = (struct resume){0};
    char checkpoints[PATH_MAX + 16];
    resume_checkpoints(folder, checkpoints, sizeof checkpoints);
    settings_clear(&out->settings);
    enum status status = checkpoint_newest(checkpoints, out->checkpoint, sizeof out->checkpoint);
    if (status == STATUS_NOT_FOUND) {
        *out->checkpoint = 0;
        STATUS_TRY(read_config(folder, out));
    } else if (status == STATUS_OK) {
        status = checkpoint_look(out->checkpoint, &out->about);
        if (status == STATUS_BAD_INPUT)
            return status_fail(status, "%s; move it away to go on from the checkpoint before it",
                               status_text());
        STATUS_TRY(status);
        out->settings = out->about.settings;
        out->has_config = true;
    } else
        return status;
    settings_overlay(&out->settings, given);
    return STATUS_OK;
}

void resume_free(struct resume *resume) {
    checkpoint_about_free(&resume->about);
}
