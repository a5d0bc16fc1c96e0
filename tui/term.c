#include "tui/term.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>

#include "engine/base/clock.h"
#include "tui/escape.h"
#include "tui/outlet.h"
#include "tui/palette.h"

/* Signal handlers can only reach what is static; all of it is here. */
static struct {
    SCREEN *screen;
    struct outlet outlet;
    bool open, synchronized, cursor_shown, hides_cursor, marks_paste;
    int colours;
    int suspend_key, queued_key; /* PRESS_NONE: none */
    mbstate_t partial;           /* bytes of a character that is not complete */
    bool begun;                  /* there are such */
    struct escape escape;        /* bytes of a sequence that is no key */
    enum glyphs glyphs;
    int saved_stderr, aside;   /* standard error as it was, and where it goes meanwhile; -1: not moved */
    sigset_t waiting_mask;     /* signals that are blocked but while waiting */
    attr_t attributes[STYLES]; /* of each style */
    short pairs[STYLES];
} term = {.saved_stderr = -1, .aside = -1};

enum { NO_CHARACTER = 0xfffd }; /* for bytes that are none, as Unicode has it */

static struct termios before;   /* the terminal's modes before us */
static char restore_bytes[256]; /* what gives the screen back, for a crash */
static size_t restore_length;
static volatile sig_atomic_t leave_signal, continued;
static int wake[2] = {-1, -1}; /* a pipe that ends the waiting */

static const int leave_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
/* All that would end the program, and can be caught. */
static const int crash_signals[] = {SIGSEGV, SIGBUS,  SIGILL,    SIGFPE,  SIGABRT, SIGSYS, SIGTRAP,
                                    SIGXCPU, SIGALRM, SIGVTALRM, SIGPROF, SIGIO,   SIGPWR, SIGSTKFLT};
enum {
    LEAVE_SIGNALS = sizeof leave_signals / sizeof *leave_signals,
    CRASH_SIGNALS = sizeof crash_signals / sizeof *crash_signals
};
static struct sigaction old_actions[LEAVE_SIGNALS + CRASH_SIGNALS + 1];

/* ---- signals */

/* Told to go while the loop is stuck in a write to a terminal that takes nothing: SIGALRM ends it. In the
 * background the terminal is another's, and each attempt to set its modes would only stop us again. */
static void on_leave(int number) {
    int saved = errno;
    pid_t foreground = tcgetpgrp(STDIN_FILENO);
    if (number != SIGINT && foreground > 0 && foreground != getpgrp())
        _exit(128 + number);
    leave_signal = number;
    if (number != SIGINT)
        alarm(1);
    if (wake[1] >= 0 && write(wake[1], "x", 1) < 0) {
        /* the pipe is full: the loop has enough to wake it */
    }
    errno = saved;
}

static void on_continue(int number) {
    (void)number;
    continued = 1;
}

/* Only what is safe in a signal handler: give the terminal back, then die of the same signal. */
static void on_crash(int number) {
    int flags = fcntl(STDOUT_FILENO, F_GETFL);
    if (flags >= 0)
        fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
    if (write(STDOUT_FILENO, restore_bytes, restore_length) < 0) {
        /* the terminal is gone: nothing to give back */
    }
    if (flags >= 0)
        fcntl(STDOUT_FILENO, F_SETFL, flags);
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
    if (term.saved_stderr >= 0)
        dup2(term.saved_stderr, STDERR_FILENO);
    if (number == SIGALRM)
        _exit(128 + (leave_signal ? leave_signal : SIGALRM));
    raise(number); /* SA_RESETHAND: the second one is the end */
}

static void take_signals(void) {
    struct sigaction action = {.sa_handler = on_leave};
    sigfillset(&action.sa_mask);
    int n = 0;
    for (int i = 0; i < LEAVE_SIGNALS; i++) {
        sigaction(leave_signals[i], NULL, &old_actions[n]);
        /* Ignored by whoever started us (nohup): a hang-up is then seen by the terminal's end of file. */
        if (old_actions[n++].sa_handler != SIG_IGN || leave_signals[i] == SIGINT)
            sigaction(leave_signals[i], &action, NULL);
    }
    action.sa_handler = on_crash;
    action.sa_flags = (int)SA_RESETHAND | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < CRASH_SIGNALS; i++)
        sigaction(crash_signals[i], &action, &old_actions[n++]);
    action.sa_handler = on_continue;
    action.sa_flags = 0;
    sigaction(SIGCONT, &action, &old_actions[n++]);
}

