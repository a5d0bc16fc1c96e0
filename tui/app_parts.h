/* What the console holds between two frames, and what its parts do for each other: keys (app.c), commands to
 * the run (app_orders.c), drawing (app_draw.c). */
#ifndef TOWERSCOPE_TUI_APP_PARTS_H
#define TOWERSCOPE_TUI_APP_PARTS_H

#include "tui/app.h"
#include "tui/prompt.h"
#include "tui/screens.h"
#include "tui/shown.h"
#include "tui/standing.h"
#include "tui/view_help.h"
#include "tui/view_log.h"
#include "tui/view_towers.h"

enum mode { MODE_KEYS, MODE_PROMPT, MODE_FILTER, MODE_CONFIRM };
enum { QUEUE = 16 };

/* Whether the run was asked for the values of the Why screen; failed: not sent, or refused. */
enum why_asked { WHY_UNASKED, WHY_ASKED, WHY_FAILED };

struct message {
    char text[512];
    enum style style;
    double until; /* infinite: until something else is said */
    bool aside;   /* of what a screen asked for by itself: goes with the screen */
};

struct app {
    struct app_options options;
    char run[RUN_NAME_MAX + 1], waiting[128];
    enum screen screen;
    bool help, quiet;
    enum mode mode;
    struct prompt prompt, filter;
    char text[PROMPT_TEXT]; /* of the command to send */
    struct app_move move;
    struct feed_status about;
    char sent[40]; /* id of the command that is under way; "": none */
    double sent_at;
    int64_t events_then; /* of the run's state, when it was asked for */
    bool silent;         /* since then nothing came, and this is said */
    bool asking; /* the command in `text` lets the screen asking_for draw what it shows; a person's if not */
    enum screen asking_for;
    struct message message;
    int64_t alarm_seen; /* its seq; 0: none */
    int wanted_towers;  /* last asked for with + and -; 0: none */
    double wanted_until;
    struct standing dismissed; /* the standing text that was taken away */
    bool show_budget;
    struct budget budget;
    struct shown shown;
    struct towers_view towers;
    struct log_view log;
    struct help_view help_view;
    struct screens screens;
    struct view_orders question;   /* MODE_CONFIRM: what is asked, and the commands that "y" sends */
    char queue[QUEUE][ORDER_TEXT]; /* commands that wait for the one under way, and whose they are */
    enum screen queue_of[QUEUE];
    int queued;
    enum why_asked why;
    bool asked_control;    /* and nothing has come of it yet */
    int64_t requests_then; /* of the run's state, when it was asked for */
    bool why_wanted;  /* by a key, since this run began and control was ours: a console that was left does not
                         ask */
    size_t guided;    /* the guide's keys that were pressed */
    unsigned returns; /* of the guide, when they were */
    int guide_part;   /* whose words are shown, from row guide_row on; guide_rows: as many as there is room for */
    int guide_row, guide_rows, guide_all; /* guide_all: rows that all of them take */
};

/* Where keys mean something now: WHERE_... */
unsigned app_where(const struct app *app);

/* ---- app_orders.c */

/* A command for the run: APP_COMMAND with app->text, or nothing and a message that says why. */
enum app_wish app_command(struct app *app, const struct run_state *state, double now, const char *text);

/* Whether commands may be sent at all, without a word about it. */
bool app_may_command(const struct app *app, const struct run_state *state);

/* Commands to send one after the other, by app_due. */
void app_queue(struct app *app, const struct view_orders *orders);

/* What a view wants of the run: sent in order, or asked for first. */
enum app_wish app_order(struct app *app, const struct view_orders *orders, const struct run_state *state,
                        double now);

/* The answer to what was asked for: "y" sends it. */
enum app_wish app_confirm(struct app *app, int key, const struct run_state *state, double now);

/* What became of the command that is under way, as a message. */
void app_hear(struct app *app, const struct run_state *state, double now);

/* An engine says at once that it has a command. Say so when it does not; returns after how many seconds to
 * look again. */
double app_hear_nothing(struct app *app, const struct run_state *state, double now);

void app_open_screen(struct app *app, enum screen screen, const struct run_state *state);

/* What became of asking for control, as a message. */
void app_hear_control(struct app *app, const struct run_state *state, double now);

/* client_control: "ask", "give", "refuse". */
enum app_wish app_control(struct app *app, const char *what);

/* Give control to the one who asks, or ask for it. */
enum app_wish app_ask_control(struct app *app, const struct run_state *state, double now);

/* One tower more or less than there are, or than was asked for just before. */
enum app_wish app_change_towers(struct app *app, const struct run_state *state, double now, int by);

/* ---- app.c */

/* The keys of the guide that have not been pressed yet. */
void app_follow_guide(struct app *app, const struct run_state *state, double now);

#endif
