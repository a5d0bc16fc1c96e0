#include "cli/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/signals.h"
#include "engine/base/clock.h"
#include "engine/base/text.h"
#include "engine/wire/record.h"

enum { AGAIN_MS = 5000 }; /* between two tries to save the last state of a run */

static const double WORD_SECONDS = 2; /* between two words of how far a command is */

static const double patience_seconds = 600; /* for a disk, where nobody sees that it is full */

static const char CONTROL_VARIABLE[] = "TOWERSCOPE_CONTROL_SECONDS",
                  SAVE_VARIABLE[] = "TOWERSCOPE_SAVE_SECONDS";

static enum status check_environment(void) {
    const char *const names[] = {CONTROL_VARIABLE, SAVE_VARIABLE};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *told = getenv(names[i]);
        double seconds;
        if (told && *told && !(text_real(told, &seconds) && seconds >= 0))
            return status_fail(STATUS_BAD_INPUT, "%s is \"%s\"; a number of seconds is expected", names[i],
                               told);
    }
    return STATUS_OK;
}

/* What the environment says of a time, else what is usual. */
static double seconds_told(const char *variable, double usual) {
    const char *told = getenv(variable);
    double seconds;
    return told && text_real(told, &seconds) ? seconds : usual;
}

static bool interrupted(void *context) {
    (void)context;
    return signals_asked() != 0;
}

static void emit(void *context, const struct event *event, bool recorded) {
    struct engine *engine = context;
    hub_emit(engine->hub, event, recorded);
    if (engine->watch)
        engine->watch(engine->context, event);
}

/* What becomes of a command, where the trainer does not say it. */
static void answer(struct engine *engine, const struct command *command, const char *status,
                   const char *reason) {
    struct event event = event_new(EVENT_COMMAND);
    event.command.id = command->id;
    event.command.from = command->from;
    event.command.screen = *command->screen ? command->screen : NULL;
    event.command.text = command->text;
    event.command.status = status;
    event.command.step = trainer_steps(engine->session.trainer);
    event.command.reason = reason;
    emit(engine, &event, strcmp(status, "pending") != 0);
}

/* Memory of a thousand towers may take a minute: who waits for it is told now and then, and may stop the run.
 * At the start nobody listens yet. */
static bool making(void *context, int made, int of) {
    struct engine *engine = context;
    if (!engine->applying)
        return engine->hub || signals_asked() == 0;
    double now = clock_seconds();
    if (now < engine->next_word)
        return true;
    engine->next_word = now + WORD_SECONDS;
    if (signals_asked() || hub_stop_waits(engine->hub, trainer_steps(engine->session.trainer)))
        return false;
    char words[80];
    snprintf(words, sizeof words, "%d of %d towers have their memory", made, of);
    answer(engine, engine->applying, "pending", words);
    return true;
}

/* ---- the folder, which somebody may move or remove meanwhile */

/* From now on this descriptor is the run's folder; path: where it is by now, NULL: as it was. */
static void hold_folder(struct engine *engine, int fd, const char *path) {
    if (engine->folder.fd >= 0)
        close(engine->folder.fd);
    engine->folder.fd = fd;
    if (path)
        snprintf(engine->folder.path, sizeof engine->folder.path, "%s", path);
    engine->checkpoints.held = true;
    engine->checkpoints.run = fd;
    resume_checkpoints(&engine->folder, engine->checkpoints.path, sizeof engine->checkpoints.path);
}

/* The folder is new: what was in it beside the record is made again. */
static void fill_folder(struct engine *engine) {
    if (run_folder_config(&engine->folder, trainer_settings(engine->session.trainer)) != STATUS_OK &&
        engine->say)
        engine->say(engine->context, status_text());
    if (engine->replaced)
        engine->replaced(engine->context, &engine->folder);
}

/* What the hub saw of it; whether it was made again. */
static bool take_news(struct engine *engine) {
    int fd;
    char path[PATH_MAX];
    enum hub_news news = hub_news(engine->hub, &fd, path, sizeof path);
    if (news == HUB_NO_NEWS || fd < 0)
        return false;
    hold_folder(engine, fd, path);
    if (news == HUB_RESTORED)
        fill_folder(engine);
    return news == HUB_RESTORED;
}

