/* Text of files and peers, made safe to show: what comes from outside never moves a cursor. */
#ifndef TOWERSCOPE_ENGINE_BASE_PRINTABLE_H
#define TOWERSCOPE_ENGINE_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character at *text (UTF-8), *text set past it; 0 at the end. A byte that starts no well-formed
 * character gives -1 and is stepped over. */
int32_t text_next(const char **text);

/* Whether all of it is well-formed UTF-8. */
bool text_is_utf8(const char *text);

/* Copy with each byte that belongs to no UTF-8 character replaced by '?', cut to `size` between characters,
 * always terminated. Returns the length of the copy. */
size_t text_utf8(char *out, size_t size, const char *text);

/* text_utf8(), and control characters, DEL, C1 controls, line separators and marks that turn the writing
 * direction become '?' (a tab and a newline become a space). */
size_t text_printable(char *out, size_t size, const char *text);

/* A loss as a person reads it, into out[32]: 4 decimals, from 100,000 on 5 significant digits, "not finite".
 * Returns out. */
const char *text_loss(double value, char out[32]);

#endif
