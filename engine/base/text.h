/* Reading words and numbers strictly, and naming the nearest of the words that were expected. */
#ifndef TOWERSCOPE_ENGINE_BASE_TEXT_H
#define TOWERSCOPE_ENGINE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether there is a text and it is this word. */
bool text_is(const char *text, const char *word);

/* Whether a text begins with these words: a blank or its end comes after them. */
bool text_begins(const char *text, const char *words);

/* The whole of `text` as a decimal number: a dot whatever the locale, no spaces, no hexadecimal, no "inf" or
 * "nan", nothing after it. false: it is not one (*out is untouched). */
bool text_real(const char *text, double *out);

/* text_real() or a quotient of two of them, "0.001/9"; the divisor is not 0 and the result is finite. */
bool text_quotient(const char *text, double *out);

/* The whole of `text` as a whole number, "-12". false: it is not one, or does not fit. */
bool text_integer(const char *text, int64_t *out);

/* The one of names[count] that differs from `word` by the fewest letters put in, left out, changed or swapped
 * (the earliest wins a tie); NULL when that is more than a third of the word's letters. The names are not
 * copied.
 */
const char *text_near(const char *word, const char *const *names, int count);

/* A count as a person reads it, 1240 as "1 240", at most 27 bytes into out[28]; returns out. */
char *text_count(int64_t value, char out[28]);

/* A sentence into out[size], cut where it is full, its whole numbers of four digits and more written so; what
 * is part of a word, a fraction or a name stays as it is. */
void text_counts(char *out, size_t size, const char *sentence);

/* "a, b, c" into out[size], cut where it is full. */
void text_list(char *out, size_t size, const char *const *names, int count);

#endif
