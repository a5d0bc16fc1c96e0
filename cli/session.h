/* All that a run needs, opened in order and checked before anything is stored: device, data, model, trainer.
 */
#ifndef TOWERSCOPE_CLI_SESSION_H
#define TOWERSCOPE_CLI_SESSION_H

#include <stdio.h>

#include "cli/resume.h"
#include "engine/train/trainer.h"

struct session {
    struct device_handle device;
    struct dataset *data;
    struct model *model;
    struct checkpoint from; /* what a resumed run goes on from */
    struct trainer *trainer;
};

/* Open everything. `options`: settings, sink, store and the like are given; data, model and device are filled
 * in here. `resume`: what to go on from (options->settings are its settings then; what is found to have
 * changed is added to its notes), or NULL: a new run. On
 * failure everything is closed again. */
enum status session_open(const struct trainer_options *options, struct resume *resume, struct session *out);
void session_close(struct session *session);

/* One part alone, as the settings name it. */
enum status session_open_device(const struct settings *settings, struct device_handle *out);
enum status session_open_data(const struct settings *settings, struct dataset **out);

/* What is trained, on what, and the bytes of memory: a few lines for a person. */
void session_describe(const struct session *session, FILE *to);

#endif
