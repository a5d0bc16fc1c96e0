/* Numbers as the console writes them: the dot always in the same column, unknown shown as unknown. */
#ifndef TOWERSCOPE_TUI_FORMAT_H
#define TOWERSCOPE_TUI_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FORMAT_SIZE = 48 };

/* A number right-aligned in `width` columns with `decimals` after the dot. What does not fit loses decimals
 * but keeps the dot's column, then turns to an exponent; small values that would show as 0 do too. Not
 * finite: "NaN", "inf", "-inf"; unknown (wire_unknown): a dash. Never longer than `width`: as a last resort
 * it is "#". */
void format_fixed(char out[FORMAT_SIZE], double value, int width, int decimals);

/* The shortest of a few digits: 1.49, 0.0312, 12.4, 3.1e-05. `digits` significant. */
void format_short(char out[FORMAT_SIZE], double value, int digits);

/* A cosine in four columns: ".71", "-.12", "1.00". */
void format_cosine(char out[FORMAT_SIZE], double value);

/* 1240 as "1 240"; WIRE_UNKNOWN_INT as a dash. */
void format_count(char out[FORMAT_SIZE], int64_t value);

/* The time of day, "14:03:07", or with `date` "11-30 14:03"; unknown: a dash. */
void format_time(char out[FORMAT_SIZE], double time, bool date);

/* Seconds as "41 s", "22 min", "3 h 05 min", "2 d 4 h". */
void format_duration(char out[FORMAT_SIZE], double seconds);

#endif
