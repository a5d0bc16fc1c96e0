#include "tui/picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/base64.h"
#include "tui/rune.h"

enum { MOST_SIDE = 256, MOST_CHANNELS = 4 };

void picture_fit(int64_t width, int64_t height, int rows, int cols, int *out_rows, int *out_cols) {
    *out_rows = *out_cols = 0;
    if (width <= 0 || height <= 0 || rows <= 0 || cols <= 0)
        return;
    double scale = fmin(1, fmin((double)cols / (double)width, 2.0 * rows / (double)height));
    *out_cols = (int)fmax(1, floor((double)width * scale + 1e-9));
    *out_rows = (int)fmax(1, floor((double)height * scale / 2 + 1e-9));
}

struct pixels {
    const uint8_t *bytes; /* height x width x channels */
    int width, height, channels;
};

/* The mean of the pixels under a part of the picture, 0..255 by channel. */
static void average(const struct pixels *p, double from_row, double to_row, double from_col, double to_col,
                    double out[3]) {
    int r0 = (int)from_row, r1 = (int)ceil(to_row), c0 = (int)from_col, c1 = (int)ceil(to_col);
    r1 = r1 > p->height ? p->height : r1 <= r0 ? r0 + 1 : r1;
    c1 = c1 > p->width ? p->width : c1 <= c0 ? c0 + 1 : c1;
    double sum[3] = {0, 0, 0};
    for (int r = r0; r < r1; r++)
        for (int c = c0; c < c1; c++)
            for (int k = 0; k < 3; k++)
                sum[k] += p->bytes[(r * p->width + c) * p->channels + (p->channels >= 3 ? k : 0)];
    for (int k = 0; k < 3; k++)
        out[k] = sum[k] / ((r1 - r0) * (c1 - c0));
}

static double brightness(const double rgb[3]) {
    return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
}

/* Of the grey ramp when it is nearly grey, else of the cube. */
static int tone_of(const double rgb[3]) {
    double spread = fmax(rgb[0], fmax(rgb[1], rgb[2])) - fmin(rgb[0], fmin(rgb[1], rgb[2]));
    if (spread < 12)
        return (int)lround(brightness(rgb) / 255 * (TONE_GREYS - 1));
    int level[3];
    for (int k = 0; k < 3; k++)
        level[k] = rgb[k] < 48 ? 0 : rgb[k] < 135 ? 1 : rgb[k] < 215 ? 2 : 3;
    return TONE_GREYS + 16 * level[0] + 4 * level[1] + level[2];
}

static void draw(struct canvas *canvas, struct box box, const struct pixels *p, int rows, int cols) {
    static const char ramp[] = " .:-=+*#%@";
    double down = (double)p->height / (2 * rows), across = (double)p->width / cols;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++) {
            double top[3], bottom[3];
            average(p, 2 * r * down, (2 * r + 1) * down, c * across, (c + 1) * across, top);
            average(p, (2 * r + 1) * down, (2 * r + 2) * down, c * across, (c + 1) * across, bottom);
            if (canvas->glyphs == GLYPHS_ASCII) {
                int step = (int)lround((brightness(top) + brightness(bottom)) / 2 / 255 * 9);
                canvas_put(canvas, box.row + r, box.col + c, (uint32_t)ramp[step], STYLE_PLAIN);
            } else {
                canvas_put(canvas, box.row + r, box.col + c, RUNE_UPPER_HALF,
                           style_tones(tone_of(top), tone_of(bottom)));
            }
        }
}

bool picture_draw(struct canvas *canvas, struct box box, const struct event_image *image, int *cols_taken) {
    int rows, cols;
    picture_fit(image->width, image->height, box.rows, box.cols, &rows, &cols);
    if (cols_taken)
        *cols_taken = cols;
    if (rows == 0 || !image->pixels || image->width > MOST_SIDE || image->height > MOST_SIDE ||
        image->channels < 1 || image->channels > MOST_CHANNELS)
        return false;
    size_t size = (size_t)image->width * (size_t)image->height * (size_t)image->channels;
    uint8_t *bytes = malloc(size + 3);
    if (!bytes)
        return false;
    bool whole = base64_decode(image->pixels, bytes, size) == (long)size;
    struct pixels pixels = {bytes, (int)image->width, (int)image->height, (int)image->channels};
    if (whole)
        draw(canvas, box, &pixels, rows, cols);
    free(bytes);
    return whole;
}
