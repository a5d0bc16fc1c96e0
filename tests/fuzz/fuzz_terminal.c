/* What a terminal sends: keys, pasted text, reports of the mouse and of anything else, halves of all of them.
 * The bytes go through a pseudo-terminal and ncurses into the console; what it wants to show is looked at for
 * characters that a terminal would obey. The first byte chooses the console's kind, the second and third its
 * size. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "engine/wire/command.h"
#include "tests/support/stream.h"
#include "tui/app.h"
#include "tui/paint.h"
#include "tui/term.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PIECE = 512, MOST = 2048 };

static int terminal = -1; /* the end that a person sits at */
static struct preferences preferences;
static struct keymap keymap;

static void need(int holds, const char *what) {
    if (holds)
        return;
    dprintf(STDERR_FILENO, "%s\n", what);
    _exit(1);
}

/* Take what is written to the terminal, or the next write would wait for room. */
static void *take(void *nothing) {
    static char bytes[65536];
    while (read(terminal, bytes, sizeof bytes) > 0) {
    }
    return nothing;
}

/* Open the console's terminal once. It takes standard error and the signals of a crash, which whoever runs
 * this needs: give them back. */
static void open_terminal(void) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM, SIGINT, SIGTERM};
    enum { SIGNALS = sizeof signals / sizeof *signals };
    struct sigaction before[SIGNALS];
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    int errors = dup(STDERR_FILENO);
    terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    need(terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal), "no pseudo-terminal");
    int ours = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    need(ours >= 0 && !ioctl(ours, TIOCSWINSZ, &size), "no pseudo-terminal");
    need(dup2(ours, STDIN_FILENO) >= 0 && dup2(ours, STDOUT_FILENO) >= 0, "dup2");
    close(ours);
    struct termios modes;
    need(!tcgetattr(STDIN_FILENO, &modes), "no modes");
    modes.c_iflag &= ~(tcflag_t)IXON;    /* ^S would hold the output until ^Q */
    modes.c_cc[VSUSP] = _POSIX_VDISABLE; /* ^Z would stop this process */
    need(!tcsetattr(STDIN_FILENO, TCSANOW, &modes), "no modes");
    setenv("TERM", "xterm-256color", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("ESCDELAY", "0", 1); /* nobody waits for the other half of a key */
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], NULL, &before[i]);
    preferences_default(&preferences);
    keymap_default(&keymap);
    need(term_open(&preferences) == STATUS_OK, status_text());
    atexit(term_close);
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &before[i], NULL);
    need(dup2(errors, STDERR_FILENO) >= 0, "dup2");
    pthread_t taker;
    need(!pthread_create(&taker, NULL, take, NULL) && !pthread_detach(taker), "no thread");
    close(errors);
}

static const struct run_state *a_run(int which) {
    static struct run_state *runs[3];
    static const struct stream_script scripts[3] = {
        {.run = "fuzz", .towers = 4, .steps = 30, .planned = 100, .layers = true, .frozen = "update"},
        {.run = "fuzz",
         .towers = 40,
         .steps = 300,
         .device = "cpu",
         .alarm_at = 20,
         .eval_every = 50,
         .confusion = true},
        {.run = "fuzz"},
    };
    if (!runs[which])
        need((runs[which] = stream_state(&scripts[which])) != NULL, "no memory");
    return runs[which];
}

static void check_scene(const struct canvas *canvas) {
    for (int i = 0; i < canvas->rows * canvas->cols; i++) {
        uint32_t rune = canvas->cells[i].rune;
        if ((rune && rune < 0x20) || (rune >= 0x7f && rune < 0xa0) || rune > 0x10ffff ||
            (rune >= 0xd800 && rune < 0xe000))
            abort();
    }
}

static void obey(struct app *app, enum app_wish wish, double now) {
    if (wish != APP_COMMAND && wish != APP_CONTROL)
        return;
    struct command parsed;
    if (wish == APP_COMMAND && command_parse(app_text(app), &parsed) != STATUS_OK)
        abort(); /* what the engine would not understand is not sent */
    if (now > 20)
        app_sent(app, NULL, "it did not go off", now);
}

static void type(struct app *app, const struct run_state *state, struct canvas *canvas, const uint8_t *bytes,
                 size_t size) {
    double now = 10;
    for (size_t at = 0; at < size; at += PIECE) {
        size_t count = size - at < PIECE ? size - at : PIECE;
        if (write(terminal, bytes + at, count) < 0)
            return;
        for (int key, n = 0; (key = term_key()) != PRESS_NONE; n++, now += 0.1) {
            obey(app, app_key(app, key, state, now), now);
            obey(app, app_due(app, state, now), now);
            if (n % 16 == 0) {
                app_draw(app, canvas, state, 1, now);
                check_scene(canvas);
            }
        }
    }
    app_draw(app, canvas, state, 1, now);
    check_scene(canvas);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct painter painter;
    if (size < 3 || size > MOST)
        return 0;
    if (terminal < 0)
        open_terminal();
    static const struct guide guide = {.text = "A tower is a copy.", .keys = "2j", .part = 1, .parts = 3};
    struct app_options options = {.replay = data[0] & 1,
                                  .watch = data[0] & 2,
                                  .guide = data[0] & 4 ? &guide : NULL,
                                  .preferences = preferences,
                                  .keymap = keymap};
    bool whole = data[0] & 8;
    struct app *app = app_new(&options);
    struct canvas *canvas = whole ? canvas_new(24, 80) : canvas_new(1 + data[1] % 60, 1 + data[2] % 250);
    if (app && canvas) {
        type(app, a_run(data[0] >> 6 < 3 ? data[0] >> 6 : 0), canvas, data + 3, size - 3);
        if (whole)
            paint(&painter, canvas);
    }
    tcflush(STDIN_FILENO, TCIFLUSH);
    while (term_key() != PRESS_NONE) {
    }
    canvas_free(canvas);
    app_free(app);
    return 0;
}
