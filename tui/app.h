/* The console without a terminal: keys and the state of the run in, a scene and wishes out. */
#ifndef TOWERSCOPE_TUI_APP_H
#define TOWERSCOPE_TUI_APP_H

#include "engine/wire/state.h"
#include "tui/canvas.h"
#include "tui/keymap.h"
#include "tui/preferences.h"
#include "tui/feed.h"
#include "tui/footer.h"

struct app;

/* A guided tour that is shown below the screen. The app only reads it. */
struct guide {
    char text[1600];
    char keys[128]; /* pressed for the person, all parts' so far */
    int part, parts;
    bool done;        /* its last page is shown */
    unsigned returns; /* how often it went back: the keys begin anew, on the screens as at the start */
};

/* What the console is on, as far as the person is concerned. */
struct app_options {
    const char *run;           /* its name, for the header before the run says it */
    const char *waiting;       /* what it waits for before the first event: "the engine to start" */
    const char *greeting;      /* for the message line, as the console opens; NULL: none */
    const struct guide *guide; /* NULL: none */
    bool replay;               /* a record: no commands */
    bool watch;                /* may not send commands */
    struct preferences preferences;
    struct keymap keymap;
};

/* What a key asks of the one who runs the app. */
enum app_wish {
    APP_NOTHING,
    APP_COMMAND, /* send app_text() to the run; app_sent tells how that went */
    APP_CONTROL, /* client_control(app_text()) */
    APP_GO_ON,   /* the guide's next part */
    APP_GO_BACK, /* the guide's part before */
    APP_MOVE,    /* move in the record: app_move() */
    APP_RESTYLE, /* the preferences have changed: term_restyle, then draw everything */
    APP_LEAVE,
    APP_REPAINT /* the terminal's contents are not to be trusted */
};

/* NULL when there is no memory. */
struct app *app_new(const struct app_options *options);
void app_free(struct app *app);

/* One key. `now` is clock_seconds(). */
enum app_wish app_key(struct app *app, int key, const struct run_state *state, double now);

/* What waits to be asked for: to be called until nothing is left, and again when an answer came. */
enum app_wish app_due(struct app *app, const struct run_state *state, double now);

/* A command to send before leaving; NULL: none. */
const char *app_parting(const struct app *app, const struct run_state *state);

/* Whether the run is told to end: the command is under way or was applied. */
bool app_stops(const struct app *app, const struct run_state *state);

/* The command of APP_COMMAND. */
const char *app_text(const struct app *app);

/* The screen that wants the command of APP_COMMAND to draw what it shows; NULL: a person does. */
const char *app_asking(const struct app *app);

/* The screen that is open. */
const char *app_screen(const struct app *app);

/* The move of APP_MOVE. */
struct app_move {
    enum feed_move move;
    double amount;
};
const struct app_move *app_move(const struct app *app);

/* Whether an answer to a command is awaited. */
bool app_awaits(const struct app *app);

/* How the feed is, for the message line. */
void app_about(struct app *app, const struct feed_status *about);

/* The command went off under `id`, or (id NULL) could not: `text` says why. */
void app_sent(struct app *app, const char *id, const char *text, double now);

/* Say something on the message line for a while: a connection lost, a record with holes. */
void app_say(struct app *app, enum style style, const char *text, double now);

/* Draw everything into the canvas, whose size is the terminal's. generation: another number when the state is
 * another past (a seek). Returns the seconds after which the same state would look different; infinite:
 * never. */
double app_draw(struct app *app, struct canvas *canvas, const struct run_state *state, uint64_t generation,
                double now);

/* What the console costs, for `:budget`. */
void app_budget(struct app *app, const struct budget *budget);

/* Draw less from now on, the terminal is slow; or as usual. */
void app_quiet(struct app *app, bool quiet);

struct preferences *app_preferences(struct app *app);

#endif
