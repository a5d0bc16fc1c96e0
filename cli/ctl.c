/* `towerscope ctl`: one command to a live run, and its answer. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/find.h"
#include "cli/help.h"
#include "engine/base/clock.h"
#include "engine/base/printable.h"
#include "engine/base/text.h"
#include "engine/wire/client.h"
#include "engine/wire/command.h"
#include "engine/wire/lock.h"

struct ctl {
    const char *run, *runs;
    char text[1024]; /* the command */
    int64_t at;
    double timeout, end; /* seconds without a word on the command; when they are over */
    struct command command;
    struct client *client;
    char id[40];
    bool sent;
    int code; /* -1: not yet answered */
};

static void write_help(FILE *to) {
    fprintf(to, "usage: towerscope ctl NAME COMMAND [ARG...] [options]\n\n"
                "Sends one command to a live run, whoever holds control, and waits until it is applied.\n"
                "Exit code: 0 applied, 3 refused (the reason on stderr), 4 no such live run.\n\ncommands:\n");
    const char *usage, *sentence;
    for (int i = 0; (usage = command_usage(i, &sentence)); i++)
        fprintf(to, "  %-40s %s\n", usage, sentence);
    fprintf(to,
            "\noptions:\n"
            "  --at STEP                                after this step, not at once\n"
            "  --timeout S                              seconds to wait for the answer (30), anew each time "
            "that it\n"
            "                                           tells how far the command is\n"
            "  --runs DIR                               folder of runs (else $TOWERSCOPE_RUNS, else ./runs)\n"
            "\nsave, stop, pause, resume and status work on an engine of another version, too.\n");
}

/* ---- the line */

static enum status read_option(struct ctl *ctl, const char *name, const char *value) {
    if (!value)
        return status_fail(STATUS_BAD_INPUT, "%s needs a value", name);
    if (!*value)
        return status_fail(STATUS_BAD_INPUT, "%s is empty", name);
    if (!strcmp(name, "--runs")) {
        ctl->runs = value;
        return STATUS_OK;
    }
    if (!strcmp(name, "--at"))
        return text_integer(value, &ctl->at) && ctl->at >= 0
                   ? STATUS_OK
                   : status_fail(STATUS_BAD_INPUT, "--at: \"%s\" is no step", value);
    return text_real(value, &ctl->timeout) && ctl->timeout > 0 && ctl->timeout <= 1e6
               ? STATUS_OK
               : status_fail(STATUS_BAD_INPUT, "--timeout: \"%s\" is no number of seconds", value);
}

/* The option that a word is, NULL: none; *value: what stands behind its "=", NULL: the next word is it. */
static const char *option_name(const char *word, const char **value) {
    static const char *const names[] = {"--at", "--timeout", "--runs"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(word, names[i], length) != 0 || (word[length] && word[length] != '='))
            continue;
        *value = word[length] ? word + length + 1 : NULL;
        return names[i];
    }
    return NULL;
}

static enum status add_word(struct ctl *ctl, const char *word) {
    size_t length = strlen(ctl->text), more = strlen(word);
    if (length + more + 2 > sizeof ctl->text)
        return status_fail(STATUS_BAD_INPUT, "the command is too long");
    snprintf(ctl->text + length, sizeof ctl->text - length, "%s%s", length ? " " : "", word);
    return STATUS_OK;
}

static enum status read_line(int argc, char **argv, struct ctl *ctl) {
    for (int i = 1; i < argc; i++) {
        const char *after, *option = option_name(argv[i], &after);
        if (option && after) {
            STATUS_TRY(read_option(ctl, option, after));
        } else if (option) {
            STATUS_TRY(read_option(ctl, option, i + 1 < argc ? argv[i + 1] : NULL));
            i++;
        } else if (!ctl->run) {
            ctl->run = argv[i];
        } else {
            STATUS_TRY(add_word(ctl, argv[i]));
        }
    }
    if (!ctl->run || !ctl->text[0])
        return status_fail(STATUS_BAD_INPUT,
                           "ctl wants the name of a live run and a command; towerscope ctl --help");
    return STATUS_OK;
}

/* ---- the answer */

static void print(FILE *file, const char *before, const char *text) {
    char clean[1024];
    text_printable(clean, sizeof clean, text ? text : "");
    fprintf(file, "%s%s\n", before, clean);
}