static void give_signals_back(void) {
    int n = 0;
    alarm(0);
    for (int i = 0; i < LEAVE_SIGNALS; i++)
        sigaction(leave_signals[i], &old_actions[n++], NULL);
    for (int i = 0; i < CRASH_SIGNALS; i++)
        sigaction(crash_signals[i], &old_actions[n++], NULL);
    sigaction(SIGCONT, &old_actions[n++], NULL);
}

int term_signal(void) {
    return leave_signal;
}

/* ---- standard error */

static void put_stderr_aside(void) {
    term.aside = memfd_create("towerscope-stderr", MFD_CLOEXEC);
    term.saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (term.aside >= 0 && term.saved_stderr >= 0)
        dup2(term.aside, STDERR_FILENO);
}

static void bring_stderr_back(void) {
    if (term.aside >= 0 && term.saved_stderr >= 0) {
        fflush(stderr);
        dup2(term.saved_stderr, STDERR_FILENO);
        char bytes[4096];
        lseek(term.aside, 0, SEEK_SET);
        for (ssize_t n; (n = read(term.aside, bytes, sizeof bytes)) > 0;)
            if (write(STDERR_FILENO, bytes, (size_t)n) != n)
                break;
    }
    if (term.aside >= 0)
        close(term.aside);
    if (term.saved_stderr >= 0)
        close(term.saved_stderr);
    term.aside = term.saved_stderr = -1;
}

/* ---- opening */

enum status term_check(void) {
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return status_fail(
            STATUS_UNSUPPORTED,
            "standard %s is no terminal, and the console needs one; without it use \"towerscope train\", "
            "\"towerscope ls\" or \"towerscope ctl NAME status\"",
            isatty(STDIN_FILENO) ? "output" : "input");
    return STATUS_OK;
}

int term_known_colours(void) {
    int error;
    TERMINAL *was = set_curterm(NULL);
    int colours = -1;
    if (setupterm(NULL, STDOUT_FILENO, &error) == OK) {
        colours = tigetnum("colors");
        colours = colours < 0 ? 0 : colours; /* known, without any */
        del_curterm(cur_term);
    }
    set_curterm(was);
    return colours;
}

static bool has_capability(const char *name) {
    const char *text = tigetstr(name);
    return text && text != (const char *)-1 && *text; /* NOLINT: terminfo's own sign for "no string" */
}

static enum status open_screen(void) {
    STATUS_TRY(outlet_open(&term.outlet, STDOUT_FILENO));
    /* What is set, then what most terminals understand: an unknown TERM is no reason to give up. */
    const char *own = getenv("TERM");
    const char *const names[] = {own && *own ? own : "dumb", "xterm-256color", "xterm", "vt100"};
    for (size_t i = 0; !term.screen && i < sizeof names / sizeof *names; i++)
        term.screen = newterm(names[i], term.outlet.file, stdin);
    if (term.screen && has_capability("cup"))
        return STATUS_OK;
    if (term.screen) {
        endwin();
        delscreen(term.screen);
        term.screen = NULL;
    }
    return status_fail(STATUS_UNSUPPORTED, "the terminal (TERM=%s) can't place a cursor", own ? own : "");
}

static void close_descriptors(void) {
    outlet_close(&term.outlet);
    close(wake[0]);
    close(wake[1]);
    wake[0] = wake[1] = -1;
}

/* Pasted text comes between marks, so that it can be told from keys (xterm's private mode 2004). */
static const char paste_marks[] = "\033[?2004h", no_paste_marks[] = "\033[?2004l";

/* Terminfo strings without their padding ("$<5>"), to write from a signal handler. */
static void remember_restore(const char *name) {
    const char *text = tigetstr(name);
    if (!text || text == (const char *)-1) /* NOLINT */
        return;
    while (*text && restore_length < sizeof restore_bytes - sizeof no_paste_marks) {
        if (text[0] == '$' && text[1] == '<' && strchr(text, '>')) {
            text = strchr(text, '>') + 1;
            continue;
        }
        restore_bytes[restore_length++] = *text++;
    }
}

static enum glyphs choose_glyphs(enum glyph_choice choice) {
    bool utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    const char *name = getenv("TERM");
    if (choice == GLYPH_ASCII || (choice == GLYPH_AUTO && !utf8))
        return GLYPHS_ASCII;
    if (choice == GLYPH_BLOCK)
        return GLYPHS_BLOCK;
    /* The Linux console has 512 characters, braille not among them. */
    if (choice == GLYPH_AUTO && name && !strcmp(name, "linux"))
        return GLYPHS_BLOCK;
    return GLYPHS_BRAILLE;
}

