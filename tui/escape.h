/* The bytes that a terminal sends beside keys: mouse reports, answers to questions that another program
 * asked, focus reports, pasted text. ncurses knows the sequences of keys; of the others it hands out the
 * bytes, and read as keys they would command the run. Here they are told apart and taken out (ECMA-48,
 * section 5.4; xterm's control sequences). */
#ifndef TOWERSCOPE_TUI_ESCAPE_H
#define TOWERSCOPE_TUI_ESCAPE_H

#include <stdbool.h>

enum escape_state {
    ESCAPE_NONE,
    ESCAPE_BEGUN,    /* ESC was read */
    ESCAPE_LATE,     /* ESC was a key of its own; should '[' follow soon, it was not */
    ESCAPE_CONTROL,  /* ESC [ */
    ESCAPE_SHIFTED,  /* ESC O */
    ESCAPE_COUNTED,  /* `left` bytes are still to come */
    ESCAPE_TEXT,     /* ESC ] or the like: up to BEL or ESC \ */
    ESCAPE_TEXT_END, /* the ESC in it */
};

/* All zeros: nothing was read yet. */
struct escape {
    enum escape_state state;
    int left, length; /* of what is counted; of the parameters */
    char parameters[8];
    bool pasting; /* between ESC [ 200 ~ and ESC [ 201 ~ */
    bool rested;  /* there was nothing left to read */
    double last;  /* when the last byte came, s */
};

enum escape_byte {
    ESCAPE_TAKEN,  /* a part of a sequence */
    ESCAPE_PLAIN,  /* a byte that was typed */
    ESCAPE_AFTER,  /* the key escape, and then this byte, which was typed */
    ESCAPE_PASTED, /* a byte of pasted text */
};

/* The next byte, read at `now` (s, of a clock that only goes forward). A sequence whose end does not come
 * within a second is over, and a paste to which nothing came for ten. */
enum escape_byte escape_take(struct escape *escape, unsigned char byte, double now);

/* No byte is left to read. Whether the last one was the key escape. */
bool escape_rest(struct escape *escape);

#endif
