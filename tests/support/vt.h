/* A program in a pseudo-terminal of its own, its screen kept by libvterm: what a person would see, and
 * whether the terminal is as it was afterwards. Nothing sleeps: everything waits for what it is asked about,
 * with a limit: as many seconds as a machine needs that has time for it, and ten times as many on one that has
 * not. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_VT_H
#define TOWERSCOPE_TESTS_SUPPORT_VT_H

#include <stdbool.h>
#include <sys/types.h>

struct vt;

/* Start argv in a terminal. env: "NAME=value" or "NAME" (unset), NULL-terminated; NULL: TERM=xterm-256color
 * and LC_ALL=C.UTF-8 as they are by default. NULL when the system refuses. */
struct vt *vt_start(int rows, int cols, const char *const argv[], const char *const env[]);

/* Kill what still runs, close everything. */
void vt_end(struct vt *vt);

/* Whether the text is on the screen within some seconds; the screen is printed when it is not. */
bool vt_wait_text(struct vt *vt, const char *text, double seconds);
/* Whether it is gone from the screen within some seconds. */
bool vt_wait_no_text(struct vt *vt, const char *text, double seconds);
bool vt_shows(const struct vt *vt, const char *text);

/* Take what the program writes, until it has been still for `quiet` seconds (at most `seconds`). */
void vt_settle(struct vt *vt, double quiet, double seconds);

/* Take only so many bytes a second from now on, as a slow line does; 0: none; below 0: all, as at the start.
 */
void vt_line_rate(struct vt *vt, double bytes_per_second);

void vt_keys(struct vt *vt, const char *bytes);
void vt_resize(struct vt *vt, int rows, int cols);
void vt_signal(struct vt *vt, int number);
/* Close our end: the terminal is gone. */
void vt_hang_up(struct vt *vt);

/* Whether the program has ended within some seconds; its wait status goes to *status (may be NULL). */
bool vt_wait_exit(struct vt *vt, double seconds, int *status);
/* Whether it was stopped by job control within some seconds. */
bool vt_wait_stopped(struct vt *vt, double seconds);

/* The modes are those from before it began, the main screen is shown and the cursor too. Prints what is not.
 */
bool vt_is_restored(struct vt *vt);

bool vt_alternate(const struct vt *vt);
/* Everything written since the start. */
long long vt_bytes(const struct vt *vt);
/* Processor time the program has used, in seconds. */
double vt_cpu(const struct vt *vt);
pid_t vt_pid(const struct vt *vt);

/* The screen as text and, with `colours`, a second layer with a letter for each look and what the letters
 * are. In memory of the caller. */
char *vt_screen(const struct vt *vt, bool colours);

#endif
