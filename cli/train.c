/* `towerscope train`: a run in the foreground, without a console. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/lines.h"
#include "cli/options.h"
#include "cli/recorder.h"
#include "cli/run_folder.h"
#include "cli/script.h"
#include "cli/session.h"
#include "engine/wire/lock.h"

struct foreground {
    struct run_options options;
    struct script script;
    struct run_folder folder;
    bool folder_made; /* now, for this run */
    struct checkpoint_folder checkpoints;
    struct resume resume; /* with --resume */
    int lock;             /* descriptor; -1: none */
    struct session session;
    struct recorder recorder;
    bool recording_failed; /* said already */
    struct lines lines;
};

/* ---- signals: the first asks the loop to end after its step; the following ones are taken and do nothing,
 * so that a save in progress is never broken */

static volatile sig_atomic_t asked_to_end;

static void on_signal(int number) {
    asked_to_end = number;
}

static void catch_signals(void) {
    struct sigaction end = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct sigaction was;
        /* a signal that was ignored from the start (nohup) stays so */
        if (!sigaction(ends[i], NULL, &was) && was.sa_handler != SIG_IGN)
            sigaction(ends[i], &end, NULL);
    }
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL); /* a reader that leaves does not end the run */
    sigaction(SIGXFSZ, &ignore, NULL); /* a file size limit is a full disk */
}

static bool interrupted(void *context) {
    (void)context;
    return asked_to_end != 0;
}

/* ---- events */

static void emit(void *context, const struct event *event, bool recorded) {
    struct foreground *f = context;
    if (recorded) {
        enum status status = recorder_append(&f->recorder, event);
        if (status != STATUS_OK && !f->recording_failed) {
            lines_break(&f->lines);
            fprintf(stderr, "towerscope: %s\n", status_text());
        }
        f->recording_failed = status != STATUS_OK;
    }
    lines_event(&f->lines, event);
}

static enum status save(void *context, const struct snapshot *snapshot, struct event_checkpoint *out) {
    struct foreground *f = context;
    return checkpoint_save(&f->checkpoints, snapshot, out);
}

/* ---- before the first step */

static enum status open_session(struct foreground *f, const struct settings *settings,
                                const struct resume *resume) {
    struct trainer_options options = {
        .settings = *settings,
        .run_name = f->folder.name, /* there when the run begins, as is the folder of checkpoints */
        .sink = {emit, f},
        .store = {save, f},
        .interrupted = interrupted,
    };
    return session_open(&options, resume, &f->session);
}

static enum status take_lock(struct foreground *f) {
    enum status status = lock_take(f->folder.path, &f->lock);
    return status == STATUS_BUSY ? status_fail(STATUS_REFUSED, "%s", status_text()) : status;
}

static enum status open_new(struct foreground *f, const char *runs) {
    if (*f->options.name)
        STATUS_TRY(run_folder_check(runs, f->options.name));
    STATUS_TRY(open_session(f, &f->options.settings, NULL));
    STATUS_TRY(run_folder_make(runs, f->options.name, &f->folder));
    f->folder_made = true;
    STATUS_TRY(run_folder_config(&f->folder, trainer_settings(f->session.trainer)));
    return take_lock(f);
}

static enum status open_old(struct foreground *f, const char *runs) {
    STATUS_TRY(run_folder_find(runs, f->options.name, &f->folder));
    STATUS_TRY(take_lock(f));
    STATUS_TRY(resume_find(&f->folder, &f->options.settings, &f->resume));
    STATUS_TRY(open_session(f, &f->resume.settings, &f->resume));
    /* a run that was killed before it had begun may have left an empty folder */
    return !f->resume.has_config ? run_folder_config(&f->folder, trainer_settings(f->session.trainer))
                                 : STATUS_OK;
}

static enum status open_run(struct foreground *f) {
    const struct settings *given = &f->options.settings;
    const char *runs = *given->runs ? given->runs : settings_find("runs")->fallback;
    if (*f->options.script)
        STATUS_TRY(script_read(f->options.script, &f->script));
    STATUS_TRY(given->resume ? open_old(f, runs) : open_new(f, runs));
    resume_checkpoints(&f->folder, f->checkpoints.path, sizeof f->checkpoints.path);
    if (trainer_finished(f->session.trainer)) /* resumed, and there is nothing left to do */
        return STATUS_OK;
    return recorder_open(f->folder.path, &f->recorder);
}

