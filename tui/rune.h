/* The characters that screens are drawn with, by what they look like. canvas.c has what stands for each where
 * there is only ASCII. */
#ifndef TOWERSCOPE_TUI_RUNE_H
#define TOWERSCOPE_TUI_RUNE_H

enum {
    RUNE_DOT = 0x00b7,             /* · */
    RUNE_CROSS = 0x00d7,           /* × */
    RUNE_PAUSE = 0x2016,           /* ‖ */
    RUNE_ELLIPSIS = 0x2026,        /* … */
    RUNE_UNEQUAL = 0x2260,         /* ≠ */
    RUNE_LINE = 0x2500,            /* ─ */
    RUNE_HEAVY_LINE = 0x2501,      /* ━ */
    RUNE_VERTICAL = 0x2502,        /* │ */
    RUNE_TOP_RIGHT = 0x2510,       /* ┐ */
    RUNE_BOTTOM_RIGHT = 0x2518,    /* ┘ */
    RUNE_BRANCH_RIGHT = 0x251c,    /* ├ */
    RUNE_BRANCH_LEFT = 0x2524,     /* ┤ */
    RUNE_DASHES = 0x254c,          /* ╌ */
    RUNE_DASHED_VERTICAL = 0x254e, /* ╎ */
    RUNE_DOUBLE_LINE = 0x2550,     /* ═ */
    RUNE_HALF_HEAVY_LINE = 0x2578, /* ╸ */
    RUNE_UPPER_HALF = 0x2580,      /* ▀ */
    RUNE_LOWEST_EIGHTH = 0x2581,   /* ▁, and the seven above it up to a full block */
    RUNE_BLOCK = 0x2588,           /* █ */
    RUNE_LEFT_HALF = 0x258c,       /* ▌ */
    RUNE_LEFT_BAR = 0x258d,        /* ▍ */
    RUNE_RIGHT_HALF = 0x2590,      /* ▐ */
    RUNE_LIGHT_SHADE = 0x2591,     /* ░ */
    RUNE_MEDIUM_SHADE = 0x2592,    /* ▒ */
    RUNE_DARK_SHADE = 0x2593,      /* ▓ */
    RUNE_SQUARE = 0x25a0,          /* ■ */
    RUNE_UP = 0x25b4,              /* ▴ */
    RUNE_RIGHT = 0x25b8,           /* ▸ */
    RUNE_DOWN = 0x25be,            /* ▾ */
    RUNE_RING = 0x25cb,            /* ○ */
    RUNE_DISC = 0x25cf,            /* ● */
    RUNE_BRAILLE = 0x2800,         /* no dot; + the bits of the dots */
    RUNE_BRAILLE_END = 0x2900,
};

#endif
