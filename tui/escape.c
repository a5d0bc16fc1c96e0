#include "tui/escape.h"

#include <string.h>

enum { ESC = 27, BEL = 7, MOUSE_BYTES = 3 };

static const double over_seconds = 1, paste_over_seconds = 10;

static void begin(struct escape *escape, enum escape_state state) {
    escape->state = state;
    escape->length = 0;
    memset(escape->parameters, 0, sizeof escape->parameters);
}

static enum escape_byte plain(struct escape *escape) {
    escape->state = ESCAPE_NONE;
    return escape->pasting ? ESCAPE_PASTED : ESCAPE_PLAIN;
}

/* The byte after ESC. */
static enum escape_byte after_escape(struct escape *escape, unsigned char byte) {
    switch (byte) {
    case '[':
        begin(escape, ESCAPE_CONTROL);
        return ESCAPE_TAKEN;
    case 'O':
        begin(escape, ESCAPE_SHIFTED);
        return ESCAPE_TAKEN;
    case ']':
    case 'P':
        begin(escape, ESCAPE_TEXT);
        return ESCAPE_TAKEN;
    default:
        if (escape->pasting)
            return plain(escape);
        escape->state = ESCAPE_NONE;
        return ESCAPE_AFTER;
    }
}

/* The last byte of ESC [ and its parameters. */
static void finish(struct escape *escape, unsigned char byte) {
    escape->state = ESCAPE_NONE;
    if (byte == '~' && !strcmp(escape->parameters, "200"))
        escape->pasting = true;
    else if (byte == '~' && !strcmp(escape->parameters, "201"))
        escape->pasting = false;
    else if (byte == 'M' && escape->length == 0) { /* a mouse, in the old way */
        escape->state = ESCAPE_COUNTED;
        escape->left = MOUSE_BYTES;
    } else if (byte == '[' && escape->length == 0) { /* a function key of the Linux console */
        escape->state = ESCAPE_COUNTED;
        escape->left = 1;
    }
}

static enum escape_byte in_sequence(struct escape *escape, unsigned char byte) {
    if (byte >= 0x20 && byte < 0x40) {
        if (escape->length < (int)sizeof escape->parameters - 1)
            escape->parameters[escape->length] = (char)byte;
        escape->length++;
        return ESCAPE_TAKEN;
    }
    if (byte < 0x40 || byte > 0x7e)
        return plain(escape); /* it was none */
    if (escape->state == ESCAPE_CONTROL)
        finish(escape, byte);
    else
        escape->state = ESCAPE_NONE;
    return ESCAPE_TAKEN;
}

enum escape_byte escape_take(struct escape *escape, unsigned char byte, double now) {
    double waited = escape->rested ? now - escape->last : 0; /* for the byte, not the byte for us */
    escape->rested = false;
    if (waited > over_seconds && escape->state != ESCAPE_BEGUN)
        escape->state = ESCAPE_NONE;
    if (waited > paste_over_seconds)
        escape->pasting = false;
    escape->last = now;
    if (escape->state == ESCAPE_COUNTED) {
        if (--escape->left == 0)
            escape->state = ESCAPE_NONE;
        return ESCAPE_TAKEN;
    }
    if (escape->state == ESCAPE_TEXT || escape->state == ESCAPE_TEXT_END) {
        if (escape->state == ESCAPE_TEXT_END || byte == BEL)
            escape->state = ESCAPE_NONE;
        else if (byte == ESC)
            escape->state = ESCAPE_TEXT_END;
        else if (byte < ' ')
            return plain(escape); /* it was none */
        return ESCAPE_TAKEN;
    }
    if (byte == ESC) {
        bool twice = escape->state == ESCAPE_BEGUN && !escape->pasting;
        begin(escape, ESCAPE_BEGUN);
        return twice ? ESCAPE_AFTER : ESCAPE_TAKEN;
    }
    switch (escape->state) {
    case ESCAPE_BEGUN:
        return after_escape(escape, byte);
    case ESCAPE_LATE:
        if (byte != '[')
            return plain(escape);
        begin(escape, ESCAPE_CONTROL);
        return ESCAPE_TAKEN;
    case ESCAPE_CONTROL:
    case ESCAPE_SHIFTED:
        return in_sequence(escape, byte);
    default:
        return plain(escape);
    }
}

bool escape_rest(struct escape *escape) {
    escape->rested = true;
    if (escape->state != ESCAPE_BEGUN || escape->pasting)
        return false;
    escape->state = ESCAPE_LATE;
    return true;
}
