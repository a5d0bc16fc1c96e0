#include "tests/support/vt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <vterm.h>

#include "engine/base/clock.h"
#include "tui/canvas.h"

/* A limit's seconds are those of a machine that has time: one with much else to do gets ten times as long. */
static const double PATIENCE = 10;

struct vt {
    int master, slave, rows, cols;
    pid_t pid;
    bool ended, alternate, cursor;
    int status;
    double cpu; /* that it used, once it has ended */
    long long bytes;
    double rate, allowed, allowed_at; /* of a slow line: bytes that may be taken now */
    struct termios before;
    VTerm *vterm;
    VTermScreen *screen;
};

static int on_property(VTermProp property, VTermValue *value, void *user) {
    struct vt *vt = user;
    if (property == VTERM_PROP_ALTSCREEN)
        vt->alternate = value->boolean;
    if (property == VTERM_PROP_CURSORVISIBLE)
        vt->cursor = value->boolean;
    return 1;
}

static const VTermScreenCallbacks callbacks = {.settermprop = on_property};

static int open_terminal(int *slave) {
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char name[64];
    if (master < 0 || grantpt(master) || unlockpt(master) || ptsname_r(master, name, sizeof name))
        return -1;
    *slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return *slave < 0 ? -1 : master;
}

static void set_size(struct vt *vt, int rows, int cols) {
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    ioctl(vt->master, TIOCSWINSZ, &size);
    vt->rows = rows;
    vt->cols = cols;
}