static void take_answer(struct ctl *ctl, const struct event_command *answer) {
    if (!answer->id || strcmp(answer->id, ctl->id) != 0 || !answer->status)
        return;
    if (!strcmp(answer->status, "pending")) {
        if (answer->reason) { /* how far it is: who tells that is at work on it */
            print(stderr, "towerscope: not yet: ", answer->reason);
            ctl->end = clock_seconds() + ctl->timeout;
        } else if (ctl->at != WIRE_UNKNOWN_INT) {
            fprintf(stderr, "towerscope: waits for step %lld\n", (long long)ctl->at);
        }
    } else if (!strcmp(answer->status, "refused")) {
        print(stderr, "towerscope: refused: ", answer->reason);
        ctl->code = EXIT_REFUSED;
    } else if (!strcmp(answer->status, "applied")) {
        ctl->code = EXIT_DONE;
        if (ctl->command.kind == COMMAND_STATUS)
            print(stdout, "", answer->reason);
        else if (answer->step != WIRE_UNKNOWN_INT)
            printf("applied after step %lld%s", (long long)answer->step, answer->reason ? ": " : "\n");
        if (ctl->command.kind != COMMAND_STATUS && answer->reason)
            print(stdout, answer->step != WIRE_UNKNOWN_INT ? "" : "applied: ", answer->reason);
    }
}

/* Send when the engine has said hello. */
static enum status send_when_ready(struct ctl *ctl) {
    enum client_state state = client_state(ctl->client);
    if (ctl->sent || (state != CLIENT_LIVE && state != CLIENT_MISMATCH))
        return STATUS_OK;
    if (state == CLIENT_MISMATCH) {
        if (!command_of_any_version(ctl->command.kind))
            return status_fail(STATUS_UNSUPPORTED, "%s", client_trouble(ctl->client));
        print(stderr, "towerscope: ", client_trouble(ctl->client));
    }
    ctl->sent = true;
    return client_send(ctl->client, ctl->text, ctl->at, ctl->id);
}

static enum status is_it_gone(const struct ctl *ctl) {
    enum client_state state = client_state(ctl->client);
    if (client_elsewhere(ctl->client))
        return status_fail(STATUS_REFUSED, "%s", client_trouble(ctl->client));
    if (state != CLIENT_ENDED && state != CLIENT_CRASHED)
        return STATUS_OK;
    return status_fail(STATUS_NOT_FOUND, "run %s: its engine is gone%s", ctl->run,
                       ctl->sent ? " and did not answer" : "");
}

/* Wait for the answer; ctl->code is set when it is here. */
static enum status wait_for_answer(struct ctl *ctl) {
    struct arena arena = {0};
    struct event event;
    enum status status = STATUS_OK;
    ctl->end = clock_seconds() + ctl->timeout;
    while (status == STATUS_OK && ctl->code < 0) {
        double now = clock_seconds(); /* before what has come is read: it counts, however late we are */
        while (ctl->code < 0 && client_next(ctl->client, &arena, &event) == STATUS_OK) {
            if (event.kind == EVENT_COMMAND)
                take_answer(ctl, &event.command);
            arena_reset(&arena);
        }
        if (ctl->code < 0)
            status = send_when_ready(ctl);
        if (ctl->code < 0 && status == STATUS_OK)
            status = is_it_gone(ctl);
        double left = ctl->end - now;
        if (ctl->code >= 0 || status != STATUS_OK)
            break;
        if (left <= 0) {
            status =
                status_fail(STATUS_IO, "run %s: %s within %g s", ctl->run,
                            ctl->sent ? "the command waits and was not applied" : "its engine did not answer",
                            ctl->timeout);
            break;
        }
        struct pollfd polled = {.fd = client_fd(ctl->client),
                                .events = (short)(POLLIN | (client_wants_write(ctl->client) ? POLLOUT : 0))};
        int wait = client_wait(ctl->client), most = left < 1 ? (int)(left * 1000) + 1 : 1000;
        poll(&polled, 1, wait < 0 || wait > most ? most : wait);
    }
    arena_free(&arena);
    return status;
}

/* Until the run's engine has let go of its folder, for a while: who is told "stopped" may resume it at once.
 */
static void await_end(const struct live_run *run, double seconds) {
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    double end = clock_seconds() + seconds;
    while (lock_held(run->folder) && clock_seconds() < end)
        nanosleep(&pause, NULL);
}

int command_ctl(int argc, char **argv) {
    struct ctl ctl = {.at = WIRE_UNKNOWN_INT, .timeout = 30, .code = -1};
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help"))
            return help_print(write_help);
    if (read_line(argc, argv, &ctl) != STATUS_OK) {
        cli_fail(STATUS_BAD_INPUT);
        return EXIT_USAGE;
    }
    struct live_run run;
    enum status status = find_live(ctl.run, find_runs(ctl.runs), &run);
    if (status != STATUS_OK)
        return cli_fail(status);
    if (command_parse(ctl.text, &ctl.command) != STATUS_OK)
        return cli_fail(status_fail(STATUS_REFUSED, "refused: %s", status_text()));
    struct client_options options = {.program = "ctl", .commands_only = true};
    status = client_open(&run, &options, &ctl.client);
    if (status == STATUS_OK)
        status = wait_for_answer(&ctl);
    client_close(ctl.client);
    if (status == STATUS_OK && ctl.code == EXIT_DONE && ctl.command.kind == COMMAND_STOP &&
        ctl.at == WIRE_UNKNOWN_INT)
        await_end(&run, ctl.timeout);
    return status == STATUS_OK ? ctl.code : cli_fail(status);
}