static void open_lines(struct foreground *f) {
    const struct settings *settings = trainer_settings(f->session.trainer);
    const char *terminal = getenv("TERM");
    f->lines.out = stdout;
    f->lines.errors = stderr;
    f->lines.every = settings->log_every;
    f->lines.planned = settings->steps >= 0 ? settings->steps : WIRE_UNKNOWN_INT;
    f->lines.progress = isatty(STDOUT_FILENO) && !options_given(&f->options, "log-every") && terminal &&
                        strcmp(terminal, "dumb") != 0;
}

/* ---- the loop */

static enum status run_commands(struct foreground *f) {
    const struct command *command;
    while ((command = script_take(&f->script, trainer_steps(f->session.trainer))))
        STATUS_TRY(trainer_command(f->session.trainer, command, NULL));
    return STATUS_OK;
}

static enum status loop(struct foreground *f) {
    struct trainer *trainer = f->session.trainer;
    trainer_begin(trainer);
    for (;;) {
        STATUS_TRY(run_commands(f));
        if (asked_to_end || trainer_finished(trainer) || trainer_paused(trainer))
            return STATUS_OK;
        STATUS_TRY(trainer_step(trainer));
    }
}

/* Say goodbye; returns the exit code. */
static int finish(struct foreground *f, enum status status) {
    struct trainer *trainer = f->session.trainer;
    const char *reason = "done", *text = NULL;
    char words[400];
    int code = EXIT_DONE;
    if (status != STATUS_OK) {
        snprintf(words, sizeof words, "%s", status_text());
        reason = "failed";
        text = words;
        code = cli_fail(status);
    } else if (asked_to_end) {
        snprintf(words, sizeof words, "signal %d (%s)", (int)asked_to_end, strsignal((int)asked_to_end));
        reason = "stopped";
        text = words;
        code = EXIT_INTERRUPTED;
    } else if (trainer_stopped(trainer)) {
        reason = "stopped";
        text = "by command";
    } else if (*trainer_fault(trainer)) {
        reason = "failed";
        text = trainer_fault(trainer);
        code = EXIT_FAILED;
    } else if (trainer_paused(trainer)) {
        reason = "stopped";
        text = "paused, and nothing can resume a run in the foreground";
    }
    if (trainer_end(trainer, reason, text) != STATUS_OK && code != EXIT_FAILED)
        code = cli_fail(STATUS_IO);
    lines_break(&f->lines);
    printf("%s after %lld steps%s%s\nrun     %s\n", reason, (long long)trainer_steps(trainer),
           text ? ": " : "", text ? text : "", f->folder.path);
    return code;
}

static void close_all(struct foreground *f) {
    session_close(&f->session);
    resume_free(&f->resume);
    recorder_close(&f->recorder);
    script_free(&f->script);
    if (f->lock >= 0)
        close(f->lock);
}

static void print_help(void) {
    printf("usage: towerscope train [NAME] [options]\n\n"
           "Trains a network on towers in the foreground and prints a line each few steps. Everything about "
           "the run\n"
           "is kept in the folder RUNS/NAME. Ctrl-C ends it after the step at work.\n\noptions:\n");
    options_help(stdout);
}

int command_train(int argc, char **argv) {
    struct foreground f = {.lock = -1};
    enum status status = options_read(argc, argv, &f.options);
    if (status == STATUS_OK && f.options.settings.resume && !*f.options.name && !f.options.help)
        status = status_fail(STATUS_BAD_INPUT, "--resume needs the NAME of the run that is to go on");
    if (status != STATUS_OK) {
        cli_fail(status);
        fprintf(stderr, "towerscope train --help lists the options\n");
        return EXIT_USAGE;
    }
    if (f.options.help) {
        print_help();
        return EXIT_DONE;
    }
    catch_signals();
    status = open_run(&f);
    if (status != STATUS_OK) {
        int code = cli_fail(status);
        if (f.folder_made)
            run_folder_unmake(&f.folder);
        close_all(&f);
        return code;
    }
    if (trainer_finished(f.session.trainer)) {
        printf("%s is done: its %lld steps are behind it and nothing was written; --steps N with a larger N "
               "goes on\n",
               f.folder.path, (long long)trainer_steps(f.session.trainer));
        close_all(&f);
        return EXIT_DONE;
    }
    open_lines(&f);
    session_describe(&f.session, stdout);
    printf("run     %s\n", f.folder.path);
    if (*trainer_resumed(f.session.trainer))
        printf("resume  %s\n", trainer_resumed(f.session.trainer));
    fflush(stdout);
    int code = finish(&f, loop(&f));
    close_all(&f);
    return code;
}
