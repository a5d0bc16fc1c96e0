/* How a person wants the console: what `:set`, config.ini, the environment and options change. */
#ifndef TOWERSCOPE_TUI_PREFERENCES_H
#define TOWERSCOPE_TUI_PREFERENCES_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/status.h"

enum theme { THEME_AUTO, THEME_DARK, THEME_LIGHT };
enum palette_name { PALETTE_SAFE, PALETTE_BRIGHT, PALETTE_GREY };
enum glyph_choice { GLYPH_AUTO, GLYPH_ASCII, GLYPH_BLOCK, GLYPH_BRAILLE };

enum { SMOOTHINGS = 4 };

struct preferences {
    bool log_scale;
    int64_t smoothing; /* 0 (off) to SMOOTHINGS - 1 */
    int64_t window;    /* steps in the plots; 0: all */
    enum theme theme;
    enum palette_name palette;
    enum glyph_choice glyphs;
    double number_interval, plot_interval; /* seconds */
    bool synchronized;                     /* bracket frames by the terminal's synchronized update */
};

void preferences_default(struct preferences *preferences);

/* Set one from text: log-scale on|off, smoothing 0..3, window N, theme auto|dark|light, palette
 * safe|bright|grey, glyphs auto|braille|block|ascii, number-interval and plot-interval in seconds,
 * synchronized on|off. `where` begins the message. STATUS_BAD_INPUT: no such key (the keys are named) or
 * value (those that may be are named). */
enum status preferences_set(struct preferences *preferences, const char *where, const char *key,
                            const char *value);

/* The keys, one a call, with what they may be; NULL past the end. */
const char *preferences_key(int i, const char **values);

/* Weight of the past for a smoothing, and its word: "raw", "smooth 5", ... (word may be NULL). */
double preferences_smoothing(int64_t smoothing, const char **word);

#endif