static int count_colours(void) {
    const char *none = getenv("NO_COLOR");
    if ((none && *none) || !has_colors() || start_color() == ERR)
        return 0;
    use_default_colors();
    return COLORS >= 256 ? 256 : COLORS >= 8 ? 8 : 0;
}

void term_restyle(const struct preferences *preferences) {
    bool light = preferences->theme == THEME_LIGHT ||
                 (preferences->theme == THEME_AUTO && palette_light(getenv("COLORFGBG")));
    for (int i = 0; i < STYLES; i++) {
        struct look look = palette_look(preferences->palette, (enum style)i, term.colours, light);
        term.attributes[i] =
            (look.bold ? WA_BOLD : 0) | (look.faint ? WA_DIM : 0) | (look.reverse ? WA_REVERSE : 0);
        term.pairs[i] = 0;
        if (term.colours > 0 && (look.foreground >= 0 || look.background >= 0)) {
            term.pairs[i] = (short)(i + 1);
            init_extended_pair(term.pairs[i], palette_number(look.foreground, COLORS),
                               palette_number(look.background, COLORS));
        }
    }
    term.glyphs = choose_glyphs(preferences->glyphs);
    term.synchronized = preferences->synchronized && term.colours >= 256;
}

/* ncurses ignores SIGTSTP while it writes a frame, so that the kernel drops one that comes then: ^Z is read
 * as a key instead, and suspends between two frames. */
static void take_suspend_key(void) {
    struct termios modes;
    term.suspend_key = before.c_cc[VSUSP] == _POSIX_VDISABLE ? PRESS_NONE : before.c_cc[VSUSP];
    if (tcgetattr(STDIN_FILENO, &modes))
        return;
    modes.c_cc[VSUSP] = _POSIX_VDISABLE;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &modes);
    def_prog_mode();
}

static void set_modes(void) {
    cbreak();
    noecho();
    nonl();
    intrflush(stdscr, FALSE);
    keypad(stdscr, TRUE);
    define_key(NULL, KEY_MOUSE); /* ncurses would hand out the rest of a report as keys */
    nodelay(stdscr, TRUE);
    scrollok(stdscr, FALSE);
    typeahead(-1); /* a frame is shown whole, whatever is typed meanwhile */
    if (!getenv("ESCDELAY"))
        set_escdelay(25);
    term.hides_cursor = curs_set(0) != ERR;
    term.cursor_shown = false;
    take_suspend_key();
}

/* ncurses asks for the size before it takes SIGWINCH: a window that changed in between would keep its first
 * size. */
static void take_size(void) {
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0 &&
        (size.ws_row != LINES || size.ws_col != COLS))
        resizeterm(size.ws_row, size.ws_col);
}

/* ncurses keeps several copies of every character: a size that is none (of a serial line, say) would take all
 * the memory there is. */
static enum status check_size(void) {
    enum { CHARACTERS_MOST = 4000000 };
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || (long)size.ws_row * size.ws_col <= CHARACTERS_MOST)
        return STATUS_OK;
    return status_fail(STATUS_UNSUPPORTED,
                       "no screen has %d rows of %d characters (\"stty rows 24 cols 80\" mends that)",
                       size.ws_row, size.ws_col);
}

enum status term_open(const struct preferences *preferences) {
    STATUS_TRY(term_check());
    STATUS_TRY(check_size());
    /* Only characters: a decimal point stays a point. */
    setlocale(LC_CTYPE, "");
    if (tcgetattr(STDIN_FILENO, &before))
        return status_fail(STATUS_UNSUPPORTED, "the terminal's modes can't be read: %s", strerror(errno));
    if (pipe2(wake, O_CLOEXEC | O_NONBLOCK))
        return status_fail(STATUS_IO, "no pipe: %s", strerror(errno));
    leave_signal = continued = 0;
    take_signals();
    unsetenv("LINES"); /* exported, they would freeze the size */
    unsetenv("COLUMNS");
    enum status status = open_screen();
    if (status != STATUS_OK) {
        give_signals_back();
        close_descriptors();
        return status;
    }
    term.open = true;
    restore_length = 0;
    remember_restore("sgr0");
    remember_restore("rmkx");
    remember_restore("rmcup");
    remember_restore("cnorm");
    put_stderr_aside();
    set_modes();
    term.colours = count_colours();
    term.marks_paste = term.colours >= 256; /* a terminal of our days */
    if (term.marks_paste) {
        outlet_write(&term.outlet, paste_marks);
        memcpy(restore_bytes + restore_length, no_paste_marks, sizeof no_paste_marks - 1);
        restore_length += sizeof no_paste_marks - 1;
    }
    term_restyle(preferences);
    /* ncurses changes its mind about size and foreground only while we wait. */
    sigset_t block;
    sigemptyset(&block);
    sigaddset(&block, SIGWINCH);
    sigaddset(&block, SIGTSTP);
    sigaddset(&block, SIGCONT);
    sigprocmask(SIG_BLOCK, &block, &term.waiting_mask);
    take_size();
    return STATUS_OK;
}

