#include "tui/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/base/text.h"
#include "engine/wire/event.h"

static void right(char out[FORMAT_SIZE], const char *text, int columns, int width) {
    int pad = width - columns;
    snprintf(out, FORMAT_SIZE, "%*s%.*s", pad > 0 ? pad : 0, "", FORMAT_SIZE / 2, text);
}

/* A dash where the digit before the dot would be. */
static void dash(char out[FORMAT_SIZE], int width, int decimals) {
    int end = decimals > 0 && width - decimals - 1 >= 1 ? width - decimals - 1 : width;
    snprintf(out, FORMAT_SIZE, "%*s\u2013%*s", end - 1, "", width - end, "");
}

/* "1.2e-05" as short as it is exact enough: "1.2e-5". */
static void exponent(char *out, size_t size, double value, int width) {
    for (int digits = 3; digits >= 0; digits--) {
        char text[FORMAT_SIZE];
        snprintf(text, sizeof text, "%.*e", digits, value);
        char *e = strchr(text, 'e');
        char sign = e[1];
        char *rest = e + 2;
        while (*rest == '0' && rest[1])
            rest++;
        *e = 0;
        snprintf(out, size, "%se%s%s", text, sign == '-' ? "-" : "", rest);
        if ((int)strlen(out) <= width)
            return;
    }
}

void format_fixed(char out[FORMAT_SIZE], double value, int width, int decimals) {
    width = width > FORMAT_SIZE / 2 ? FORMAT_SIZE / 2 : width;
    if (wire_is_unknown(value)) {
        dash(out, width, decimals);
        return;
    }
    if (!isfinite(value)) {
        const char *text = isnan(value) ? "NaN" : value > 0 ? "inf" : "-inf";
        right(out, text, (int)strlen(text), width);
        return;
    }
    char text[FORMAT_SIZE + 320];
    bool small = value != 0 && fabs(value) < 0.5 * pow(10, -decimals);
    if (!small)
        for (int d = decimals; d >= 0; d--) {
            int shift = d == decimals ? 0 : decimals - d + (d == 0 ? 1 : 0);
            if (d == 0 && decimals == 0)
                shift = 0;
            int length = snprintf(text, sizeof text, "%.*f", d, value);
            /* Fewer decimals leave blanks at the right, so that the dot stays where it is. */
            if (length + shift <= width) {
                snprintf(out, FORMAT_SIZE, "%*s%.*s%*s", width - length - shift, "", FORMAT_SIZE - 8, text,
                         shift, "");
                return;
            }
        }
    /* Too large for the dot to stay: as many decimals as there is room for, then an exponent. */
    for (int d = decimals - 1; !small && d >= 0; d--)
        if (snprintf(text, sizeof text, "%.*f", d, value) <= width) {
            right(out, text, (int)strlen(text), width);
            return;
        }
    exponent(text, sizeof text, value, width);
    if ((int)strlen(text) > width)
        snprintf(text, sizeof text, "#");
    right(out, text, (int)strlen(text), width);
}

void format_short(char out[FORMAT_SIZE], double value, int digits) {
    if (wire_is_unknown(value)) {
        snprintf(out, FORMAT_SIZE, "%s", "\u2013");
    } else if (!isfinite(value)) {
        snprintf(out, FORMAT_SIZE, "%s", isnan(value) ? "NaN" : value > 0 ? "inf" : "-inf");
    } else if (value == 0) {
        snprintf(out, FORMAT_SIZE, "%s", "0");
    } else {
        int magnitude = (int)floor(log10(fabs(value)));
        if (magnitude < -4 || magnitude >= digits + 4) {
            exponent(out, FORMAT_SIZE, value, digits + 4);
        } else {
            int decimals = digits - 1 - magnitude;
            snprintf(out, FORMAT_SIZE, "%.*f", decimals > 0 ? decimals : 0, value);
        }
    }
}

void format_cosine(char out[FORMAT_SIZE], double value) {
    if (wire_is_unknown(value)) {
        snprintf(out, FORMAT_SIZE, "%s", " \u2013  ");
    } else if (!isfinite(value)) {
        snprintf(out, FORMAT_SIZE, "%s", " NaN");
    } else {
        char text[FORMAT_SIZE];
        double shown = fabs(value) < 0.005 ? 0 : value; /* no -.00 */
        snprintf(text, sizeof text, "%.2f", shown < -9 ? -9.0 : shown > 9 ? 9.0 : shown);
        const char *sign = text[0] == '-' ? "-" : "";
        const char *digits = text + (text[0] == '-');
        if (digits[0] == '0')
            digits++;
        snprintf(out, FORMAT_SIZE, "%*s%s%.4s", (int)(4 - strlen(sign) - strlen(digits)), "", sign, digits);
    }
}

void format_count(char out[FORMAT_SIZE], int64_t value) {
    if (value == WIRE_UNKNOWN_INT) {
        snprintf(out, FORMAT_SIZE, "%s", "\u2013");
        return;
    }
    text_count(value, out);
}

void format_duration(char out[FORMAT_SIZE], double seconds) {
    if (wire_is_unknown(seconds) || !isfinite(seconds) || seconds < 0) {
        snprintf(out, FORMAT_SIZE, "%s", "\u2013");
        return;
    }
    double minutes = floor(seconds / 60), hours = floor(minutes / 60);
    if (seconds < 99.5)
        snprintf(out, FORMAT_SIZE, "%.0f s", seconds);
    else if (minutes < 100)
        snprintf(out, FORMAT_SIZE, "%.0f min", minutes);
    else if (hours < 48)
        snprintf(out, FORMAT_SIZE, "%.0f h %02.0f min", hours, minutes - 60 * hours);
    else if (hours < 24 * 10000)
        snprintf(out, FORMAT_SIZE, "%.0f d %.0f h", floor(hours / 24), hours - 24 * floor(hours / 24));
    else
        snprintf(out, FORMAT_SIZE, "%s", "years");
}

void format_time(char out[FORMAT_SIZE], double time, bool date) {
    time_t seconds = isfinite(time) ? (time_t)time : 0;
    struct tm at;
    if (!isfinite(time) || !localtime_r(&seconds, &at))
        snprintf(out, FORMAT_SIZE, "\u2013");
    else if (date)
        snprintf(out, FORMAT_SIZE, "%02d-%02d %02d:%02d", at.tm_mon + 1, at.tm_mday, at.tm_hour, at.tm_min);
    else
        snprintf(out, FORMAT_SIZE, "%02d:%02d:%02d", at.tm_hour, at.tm_min, at.tm_sec);
}