static void run_program(struct vt *vt, const char *const argv[], const char *const env[]) {
    setsid();
    ioctl(vt->slave, TIOCSCTTY, 0);
    for (int fd = 0; fd < 3; fd++)
        dup2(vt->slave, fd);
    for (int number = 1; number < 32; number++)
        signal(number, SIG_DFL);
    setenv("TERM", "xterm-256color", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("TZ", "UTC", 1);
    for (; env && *env; env++) {
        char text[512];
        snprintf(text, sizeof text, "%s", *env);
        char *value = strchr(text, '=');
        if (value) {
            *value = 0;
            setenv(text, value + 1, 1);
        } else {
            unsetenv(text);
        }
    }
    execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

struct vt *vt_start(int rows, int cols, const char *const argv[], const char *const env[]) {
    struct vt *vt = calloc(1, sizeof *vt);
    if (!vt)
        return NULL;
    vt->master = open_terminal(&vt->slave);
    if (vt->master < 0) {
        free(vt);
        return NULL;
    }
    set_size(vt, rows, cols);
    tcgetattr(vt->slave, &vt->before);
    vt->cursor = true;
    vt->rate = -1;
    vt->vterm = vterm_new(rows, cols);
    vterm_set_utf8(vt->vterm, 1);
    vt->screen = vterm_obtain_screen(vt->vterm);
    vterm_screen_set_callbacks(vt->screen, &callbacks, vt);
    vterm_screen_enable_altscreen(vt->screen, 1);
    vterm_screen_reset(vt->screen, 1);
    fcntl(vt->master, F_SETFL, O_NONBLOCK);
    vt->pid = fork();
    if (vt->pid == 0)
        run_program(vt, argv, env);
    return vt;
}

void vt_hang_up(struct vt *vt) {
    close(vt->master);
    close(vt->slave);
    vt->master = vt->slave = -1;
}

static void look_for_end(struct vt *vt) {
    struct rusage used;
    if (vt->ended || wait4(vt->pid, &vt->status, WNOHANG, &used) != vt->pid)
        return;
    vt->ended = true;
    vt->cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
              1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

void vt_end(struct vt *vt) {
    if (!vt)
        return;
    look_for_end(vt);
    if (!vt->ended) {
        kill(vt->pid, SIGKILL);
        waitpid(vt->pid, &vt->status, 0);
    }
    if (vt->master >= 0)
        vt_hang_up(vt);
    vterm_free(vt->vterm);
    free(vt);
}

void vt_line_rate(struct vt *vt, double bytes_per_second) {
    vt->rate = bytes_per_second;
    vt->allowed = 0;
    vt->allowed_at = clock_seconds();
}

/* Bytes that the line carries now, after waiting a little where it is slow. */
static size_t line_room(struct vt *vt, size_t most) {
    if (vt->rate < 0)
        return most;
    poll(NULL, 0, 20);
    double now = clock_seconds();
    vt->allowed += vt->rate * (now - vt->allowed_at);
    vt->allowed_at = now;
    size_t room = vt->allowed < (double)most ? (size_t)vt->allowed : most;
    vt->allowed -= (double)room;
    return room;
}

/* Take what there is, after waiting for it at most so many milliseconds. False: nothing came. */
static bool take(struct vt *vt, int milliseconds) {
    if (vt->master < 0) {
        poll(NULL, 0, milliseconds);
        return false;
    }
    struct pollfd polled = {.fd = vt->master, .events = POLLIN};
    char bytes[65536];
    size_t room = line_room(vt, sizeof bytes);
    if (room == 0 || poll(&polled, 1, milliseconds) <= 0)
        return false;
    ssize_t n = read(vt->master, bytes, room);
    if (n <= 0)
        return false;
    vt->bytes += n;
    vterm_input_write(vt->vterm, bytes, (size_t)n);
    char answer[256];
    size_t length = vterm_output_read(vt->vterm, answer, sizeof answer);
    if (length > 0 && write(vt->master, answer, length) < 0)
        return true;
    return true;
}

static bool cell_at(const struct vt *vt, int row, int col, VTermScreenCell *cell) {
    return vterm_screen_get_cell(vt->screen, (VTermPos){row, col}, cell) && cell->chars[0] != (uint32_t)-1;
}

static char *screen_text_of(const struct vt *vt) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (int row = 0; row < vt->rows; row++) {
        char line[4096];
        size_t length = 0, end = 0;
        for (int col = 0; col < vt->cols && length < sizeof line - 8; col++) {
            VTermScreenCell cell;
            if (!cell_at(vt, row, col, &cell))
                continue;
            length += (size_t)rune_encode(cell.chars[0] ? cell.chars[0] : ' ', line + length);
            if (cell.chars[0] && cell.chars[0] != ' ')
                end = length;
        }
        fprintf(out, "%.*s\n", (int)end, line);
    }
    fclose(out);
    return text;
}

bool vt_shows(const struct vt *vt, const char *text) {
    char *screen = screen_text_of(vt);
    bool found = strstr(screen, text) != NULL;
    free(screen);
    return found;
}

static bool wait_text(struct vt *vt, const char *text, double seconds, bool wanted) {
    seconds *= PATIENCE;
    double until = clock_seconds() + seconds;
    while (vt_shows(vt, text) != wanted) {
        double left = until - clock_seconds();
        if (left <= 0) {
            char *screen = vt_screen(vt, false);
            printf("waited %.1f s for \"%s\" to %s; the screen is\n%s", seconds, text,
                   wanted ? "appear" : "go", screen);
            free(screen);
            return false;
        }
        take(vt, left > 0.05 ? 50 : 1 + (int)(left * 1000));
    }
    return true;
}

bool vt_wait_text(struct vt *vt, const char *text, double seconds) {
    return wait_text(vt, text, seconds, true);
}
bool vt_wait_no_text(struct vt *vt, const char *text, double seconds) {
    return wait_text(vt, text, seconds, false);
}

void vt_settle(struct vt *vt, double quiet, double seconds) {
    double until = clock_seconds() + seconds;
    while (take(vt, (int)(quiet * 1000)) && clock_seconds() < until) {
    }
}

void vt_keys(struct vt *vt, const char *bytes) {
    if (write(vt->master, bytes, strlen(bytes)) < 0)
        printf("the keys could not be typed: %s\n", strerror(errno));
}

void vt_resize(struct vt *vt, int rows, int cols) {
    set_size(vt, rows, cols);
    vterm_set_size(vt->vterm, rows, cols);
}

void vt_signal(struct vt *vt, int number) {
    kill(vt->pid, number);
}

bool vt_wait_exit(struct vt *vt, double seconds, int *status) {
    double until = clock_seconds() + PATIENCE * seconds;
    for (;;) {
        look_for_end(vt);
        if (vt->ended)
            break;
        if (clock_seconds() > until)
            return false;
        take(vt, 10);
    }
    while (take(vt, 0)) { /* what it wrote last */
    }
    if (status)
        *status = vt->status;
    return true;
}

bool vt_wait_stopped(struct vt *vt, double seconds) {
    double until = clock_seconds() + PATIENCE * seconds;
    int status;
    while (clock_seconds() < until) {
        if (waitpid(vt->pid, &status, WNOHANG | WUNTRACED) == vt->pid && WIFSTOPPED(status))
            return true;
        take(vt, 10);
    }
    return false;
}

bool vt_is_restored(struct vt *vt) {
    struct termios now;
    bool modes = !tcgetattr(vt->slave, &now) && now.c_iflag == vt->before.c_iflag &&
                 now.c_oflag == vt->before.c_oflag && now.c_cflag == vt->before.c_cflag &&
                 now.c_lflag == vt->before.c_lflag && !memcmp(now.c_cc, vt->before.c_cc, sizeof now.c_cc);
    if (!modes)
        printf("the terminal's modes are not those from before\n");
    if (vt->alternate)
        printf("the alternate screen was not left\n");
    if (!vt->cursor)
        printf("the cursor is hidden\n");
    return modes && !vt->alternate && vt->cursor;
}

bool vt_alternate(const struct vt *vt) {
    return vt->alternate;
}
long long vt_bytes(const struct vt *vt) {
    return vt->bytes;
}
pid_t vt_pid(const struct vt *vt) {
    return vt->pid;
}

double vt_cpu(const struct vt *vt) {
    char path[64], line[1024];
    if (vt->ended)
        return vt->cpu;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)vt->pid);
    FILE *file = fopen(path, "r");
    unsigned long user = 0, system = 0;
    if (file && fgets(line, sizeof line, file) && strrchr(line, ')'))
        sscanf(strrchr(line, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
               &system);
    if (file)
        fclose(file);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* ---- the layer of looks */

static void describe_colour(char *out, size_t size, VTermColor colour, bool is_default) {
    if (is_default)
        snprintf(out, size, "-");
    else if (VTERM_COLOR_IS_INDEXED(&colour))
        snprintf(out, size, "%d", colour.indexed.idx);
    else
        snprintf(out, size, "#%02x%02x%02x", colour.rgb.red, colour.rgb.green, colour.rgb.blue);
}

static void describe_look(char *out, size_t size, const VTermScreenCell *cell) {
    char foreground[16], background[16];
    describe_colour(foreground, sizeof foreground, cell->fg, VTERM_COLOR_IS_DEFAULT_FG(&cell->fg));
    describe_colour(background, sizeof background, cell->bg, VTERM_COLOR_IS_DEFAULT_BG(&cell->bg));
    snprintf(out, size, "%s on %s%s%s", foreground, background, cell->attrs.bold ? " bold" : "",
             cell->attrs.reverse ? " reverse" : "");
}

char *vt_screen(const struct vt *vt, bool colours) {
    char *text = NULL, *runes = screen_text_of(vt);
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fputs(runes, out);
    free(runes);
    if (colours) {
        enum { LOOKS = 52 };
        char looks[LOOKS][48];
        int count = 0;
        fprintf(out, "---- looks\n");
        for (int row = 0; row < vt->rows; row++) {
            char line[1024];
            int end = 0;
            for (int col = 0; col < vt->cols && col < 1000; col++) {
                VTermScreenCell cell;
                char look[48] = "- on -";
                if (cell_at(vt, row, col, &cell))
                    describe_look(look, sizeof look, &cell);
                bool blank = !strcmp(look, "- on -") || (cell.chars[0] <= ' ' && !cell.attrs.reverse &&
                                                         VTERM_COLOR_IS_DEFAULT_BG(&cell.bg));
                int i = 0;
                while (i < count && strcmp(looks[i], look))
                    i++;
                if (!blank && i == count && count < LOOKS)
                    snprintf(looks[count++], sizeof looks[0], "%s", look);
                line[col] = blank ? ' ' : (char)(i < 26 ? 'a' + i : 'A' + i - 26);
                end = blank ? end : col + 1;
            }
            fprintf(out, "%.*s\n", end, line);
        }
        for (int i = 0; i < count; i++)
            fprintf(out, "%c: %s\n", i < 26 ? 'a' + i : 'A' + i - 26, looks[i]);
    }
    fclose(out);
    return text;
}
