/* How styles look: colours that stay apart for colour-blind eyes by default, on dark and on light ground, in
 * 256 colours, in 8 and in none. No meaning hangs on colour alone: alarms say so in words, towers have
 * numbers. */
#ifndef TOWERSCOPE_TUI_PALETTE_H
#define TOWERSCOPE_TUI_PALETTE_H

#include <stdint.h>

#include "tui/canvas.h"
#include "tui/preferences.h"

struct look {
    int foreground, background; /* a colour of the terminal; -1: its own */
    bool bold, faint, reverse;
};

/* colours: how many the terminal has; below 8 there are none. light: dark text on light ground. */
struct look palette_look(enum palette_name palette, enum style style, int colours, bool light);

/* A colour of 256 as a terminal of `colours` numbers it: one of 2^24 takes red, green and blue, but for the
 * first eight. -1 stays. */
int palette_number(int colour, int colours);

/* A tone of a picture as a colour of 256, and as red, green and blue. */
short palette_tone(int number);
void palette_rgb(short colour, uint8_t rgb[3]);

/* Whether COLORFGBG ("0;15", NULL: not set) speaks of a light ground. */
bool palette_light(const char *colorfgbg);

#endif