void term_close(void) {
    if (!term.open)
        return;
    term.open = false;
    curs_set(1);
    endwin();
    /* Some terminals bring the hidden cursor back with the old screen; say it again after. */
    if (write(STDOUT_FILENO, restore_bytes, restore_length) < 0) {
        /* the terminal is gone */
    }
    delscreen(term.screen);
    term.screen = NULL;
    sigprocmask(SIG_SETMASK, &term.waiting_mask, NULL);
    give_signals_back();
    close_descriptors();
    bring_stderr_back();
}

/* ---- input */

static unsigned signals_news(void) {
    unsigned news = 0;
    if (leave_signal)
        news |= leave_signal == SIGHUP ? TERM_GONE : TERM_LEAVE;
    if (continued) {
        continued = 0;
        /* The shell set modes of its own. In the background this stops us again, by SIGTTOU, until "fg". */
        reset_prog_mode();
        if (term.marks_paste)
            outlet_write(&term.outlet, paste_marks);
        term_distrust();
        news |= TERM_REPAINT;
    }
    return news;
}

unsigned term_wait(int fd, bool writing, double seconds) {
    struct pollfd polled[3] = {{.fd = STDIN_FILENO, .events = POLLIN},
                               {.fd = wake[0], .events = POLLIN},
                               {.fd = fd, .events = (short)(POLLIN | (writing ? POLLOUT : 0))}};
    struct timespec limit = {0, 0};
    bool endless = !(seconds < 1e6);
    if (!endless && seconds > 0) {
        limit.tv_sec = (time_t)seconds;
        limit.tv_nsec = (long)((seconds - (double)limit.tv_sec) * 1e9);
    }
    int ready = ppoll(polled, 3, endless ? NULL : &limit, &term.waiting_mask);
    char drain[64];
    while (polled[1].revents && read(wake[0], drain, sizeof drain) > 0) {
    }
    unsigned news = signals_news();
    if (ready < 0) /* a signal: perhaps SIGWINCH, which ncurses tells as a key */
        return news | TERM_KEYS;
    if (polled[0].revents & (POLLHUP | POLLERR | POLLNVAL))
        news |= TERM_GONE;
    else if (polled[0].revents & POLLIN)
        news |= TERM_KEYS;
    if (polled[2].revents)
        news |= TERM_SOURCE;
    return news;
}

/* Stop as by job control, the whole foreground group. ncurses' handler gives the terminal back, and takes it
 * again afterwards. */
static void suspend(void) {
    sigset_t blocked;
    if (term.marks_paste)
        outlet_write(&term.outlet, no_paste_marks);
    sigprocmask(SIG_SETMASK, &term.waiting_mask, &blocked);
    kill(0, SIGTSTP);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static int special(int key) {
    static const struct {
        int curses, press;
    } keys[] = {
        {KEY_UP, PRESS_UP},         {KEY_DOWN, PRESS_DOWN},
        {KEY_LEFT, PRESS_LEFT},     {KEY_RIGHT, PRESS_RIGHT},
        {KEY_PPAGE, PRESS_PAGE_UP}, {KEY_NPAGE, PRESS_PAGE_DOWN},
        {KEY_HOME, PRESS_HOME},     {KEY_END, PRESS_END},
        {KEY_DC, PRESS_DELETE},     {KEY_BACKSPACE, PRESS_BACKSPACE},
        {KEY_ENTER, PRESS_ENTER},   {KEY_RESIZE, PRESS_RESIZE},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].curses == key)
            return keys[i].press;
    return PRESS_NONE;
}

/* The character that a byte completes, in the locale's encoding; PRESS_NONE: none yet. ncurses' own get_wch
 * loses all that follows a byte which is no part of a character. */
static int character(char byte) {
    wchar_t wide;
    size_t took = mbrtowc(&wide, &byte, 1, &term.partial);
    if (took == (size_t)-2) {
        term.begun = true;
        return PRESS_NONE;
    }
    bool begun = term.begun;
    term.begun = false;
    if (took != (size_t)-1)
        return wide == '\r' ? PRESS_ENTER : (int)wide;
    memset(&term.partial, 0, sizeof term.partial);
    if (begun) /* what came before was no character; this byte begins anew */
        term.queued_key = character(byte);
    return NO_CHARACTER;
}

