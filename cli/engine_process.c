/* `towerscope engine`: what `run` starts in a session of its own. Not for people. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/engine.h"
#include "cli/launch.h"
#include "cli/lines.h"
#include "cli/log.h"
#include "cli/signals.h"

enum { LOG_STEPS = 1000 }; /* between two lines of steps */

struct process {
    struct engine engine;
    struct lines lines;
    struct log log;
};

static void watch(void *context, const struct event *event) {
    struct process *process = context;
    lines_event(&process->lines, event);
    if (event->kind != EVENT_STEP)
        log_turn(&process->log);
}

static void say(void *context, const char *text) {
    struct process *process = context;
    log_line(&process->log, text);
}

static void replaced(void *context, const struct run_folder *folder) {
    struct process *process = context;
    if (log_open(&process->log, folder->fd, folder->path) == STATUS_OK)
        log_line(&process->log, "somebody removed the run's folder, and what this log said before with it");
}

/* The log becomes stdout and stderr; before that both are those of `run`, so that it shows why a start
 * failed. */
static enum status go_live(struct process *process) {
    struct engine *engine = &process->engine;
    enum status status = log_open(&process->log, engine->folder.fd, engine->folder.path);
    if (status != STATUS_OK)
        return status;
    const struct settings *settings = trainer_settings(engine->session.trainer);
    process->lines.out = stdout;
    process->lines.errors = stderr;
    process->lines.every = LOG_STEPS;
    process->lines.planned = settings->steps >= 0 ? settings->steps : WIRE_UNKNOWN_INT;
    char text[200];
    snprintf(text, sizeof text, "towerscope %s, process %ld", TOWERSCOPE_VERSION, (long)getpid());
    log_line(&process->log, text);
    session_describe(&engine->session, stdout);
    if (*trainer_resumed(engine->session.trainer))
        printf("resume  %s\n", trainer_resumed(engine->session.trainer));
    launch_tell(engine->folder.path);
    return STATUS_OK;
}

/* How a run that was to go on does so: on stderr of the one who asked, since scripts read its name on stdout.
 */
static void tell_resumed(const struct engine *engine) {
    const char *words = trainer_resumed(engine->session.trainer);
    if (*words)
        fprintf(stderr, "towerscope: %s %s\n", engine->folder.name, words);
}

static int run(struct process *process) {
    struct engine *engine = &process->engine;
    struct engine_end end;
    if (!engine->hub)
        return engine_nothing_left(engine);
    tell_resumed(engine);
    enum status status = go_live(process);
    engine->unwanted = status != STATUS_OK;
    if (status != STATUS_OK)
        return cli_fail(status);
    engine_run(engine, &end);
    char text[500];
    snprintf(text, sizeof text, "%s%s%s", end.reason, *end.text ? ": " : "", end.text);
    log_line(&process->log, text);
    return end.code;
}

int command_engine(int argc, char **argv) {
    static struct process process;
    struct engine *engine = &process.engine;
    fcntl(LAUNCH_FD, F_SETFD, FD_CLOEXEC);
    engine->background = true;
    engine->watch = watch;
    engine->say = say;
    engine->replaced = replaced;
    engine->context = &process;
    enum status status = options_read(argc, argv, &engine->options);
    if (status != STATUS_OK) {
        cli_fail(status);
        return EXIT_USAGE;
    }
    if (engine->options.help) {
        printf("`towerscope engine` is what `towerscope run` starts, with the same options; start runs by "
               "that\n");
        return EXIT_DONE;
    }
    signals_catch(true);
    status = engine_open(engine);
    int code = status == STATUS_OK ? run(&process) : cli_fail(status);
    engine_close(engine);
    return code;
}
