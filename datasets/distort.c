/* Every distortion here is linear in the pixels. With m_c and v_c the mean and variance of channel c over the
 * cut-out, b the brightness and k the contrast, an image after both is k (x - m_c) + m_c + b, whose mean and
 * variance over all channels follow from the m_c and v_c alone. So an image takes two passes: one of exact
 * integer sums over bytes, one that writes (x - m_c) scale + offset_c. The sums being integers, the result is
 * the same whatever the width of the vectors. */
#include "datasets/distort.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/random.h"

enum {
    COLUMNS = 32, /* pixels of a row handled together */
    CHANNELS = 4, /* the most an image can have */
    LANES = COLUMNS * CHANNELS,
    ROWS = 256, /* rows summed before they are added up: 256 * 255 fits into 16 bits, its squares into 32 */
};

static const struct {
    const char *word;
    unsigned bit;
} words[] = {
    {"crop", DISTORT_CROP},
    {"flip", DISTORT_FLIP},
    {"brightness", DISTORT_BRIGHTNESS},
    {"contrast", DISTORT_CONTRAST},
};
enum {
    WORDS = sizeof words / sizeof *words,
    ALL = DISTORT_CROP | DISTORT_FLIP | DISTORT_BRIGHTNESS | DISTORT_CONTRAST
};

enum status distort_parse(const char *text, unsigned *distortions) {
    if (!strcmp(text, "on") || !strcmp(text, "off")) {
        *distortions = text[1] == 'n' ? ALL : 0;
        return STATUS_OK;
    }
    unsigned bits = 0;
    for (const char *from = text;; from++) {
        size_t length = strcspn(from, ",");
        int found = -1;
        for (int i = 0; i < WORDS; i++)
            if (strlen(words[i].word) == length && !memcmp(words[i].word, from, length))
                found = i;
        if (found < 0)
            return status_fail(STATUS_BAD_INPUT,
                               "distort: \"%.*s\" is no distortion; on, off or a comma list of crop, flip, "
                               "brightness, contrast is expected",
                               (int)(length > 40 ? 40 : length), from);
        bits |= words[found].bit;
        from += length;
        if (!*from)
            break;
    }
    *distortions = bits;
    return STATUS_OK;
}

void distort_format(unsigned distortions, char out[64]) {
    int used = 0;
    if (distortions == 0 || distortions == ALL) {
        snprintf(out, 64, "%s", distortions ? "on" : "off");
        return;
    }
    for (int i = 0; i < WORDS; i++)
        if (distortions & words[i].bit)
            used += snprintf(out + used, 64 - (size_t)used, "%s%s", used ? "," : "", words[i].word);
}

/* Uniform over 0..n-1 from one 32-bit number; n is a few hundred at most, so that the bias is below 1e-7. */
static int scaled(uint32_t number, int n) {
    return (int)((uint64_t)number * (uint32_t)n >> 32);
}

static float uniform(uint32_t number, float low, float high) {
    return low + (high - low) * ((float)(number >> 8) * 0x1p-24f);
}

struct distortion_draw distort_draw(const struct image_set *set, const struct distort_options *options,
                                    int64_t sample, int64_t epoch) {
    /* Each draw has its own place in the stream: turning one distortion off leaves the others as they were.
     */
    uint32_t first[4], second[4];
    struct random_key key =
        random_key(options->seed, RANDOM_DISTORT, (uint64_t)epoch << 32 | (uint32_t)sample);
    random_block(&key, 0, first);
    random_block(&key, 1, second);
    int above = set->shape.h - options->size, beside = set->shape.w - options->size;
    struct distortion_draw draw = {.top = above / 2, .left = beside / 2, .contrast = 1};
    if (options->distortions & DISTORT_CROP) {
        draw.top = scaled(first[0], above + 1);
        draw.left = scaled(first[1], beside + 1);
    }
    if (options->distortions & DISTORT_FLIP)
        draw.flip = first[2] >> 31;
    if (options->distortions & DISTORT_BRIGHTNESS)
        draw.brightness = uniform(first[3], -63, 63);
    if (options->distortions & DISTORT_CONTRAST)
        draw.contrast = uniform(second[0], 0.2f, 1.8f);
    return draw;
}

/* The cut-out of an image. */
struct window {
    const uint8_t *first; /* its first value */
    size_t stride;        /* from row to row, in values */
    int size;
};

/* What follows is compiled for any processor and for those with wider vectors: the same operations in the
 * same order, so that both give the same bytes. `channels` is known to the compiler where it is usual. */
#define PASS static inline __attribute__((always_inline)) void