/* The key that a byte completes; PRESS_NONE: none yet. */
static int typed(unsigned char byte) {
    int key;
    switch (escape_take(&term.escape, byte, clock_seconds())) {
    case ESCAPE_TAKEN:
        return PRESS_NONE;
    case ESCAPE_AFTER:
        term.queued_key = byte == PRESS_ESCAPE ? PRESS_NONE : character((char)byte);
        return PRESS_ESCAPE;
    case ESCAPE_PASTED:
        key = character((char)byte);
        return key == PRESS_NONE ? key : PRESS_PASTED + (key < ' ' || key == PRESS_BACKSPACE ? ' ' : key);
    default:
        return character((char)byte);
    }
}

static int next_key(void) {
    int key = term.queued_key;
    term.queued_key = PRESS_NONE;
    while (key == PRESS_NONE) {
        int got = getch();
        if (got == ERR)
            return escape_rest(&term.escape) ? PRESS_ESCAPE : PRESS_NONE;
        key = got > UCHAR_MAX ? special(got) : typed((unsigned char)got);
    }
    return key;
}

int term_key(void) {
    for (;;) {
        int key = next_key();
        if (key == PRESS_NONE || key != term.suspend_key)
            return key;
        suspend();
    }
}

/* ---- output */

void term_size(int *rows, int *cols) {
    getmaxyx(stdscr, *rows, *cols);
    *rows = *rows < 1 ? 1 : *rows;
    *cols = *cols < 1 ? 1 : *cols;
}

enum glyphs term_glyphs(void) {
    return term.glyphs;
}

/* A cell of a picture: two tones, or its brightness where there are no such colours. */
static void put_tones(int row, int col, const struct cell *cell) {
    int upper = (cell->style - STYLES) / TONES, lower = (cell->style - STYLES) % TONES;
    short a = palette_tone(upper), b = palette_tone(lower);
    wchar_t text[2] = {(wchar_t)cell->rune, 0};
    cchar_t out;
    short pair = 0;
    if (term.colours >= 256 && STYLES + 1 + TONES * TONES < COLOR_PAIRS) {
        pair = (short)(STYLES + 1 + upper * TONES + lower);
        init_extended_pair(pair, palette_number(a, COLORS), palette_number(b, COLORS));
    } else {
        static const char ramp[] = " .:-=+*#%@";
        uint8_t above[3], below[3];
        palette_rgb(a, above);
        palette_rgb(b, below);
        int sum = 0;
        for (int k = 0; k < 3; k++)
            sum += above[k] + below[k];
        text[0] = (wchar_t)ramp[sum * 9 / (6 * 255)];
    }
    setcchar(&out, text, 0, pair, NULL);
    mvadd_wch(row, col, &out);
}

void term_put(int row, int col, const struct cell *cell) {
    if (cell->style >= STYLES && cell->rune) {
        put_tones(row, col, cell);
        return;
    }
    wchar_t text[2] = {(wchar_t)cell->rune, 0};
    if (cell->rune == 0)
        return; /* the right half of a wide character */
    if (cell->rune >= 0x80 && wcwidth(text[0]) != rune_width(cell->rune))
        text[0] = '?'; /* the locale has other ideas of its width, or of the character */
    cchar_t out;
    setcchar(&out, text, term.attributes[cell->style], term.pairs[cell->style], NULL);
    mvadd_wch(row, col, &out);
}

void term_show(int cursor_row, int cursor_col) {
    bool wanted = cursor_row >= 0;
    outlet_begin(&term.outlet);
    if (term.synchronized)
        outlet_write(&term.outlet, "\033[?2026h");
    if (wanted != term.cursor_shown) {
        curs_set(wanted);
        term.cursor_shown = wanted;
    }
    leaveok(stdscr, !wanted && term.hides_cursor); /* hidden, it may stay where the last character was put */
    move(wanted ? cursor_row : LINES - 1, wanted ? cursor_col : COLS - 1);
    wnoutrefresh(stdscr);
    doupdate();
    if (term.synchronized)
        outlet_write(&term.outlet, "\033[?2026l");
    outlet_end(&term.outlet);
}

void term_distrust(void) {
    clearok(curscr, TRUE);
}

bool term_has_room(void) {
    struct pollfd polled = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&polled, 1, 0) <= 0 ? false : (polled.revents & POLLOUT) != 0;
}

int64_t term_bytes_written(void) {
    return term.outlet.written;
}