/* Somebody removed it: save all there is into the new one, and wait for a person. */
static void halt_for_folder(struct engine *engine) {
    struct trainer *trainer = engine->session.trainer;
    char text[500];
    const char *saved =
        trainer_save(trainer) == STATUS_OK ? "a checkpoint of this step" : "no checkpoint yet";
    snprintf(text, sizeof text,
             "the run's folder was removed: %.300s is new, with the record and %s; the older checkpoints are "
             "gone. "
             "resume goes on, stop --discard gives the run up",
             engine->folder.path, saved);
    trainer_halt(trainer, text);
}

static bool folder_stands(const struct engine *engine) {
    struct stat info;
    return fstat(engine->folder.fd, &info) == 0 && info.st_nlink > 0;
}

static enum status save(void *context, const struct snapshot *snapshot, struct event_checkpoint *out) {
    struct engine *engine = context;
    if (!folder_stands(engine)) /* not to be lost for the half second until the hub looks */
        hub_look(engine->hub);
    (void)hub_flush(engine->hub); /* a checkpoint is never ahead of its record, not on the disk either */
    if (record_sync(engine->folder.fd) != STATUS_OK && engine->say)
        engine->say(engine->context, status_text());
    engine->folder_lost = take_news(engine) || engine->folder_lost;
    return checkpoint_save(&engine->checkpoints, snapshot, out);
}

static bool saved_there(void *context, int64_t step) {
    const struct engine *engine = context;
    return checkpoint_there(&engine->checkpoints, step);
}

/* ---- before the first step */

static enum status open_session(struct engine *engine, const struct settings *settings,
                                struct resume *resume) {
    struct trainer_options options = {
        .settings = *settings,
        .run_name = engine->folder.name, /* there when the run begins, as is the folder of checkpoints */
        .sink = {emit, engine},
        .store = {.save = save, .there = saved_there, .context = engine},
        .patience = {.interrupted = interrupted, .making = making, .context = engine},
    };
    return session_open(&options, resume, &engine->session);
}