/* Sums of the values and of their squares for each channel. */
PASS sum_channels(const struct window *w, const int channels, uint64_t sum[CHANNELS],
                  uint64_t square[CHANNELS]) {
    memset(sum, 0, CHANNELS * sizeof *sum);
    memset(square, 0, CHANNELS * sizeof *square);
    for (int column = 0; column < w->size; column += COLUMNS)
        for (int row = 0; row < w->size; row += ROWS) {
            uint32_t lane_square[LANES] = {0};
            uint16_t lane_sum[LANES] = {0};
            int values = (w->size - column < COLUMNS ? w->size - column : COLUMNS) * channels;
            int rows = w->size - row < ROWS ? w->size - row : ROWS;
            const uint8_t *x = w->first + (size_t)row * w->stride + (size_t)(column * channels);
            for (int r = 0; r < rows; r++, x += w->stride)
                for (int i = 0; i < values; i++) {
                    lane_sum[i] = (uint16_t)(lane_sum[i] + x[i]);
                    lane_square[i] += (uint32_t)(x[i] * x[i]);
                }
            for (int i = 0; i < values; i += channels)
                for (int c = 0; c < channels; c++) {
                    sum[c] += lane_sum[i + c];
                    square[c] += lane_square[i + c];
                }
        }
}

PASS reverse_row(uint8_t *restrict to, const uint8_t *restrict from, int size, const int channels) {
    const uint8_t *last = from + (size_t)(size - 1) * (size_t)channels;
    for (int i = 0; i < size; i++, to += channels, last -= channels)
        memcpy(to, last, (size_t)channels);
}

/* out = (x - centre[c]) * scale + offset[c], rows from right to left when `flip`. */
PASS write_values(const struct window *w, const int channels, bool flip, const float centre[CHANNELS],
                  float scale, const float offset[CHANNELS], float *restrict out) {
    float centres[LANES], offsets[LANES];
    uint8_t reversed[LANES];
    for (int i = 0; i < COLUMNS * channels; i += channels)
        for (int c = 0; c < channels; c++) {
            centres[i + c] = centre[c];
            offsets[i + c] = offset[c];
        }
    for (int row = 0; row < w->size; row++)
        for (int column = 0; column < w->size; column += COLUMNS) {
            int pixels = w->size - column < COLUMNS ? w->size - column : COLUMNS, values = pixels * channels;
            int from = flip ? w->size - column - pixels : column;
            const uint8_t *x = w->first + (size_t)row * w->stride + (size_t)(from * channels);
            if (flip) {
                reverse_row(reversed, x, pixels, channels);
                x = reversed;
            }
            for (int i = 0; i < values; i++)
                out[i] = ((float)x[i] - centres[i]) * scale + offsets[i];
            out += values;
        }
}

PASS distort_channels(const struct image_set *set, const int channels, int64_t sample, int size,
                      const struct distortion_draw *draw, float *out) {
    size_t stride = (size_t)set->shape.w * (size_t)channels;
    const uint8_t *image = set->pixels + (size_t)sample * shape_size(set->shape);
    struct window w = {image + (size_t)draw->top * stride + (size_t)(draw->left * channels), stride, size};
    uint64_t sum[CHANNELS], square[CHANNELS];
    sum_channels(&w, channels, sum, square);
    double n = (double)size * size, mean[CHANNELS], all = 0, within = 0, between = 0;
    for (int c = 0; c < channels; c++) {
        mean[c] = (double)sum[c] / n;
        all += mean[c] / channels;
        within += ((double)square[c] - (double)sum[c] * (double)sum[c] / n) / (n * channels);
    }
    for (int c = 0; c < channels; c++)
        between += (mean[c] - all) * (mean[c] - all) / channels;
    double contrast = draw->contrast, deviation = sqrt(contrast * contrast * within + between);
    double least = 1 / sqrt(n * channels), divisor = deviation > least ? deviation : least;
    /* The brightness moves every value and the mean alike, so it ends where standardising begins. */
    float centre[CHANNELS], offset[CHANNELS];
    for (int c = 0; c < channels; c++) {
        centre[c] = (float)mean[c];
        offset[c] = (float)((mean[c] - all) / divisor);
    }
    write_values(&w, channels, draw->flip, centre, (float)(contrast / divisor), offset, out);
}

PASS distort_inline(const struct image_set *set, int64_t sample, int size, const struct distortion_draw *draw,
                    float *out) {
    switch (set->shape.c) {
    case 1:
        distort_channels(set, 1, sample, size, draw, out);
        break;
    case 3:
        distort_channels(set, 3, sample, size, draw, out);
        break;
    default:
        distort_channels(set, set->shape.c, sample, size, draw, out);
    }
}

static void distort_any(const struct image_set *set, int64_t sample, int size,
                        const struct distortion_draw *draw, float *out) {
    distort_inline(set, sample, size, draw, out);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void distort_avx2(const struct image_set *set, int64_t sample,
                                                         int size, const struct distortion_draw *draw,
                                                         float *out) {
    distort_inline(set, sample, size, draw, out);
}
#endif

static void distort(const struct image_set *set, int64_t sample, int size, const struct distortion_draw *draw,
                    float *out) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        distort_avx2(set, sample, size, draw, out);
        return;
    }
#endif
    distort_any(set, sample, size, draw, out);
}

void distort_training(const struct image_set *set, const struct distort_options *options, int64_t sample,
                      int64_t epoch, float *out) {
    struct distortion_draw draw = distort_draw(set, options, sample, epoch);
    distort(set, sample, options->size, &draw, out);
}

void distort_evaluation(const struct image_set *set, int64_t sample, int size, float *out) {
    const struct distort_options none = {.size = size};
    struct distortion_draw draw = distort_draw(set, &none, sample, 0);
    distort(set, sample, size, &draw, out);
}
