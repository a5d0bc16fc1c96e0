/* A run at work: what `train` does in the foreground and an engine process in its own session. One function
 * runs the loop for both, with the same lock, socket, record and checkpoints. */
#ifndef TOWERSCOPE_CLI_ENGINE_H
#define TOWERSCOPE_CLI_ENGINE_H

#include "cli/options.h"
#include "cli/run_folder.h"
#include "cli/script.h"
#include "cli/session.h"
#include "cli/telemetry.h"
#include "engine/hub/hub.h"
#include "engine/train/checkpoint.h"

struct engine {
    /* given */
    struct run_options options;
    bool background; /* a pause waits for somebody; else one that no client asked for ends the run */
    bool attended; /* somebody sees what is printed: it is worth waiting for them to mend what keeps the last
                    * state from being saved */
    void (*watch)(void *context, const struct event *event); /* sees every event of training; NULL: nobody */
    void (*say)(void *context, const char *text);            /* a sentence for the log; NULL: nobody */
    /* The run's folder was made again; NULL: nobody. */
    void (*replaced)(void *context, const struct run_folder *folder);
    void *context;
    /* made by engine_open */
    struct script script;
    int script_refused; /* commands of the script, at their step */
    struct run_folder folder;
    bool folder_made; /* now, for this run */
    bool unwanted;    /* engine_close() is to take the folder away again, if it was made now */
    struct checkpoint_folder checkpoints;
    struct resume resume; /* with --resume */
    struct lock lock;     /* the hub's while there is one */
    struct session session;
    struct hub *hub;
    struct telemetry telemetry;
    const struct command *applying; /* the command at work, NULL: none */
    double next_word;               /* clock: when it is told next how far that is */
    bool steered;                   /* a client paused it, or let it step */
    bool folder_lost; /* somebody removed the folder; it is made again, and nobody was told yet */
    bool unsaved;     /* it is done, and waits for the disk to take its last state */
    double given_up;  /* clock: when nobody can be expected to make room any more */
    bool said_end;    /* it ended in order, */
    int64_t end_step; /* at this step */
};

/* How a run ended. */
struct engine_end {
    const char *reason; /* done, stopped, failed */
    char text[400];     /* why; "" */
    int code;           /* exit code */
};

/* Open everything in order: script, session (all is checked), folder, lock, hub. From then on the run is
 * live. When a resumed run has nothing left to do, engine->hub stays NULL and nothing is written. On failure
 * a folder that was made now is taken away again; call engine_close all the same. */
enum status engine_open(struct engine *engine);

/* Say of a resumed run that it has nothing left to do, and which commands of the script are beyond its end.
 * The exit code. */
int engine_nothing_left(struct engine *engine);

/* Train until the run is done, stopped, interrupted by a signal or failed; then save and say goodbye. A
 * command of the script that was refused, as one whose step was not reached, makes the exit code EXIT_REFUSED
 * when nothing worse happened. */
void engine_run(struct engine *engine, struct engine_end *end);

void engine_close(struct engine *engine);

#endif