static enum status take_lock(struct engine *engine) {
    enum status status = lock_take(engine->folder.path, &engine->lock);
    if (status == STATUS_BUSY)
        return status_fail(STATUS_REFUSED, "%s: `towerscope attach` shows it", status_text());
    STATUS_TRY(status);
    int fd = fcntl(engine->lock.folder, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return status_fail(STATUS_IO, "%s: %s", engine->folder.path, strerror(errno));
    hold_folder(engine, fd, NULL);
    return STATUS_OK;
}

static enum status open_new(struct engine *engine, const char *runs) {
    if (*engine->options.name)
        STATUS_TRY(run_folder_check(runs, engine->options.name));
    STATUS_TRY(open_session(engine, &engine->options.settings, NULL));
    if (signals_asked())
        return status_fail(STATUS_INTERRUPTED, "interrupted before the run began; nothing was made");
    STATUS_TRY(run_folder_make(runs, engine->options.name, &engine->folder));
    enum status status = take_lock(engine);
    if (status != STATUS_OK)
        (void)rmdir(engine->folder.path); /* it stays where another was quicker: that one's lock is in it */
    STATUS_TRY(status);
    engine->folder_made = true; /* only who has its lock may take it away again */
    return run_folder_config(&engine->folder, trainer_settings(engine->session.trainer));
}

static enum status open_old(struct engine *engine, const char *runs) {
    STATUS_TRY(run_folder_find(runs, engine->options.name, &engine->folder));
    STATUS_TRY(run_folder_is_run(&engine->folder));
    STATUS_TRY(take_lock(engine));
    STATUS_TRY(resume_find(&engine->folder, &engine->options.settings, &engine->resume));
    STATUS_TRY(open_session(engine, &engine->resume.settings, &engine->resume));
    if (trainer_finished(engine->session.trainer))
        return STATUS_OK; /* there is nothing left to do */
    /* the settings that were given now are those of the run from now on */
    return run_folder_config(&engine->folder, trainer_settings(engine->session.trainer));
}

static enum status open_hub(struct engine *engine) {
    struct hub_options options = {.lock = &engine->lock,
                                  .must_listen = engine->background,
                                  .control_seconds = seconds_told(CONTROL_VARIABLE, HUB_CONTROL_SECONDS),
                                  .say = engine->say,
                                  .context = engine->context};
    STATUS_TRY(live_describe(engine->folder.path, &options.run));
    return hub_open(&options, &engine->hub);
}

/* Else it would train, and only its first save would tell. */
static enum status enough_descriptors(void) {
    enum { NEEDED = 32 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= NEEDED)
        return STATUS_OK;
    return status_fail(STATUS_UNSUPPORTED, "a run may have %d files open here (ulimit -n), and needs %d",
                       (int)limit.rlim_cur, NEEDED);
}

/* A pipe that nobody writes would hold it up without a word. */
static void tell_wait(void *context) {
    struct engine *engine = context;
    char text[1200];
    snprintf(text, sizeof text, "waits for the commands of %s, until whoever writes them closes it",
             engine->options.script);
    if (engine->say)
        engine->say(engine->context, text);
}

static enum status open_all(struct engine *engine) {
    STATUS_TRY(enough_descriptors());
    STATUS_TRY(check_environment());
    const struct settings *given = &engine->options.settings;
    const char *runs = *given->runs ? given->runs : settings_find("runs")->fallback;
    if (*engine->options.script)
        STATUS_TRY(script_read(engine->options.script, tell_wait, engine, &engine->script));
    STATUS_TRY(given->resume ? open_old(engine, runs) : open_new(engine, runs));
    if (trainer_finished(engine->session.trainer)) /* resumed, and there is nothing left to do */
        return STATUS_OK;
    return open_hub(engine);
}

enum status engine_open(struct engine *engine) {
    engine->lock = (struct lock){-1, -1};
    engine->folder.fd = -1;
    enum status status = open_all(engine);
    if (status != STATUS_OK && engine->folder_made)
        run_folder_unmake(&engine->folder);
    return status;
}

void engine_close(struct engine *engine) {
    hub_close(engine->hub);
    if (engine->unwanted && engine->folder_made)
        run_folder_unmake(&engine->folder);
    telemetry_close(&engine->telemetry);
    session_close(&engine->session);
    resume_free(&engine->resume);
    script_free(&engine->script);
    engine->hub = NULL;
    if (engine->folder.fd >= 0)
        close(engine->folder.fd);
    engine->folder.fd = -1;
    if (engine->said_end) { /* for whoever finds a record that ends without it: a full disk does not take that
                             */
        char words[40];
        snprintf(words, sizeof words, "ended %lld", (long long)engine->end_step);
        lock_tell(&engine->lock, words);
    }
    lock_give(&engine->lock); /* last: who sees the lock free finds everything written */
}

/* ---- the loop */

/* Hand a command to the trainer. */
static enum status command_trainer(struct engine *engine, const struct command *command, bool *refused) {
    engine->applying = command;
    engine->next_word = clock_seconds() + WORD_SECONDS;
    enum status status = trainer_command(engine->session.trainer, command, refused);
    engine->applying = NULL;
    return status;
}

static enum status apply(struct engine *engine, const struct command *command) {
    STATUS_TRY(trainer_settle(engine->session.trainer));
    int64_t steps = trainer_steps(engine->session.trainer);
    if (command->at != WIRE_UNKNOWN_INT && command->at != steps) {
        char reason[80];
        snprintf(reason, sizeof reason,
                 command->at < steps ? "step %lld has passed, the run is at %lld"
                                     : "step %lld was not to be had, the run went back to %lld",
                 (long long)command->at, (long long)steps);
        answer(engine, command, "refused", reason);
        return STATUS_OK;
    }
    bool refused = false;
    STATUS_TRY(command_trainer(engine, command, &refused));
    bool steers =
        command->kind == COMMAND_PAUSE || command->kind == COMMAND_STEP || command->kind == COMMAND_PHASE;
    engine->steered = engine->steered || (steers && !refused);
    return STATUS_OK;
}

/* What is due at this step boundary: the script's commands, then the clients'. */
static enum status take_commands(struct engine *engine) {
    struct trainer *trainer = engine->session.trainer;
    const struct command *scripted;
    struct command command;
    if (script_due(&engine->script, trainer_steps(trainer)))
        STATUS_TRY(trainer_settle(trainer)); /* it may have gone back */
    int64_t most = trainer_steps(trainer); /* a command may go back: those of its step are due all the same */
    while ((scripted = script_take(&engine->script, most))) {
        bool refused = false;
        STATUS_TRY(command_trainer(engine, scripted, &refused));
        engine->script_refused += refused;
        if (trainer_steps(trainer) > most) /* a phase ended a step */
            most = trainer_steps(trainer);
    }
    while (!trainer_stopped(trainer) && hub_take(engine->hub, trainer_steps(trainer), &command))
        STATUS_TRY(apply(engine, &command));
    return STATUS_OK;
}

static void wait_for_somebody(struct engine *engine, int milliseconds) {
    struct pollfd fds[] = {{.fd = hub_command_fd(engine->hub), .events = POLLIN},
                           {.fd = signals_fd(), .events = POLLIN}};
    poll(fds, 2, signals_fd() >= 0 ? milliseconds : 200);
}

/* ---- a last state that the disk does not take */

/* The step to go on from, as part of a sentence. */
static void newest_words(const struct engine *engine, char out[80]) {
    int64_t step = checkpoint_newest_step(engine->checkpoints.path);
    if (step >= 0)
        snprintf(out, 80, "step %lld is the newest that is saved", (long long)step);
    else
        snprintf(out, 80, "no step before it is saved");
}

/* For how long it is tried again. */
static double patience(void) {
    return seconds_told(SAVE_VARIABLE, patience_seconds);
}

/* Whether it is tried without an end: somebody sees it, or can, and it was not told to end. */
static bool endless(const struct engine *engine) {
    return engine->attended || (engine->background && !signals_asked());
}

/* Whether the last state is worth waiting for after a save that failed: room may come by itself; what else
 * it is, somebody has to see and mend. */
static bool worth_waiting(const struct engine *engine, enum status status) {
    return status == STATUS_NO_SPACE || (status == STATUS_IO && endless(engine));
}

/* Say it, after a failed save: what is at stake, and every way out. */
static void tell_unsaved(struct engine *engine, enum status status, const char *what, const char *presses) {
    char reason[400], newest[80], ways[300], text[1000];
    snprintf(reason, sizeof reason, "%.399s", status_text());
    newest_words(engine, newest);
    const char *name = engine->folder.name;
    engine->given_up = clock_seconds() + patience();
    if (engine->background && endless(engine))
        snprintf(ways, sizeof ways, "stop --discard");
    else if (engine->background)
        snprintf(ways, sizeof ways, "another signal, the end of %g seconds or stop --discard", patience());
    else if (engine->attended)
        snprintf(ways, sizeof ways, "%s, or `towerscope ctl %.64s stop --discard`,", presses, name);
    else
        snprintf(ways, sizeof ways, "the end of %g seconds, or `towerscope ctl %.64s stop --discard`,",
                 patience(), name);
    snprintf(text, sizeof text,
             "%s, but step %lld can't be saved: %s. %s: it is tried again every few seconds; %s ends it "
             "without (%s)",
             what, (long long)trainer_steps(engine->session.trainer), reason,
             status == STATUS_NO_SPACE ? "Make room" : "Mend that", ways, newest);
    trainer_halt(engine->session.trainer, text);
}

/* Until the next try; false: nobody sees it, and it was tried for long enough. */
static bool wait_for_room(struct engine *engine) {
    double left = (engine->given_up - clock_seconds()) * 1e3;
    if (!endless(engine) && left <= 0)
        return false;
    wait_for_somebody(engine, endless(engine) || left > AGAIN_MS ? AGAIN_MS : (int)left + 1);
    return true;
}

static enum status lost_words(const struct engine *engine, const char *why) {
    char reason[600], newest[80];
    snprintf(reason, sizeof reason, "%.599s", why);
    newest_words(engine, newest);
    return status_fail(STATUS_IO, "step %lld is not saved: %s; %s",
                       (long long)trainer_steps(engine->session.trainer), reason, newest);
}

/* The last checkpoint of a done run, which stays until the disk takes it, where that can be hoped for:
 * STATUS_BUSY. */
static enum status finish(struct engine *engine) {
    struct trainer *trainer = engine->session.trainer;
    if (trainer_stopped(trainer))
        return STATUS_OK;
    enum status status = trainer_finish(trainer);
    if (status != STATUS_IO && status != STATUS_NO_SPACE)
        return status;
    char reason[600];
    snprintf(reason, sizeof reason, "%.599s", status_text());
    if (!worth_waiting(engine, status))
        return lost_words(engine, reason);
    if (!engine->unsaved)
        tell_unsaved(engine, status, "the run is done", "Ctrl-C twice");
    engine->unsaved = true;
    return wait_for_room(engine) ? STATUS_BUSY : lost_words(engine, reason);
}

/* The last checkpoint of a run that ends before it is done: by a signal, or where nobody is there to resume
 * it. A signal from now on gives it up, but for that of a terminal which is gone. */
static void save_last(struct engine *engine) {
    struct trainer *trainer = engine->session.trainer;
    int heard = signals_seen();
    bool told = false;
    while (!trainer_stopped(trainer)) {
        enum status status = trainer_save(trainer);
        if (signals_asked() == SIGHUP && engine->attended)
            engine->attended = told = false;
        if (!worth_waiting(engine, status))
            return;
        if (!told)
            tell_unsaved(engine, status, "the run ends", "Ctrl-C again");
        told = true;
        if (!wait_for_room(engine) || take_commands(engine) != STATUS_OK)
            return;
        int seen = signals_seen();
        if (seen != heard && signals_asked() != SIGHUP)
            return;
        heard = seen;
    }
}

static void measure(struct engine *engine) {
    struct event event;
    struct device_info info;
    const struct device_handle *device = &engine->session.device;
    const struct device_gpus *gpus = engine->telemetry.gpus;
    for (int i = 0; gpus && i < gpus->count; i++)
        if (telemetry_gpu(&engine->telemetry, i, &event))
            emit(engine, &event, false);
    if (!gpus && device->ops->describe(device->device, &info) == STATUS_OK &&
        telemetry_measure(&engine->telemetry, info.name, info.threads, &event))
        emit(engine, &event, false);
}

/* A resumed run: the commands of steps that are behind it are not given again, and that is told. */
static void skip_script(struct engine *engine) {
    char words[400], text[560];
    int64_t steps = trainer_steps(engine->session.trainer);
    if (script_skip(&engine->script, steps, words, sizeof words) == 0)
        return;
    snprintf(text, sizeof text, "%.100s: the run goes on after step %lld; left out, as behind it: %s",
             engine->options.script, (long long)steps, words);
    struct event event = event_new(EVENT_ALARM);
    event.alarm.level = "warning";
    event.alarm.step = steps;
    event.alarm.text = text;
    emit(engine, &event, true);
}

static enum status train(struct engine *engine) {
    struct trainer *trainer = engine->session.trainer;
    if (telemetry_open(&engine->telemetry, engine->session.device) != STATUS_OK && engine->say)
        engine->say(engine->context, status_text());
    trainer_begin(trainer);
    skip_script(engine);
    for (;;) {
        if (take_news(engine) || engine->folder_lost) {
            engine->folder_lost = false;
            halt_for_folder(engine);
        }
        STATUS_TRY(take_commands(engine));
        if (signals_asked())
            return STATUS_OK;
        if (trainer_finished(trainer)) {
            enum status status = finish(engine);
            if (status == STATUS_BUSY)
                continue;
            return status == STATUS_INTERRUPTED ? STATUS_OK : status;
        }
        engine->unsaved = false; /* a client took it back from its end */
        if (!trainer_paused(trainer)) {
            STATUS_TRY(trainer_step(trainer));
            measure(engine);
        } else if (engine->background || (engine->steered && !*trainer_fault(trainer))) {
            wait_for_somebody(engine, -1);
        } else {
            return STATUS_OK; /* in the foreground, and nobody is there to resume it */
        }
    }
}

/* The script's commands whose step did not come. */
static void refuse_rest_of_script(struct engine *engine) {
    const struct command *command;
    for (; (command = script_take(&engine->script, INT64_MAX)); engine->script_refused++) {
        char reason[80];
        snprintf(reason, sizeof reason, "the run ends after step %lld",
                 (long long)trainer_steps(engine->session.trainer));
        answer(engine, command, "refused", reason);
    }
}

/* Why the loop ended. */
static void explain(const struct engine *engine, enum status status, struct engine_end *end) {
    const struct trainer *trainer = engine->session.trainer;
    *end = (struct engine_end){.reason = "done", .code = EXIT_DONE};
    if (status != STATUS_OK) {
        snprintf(end->text, sizeof end->text, "%s", status_text());
        end->reason = "failed";
        end->code = EXIT_FAILED;
    } else if (signals_asked()) {
        snprintf(end->text, sizeof end->text, "signal %d (%s)", signals_asked(), strsignal(signals_asked()));
        end->reason = "stopped";
        end->code = EXIT_INTERRUPTED;
    } else if (trainer_stopped(trainer)) {
        snprintf(end->text, sizeof end->text, "by command");
        end->reason = "stopped";
    } else if (engine->unsaved) { /* and saved at last */
        return;
    } else if (*trainer_fault(trainer)) {
        snprintf(end->text, sizeof end->text, "%s", trainer_fault(trainer));
        end->reason = "failed";
        end->code = EXIT_FAILED;
    } else if (trainer_paused(trainer)) {
        snprintf(end->text, sizeof end->text, "paused, and nobody is there to resume it");
        end->reason = "stopped";
    }
}

int engine_nothing_left(struct engine *engine) {
    int64_t steps = trainer_steps(engine->session.trainer);
    char words[400];
    printf("%s is done: its %lld steps are behind it and nothing was written; --steps N with a larger N goes "
           "on\n",
           engine->folder.path, (long long)steps);
    fflush(stdout);
    (void)script_skip(&engine->script, steps + 1, words, sizeof words);
    if (script_skip(&engine->script, INT64_MAX, words, sizeof words) == 0)
        return EXIT_DONE;
    return cli_fail(status_fail(STATUS_REFUSED, "%s: refused, as the run ended after step %lld: %s",
                                engine->options.script, (long long)steps, words));
}

void engine_run(struct engine *engine, struct engine_end *end) {
    struct command command;
    enum status status = train(engine);
    if (status == STATUS_OK)
        status = trainer_settle(engine->session.trainer);
    if (status != STATUS_OK)
        cli_fail(status);
    explain(engine, status, end);
    if (status == STATUS_OK && strcmp(end->reason, "done") != 0)
        save_last(engine);
    refuse_rest_of_script(engine);
    if (end->code == EXIT_DONE && engine->script_refused > 0)
        end->code = EXIT_REFUSED;
    hub_end_commands(engine->hub);
    while (hub_take(engine->hub, INT64_MAX, &command))
        answer(engine, &command, "refused", "the run is over");
    hub_look(engine->hub); /* what somebody removed a moment ago is there again for the last words */
    (void)take_news(engine);
    if (trainer_end(engine->session.trainer, end->reason, *end->text ? end->text : NULL) != STATUS_OK &&
        end->code != EXIT_FAILED)
        end->code = cli_fail(lost_words(engine, status_text()));
    if (!hub_flush(engine->hub))
        end->code = cli_fail(
            status_fail(STATUS_IO, "%s: the end of the record is not on the disk", engine->folder.path));
    engine->said_end = true;
    engine->end_step = trainer_steps(engine->session.trainer);
}
