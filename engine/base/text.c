#include "engine/base/text.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool text_is(const char *text, const char *word) {
    return text && !strcmp(text, word);
}

bool text_begins(const char *text, const char *words) {
    size_t length = strlen(words);
    return !strncmp(text, words, length) && (text[length] == 0 || text[length] == ' ');
}

static bool plain_number(const char *text, const char *letters) {
    /* strtod also takes spaces, hexadecimal, "inf" and "nan": what is not of these letters is refused. */
    return *text && strspn(text, letters) == strlen(text);
}

bool text_real(const char *text, double *out) {
    if (!plain_number(text, "+-.0123456789eE"))
        return false;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return false;
    char *end;
    double value = strtod_l(text, &end, c);
    freelocale(c);
    if (end == text || *end || !isfinite(value))
        return false;
    *out = value;
    return true;
}

bool text_quotient(const char *text, double *out) {
    const char *slash = strchr(text, '/');
    if (!slash)
        return text_real(text, out);
    char above[64];
    size_t length = (size_t)(slash - text);
    if (length >= sizeof above)
        return false;
    memcpy(above, text, length);
    above[length] = 0;
    double a, b;
    if (!text_real(above, &a) || !text_real(slash + 1, &b) || b == 0 || !isfinite(a / b))
        return false;
    *out = a / b;
    return true;
}

bool text_integer(const char *text, int64_t *out) {
    if (!plain_number(text, "+-0123456789"))
        return false;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno == ERANGE)
        return false;
    *out = value;
    return true;
}

enum { WORD_MAX = 64 };

static int smaller(int a, int b) {
    return a < b ? a : b;
}

/* Optimal string alignment distance of the first WORD_MAX letters; a change of case costs nothing. */
static int distance(const char *a, const char *b) {
    size_t m = strnlen(a, WORD_MAX), n = strnlen(b, WORD_MAX);
    int rows[3][WORD_MAX + 1]; /* row i - 2, i - 1 and i of the table, in turn */
    for (size_t j = 0; j <= n; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= m; i++) {
        int *now = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= n; j++) {
            int p = tolower((unsigned char)a[i - 1]), q = tolower((unsigned char)b[j - 1]);
            now[j] = smaller(smaller(now[j - 1], above[j]) + 1, above[j - 1] + (p != q));
            if (i > 1 && j > 1 && p == tolower((unsigned char)b[j - 2]) &&
                q == tolower((unsigned char)a[i - 2]))
                now[j] = smaller(now[j], before[j - 2] + 1);
        }
    }
    return rows[m % 3][n];
}

static const char *nearest_of(const char *word, const char *const *names, int count) {
    const char *nearest = NULL;
    int least = 0;
    for (int i = 0; i < count; i++) {
        int d = distance(word, names[i]);
        if (!nearest || d < least) {
            nearest = names[i];
            least = d;
        }
    }
    return nearest;
}

const char *text_near(const char *word, const char *const *names, int count) {
    const char *nearest = nearest_of(word, names, count);
    return nearest && 3 * (size_t)distance(word, nearest) <= strnlen(word, WORD_MAX) ? nearest : NULL;
}

void text_list(char *out, size_t size, const char *const *names, int count) {
    *out = 0;
    for (int i = 0; i < count; i++) {
        size_t used = strlen(out);
        snprintf(out + used, size - used, "%s%s", i ? ", " : "", names[i]);
    }
}

/* Digits in groups of three. Returns the bytes. */
static size_t group(char *out, const char *digits, size_t count) {
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0)
            out[length++] = ' ';
        out[length++] = digits[i];
    }
    return length;
}

char *text_count(int64_t value, char out[28]) {
    char digits[24];
    int count = snprintf(digits, sizeof digits, "%lld", (long long)value), sign = digits[0] == '-';
    out[0] = '-';
    out[(size_t)sign + group(out + sign, digits + sign, (size_t)(count - sign))] = 0;
    return out;
}

/* How many digits stand here if they are a whole number by itself, as a sentence has it; 0: they are not. */
static size_t whole_number(const char *sentence, const char *at) {
    size_t count = strspn(at, "0123456789"), after = count;
    if (count == 0 || count > 18 || *at == '0' || (at > sentence && !strchr(" (", at[-1])))
        return 0;
    if (at[after] && strchr(".,;:)", at[after]))
        after++;
    return at[after] && at[after] != ' ' ? 0 : count;
}

void text_counts(char *out, size_t size, const char *sentence) {
    size_t length = 0;
    for (const char *at = sentence; *at && length + 28 < size;) {
        size_t digits = whole_number(sentence, at);
        if (digits > 3)
            length += group(out + length, at, digits);
        else
            out[length++] = *at;
        at += digits > 3 ? digits : 1;
    }
    if (size > 0)
        out[length] = 0;
}
