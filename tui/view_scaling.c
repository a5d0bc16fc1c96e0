#include "tui/view_scaling.h"

#include <math.h>
#include <stdio.h>

#include "engine/base/memory.h"
#include "tui/format.h"
#include "tui/rune.h"

static const double LATENCY_MS = 0.02;
static const int64_t IMAGES_MOST = INT64_C(1) << 40; /* a step of more is none that an engine told */

void scaling_measure(struct scaling *out, const struct run_state *state) {
    const struct event_step *step = &state->step.step;
    *out = (struct scaling){.latency_ms = LATENCY_MS};
    if (state->step.kind != EVENT_STEP || state->run_start.kind != EVENT_RUN_START || step->tower_count <= 0)
        return;
    double ms = 0, images = 0;
    for (int64_t k = 0; k < step->tower_count; k++) {
        ms += step->towers[k].forward_ms + step->towers[k].backward_ms;
        images += (double)step->towers[k].images;
    }
    out->image_ms = ms / images;
    out->update_ms = step->update_ms;
    out->bytes = 4 * (double)state->run_start.run_start.parameters;
    /* the averaging reads every tower's gradient and writes one */
    out->bandwidth = ((double)step->tower_count + 1) * out->bytes / step->average_ms;
    out->images = step->images;
    out->towers = step->tower_count;
    out->known = out->images > 0 && out->images <= IMAGES_MOST && isfinite(out->image_ms) &&
                 out->image_ms > 0 && isfinite(out->update_ms) && isfinite(out->bandwidth) &&
                 out->bandwidth > 0;
}

double scaling_step(const struct scaling *s, int64_t towers, int64_t images) {
    double n = (double)towers, shard = ceil((double)images / n);
    double ring = 2 * (n - 1) / n * s->bytes / s->bandwidth + 2 * (n - 1) * s->latency_ms;
    return shard * s->image_ms + ring + s->update_ms;
}

/* What the noise scale says of a larger batch. */
static enum style noise_words(const struct scene *scene, int64_t images, char *out, size_t size) {
    double noise = scene->shown->have ? scene->shown->step.noise_scale : wire_unknown();
    char text[FORMAT_SIZE], batch[FORMAT_SIZE];
    format_short(text, noise, 2);
    format_count(batch, images);
    if (!isfinite(noise) || noise <= 0) {
        snprintf(out, size, "noise scale not known yet: it wants two towers and some steps");
        return STYLE_FAINT;
    }
    snprintf(out, size, "noise scale \u2248 %s images, batch %s: a larger one %s", text, batch,
             (double)images < noise ? "still saves steps" : "saves few steps");
    return STYLE_PLAIN;
}

/* Columns of the table's halves. */
enum { FIXED_COLS = 27, GROWING_COLS = 31 };

/* A share of 1 as "47 %", in nine columns. */
static void percent(char out[FORMAT_SIZE], double share) {
    char text[FORMAT_SIZE];
    if (!isfinite(share))
        snprintf(text, sizeof text, "\u2013");
    else if (share < 0.005)
        snprintf(text, sizeof text, "< 1 %%");
    else
        snprintf(text, sizeof text, "%.0f %%", 100 * share);
    snprintf(out, FORMAT_SIZE, "%*s%.20s", 9 - text_width(text) > 0 ? 9 - text_width(text) : 0, "", text);
}

static void draw_row(const struct scene *scene, const struct scaling *s, int row, int col, bool both,
                     int64_t n) {
    int64_t shard = (s->images + s->towers - 1) / s->towers;
    double one = scaling_step(s, 1, s->images), fixed = scaling_step(s, n, s->images);
    double alone = scaling_step(s, 1, shard), grown = scaling_step(s, n, n * shard);
    bool here = n == s->towers, beyond = n > s->images;
    char a[FORMAT_SIZE], b[FORMAT_SIZE], c[FORMAT_SIZE], d[FORMAT_SIZE], batch[FORMAT_SIZE],
        towers[FORMAT_SIZE];
    format_fixed(a, beyond ? wire_unknown() : fixed, 9, 2);
    percent(b, beyond ? wire_unknown() : one / (fixed * (double)n));
    format_fixed(c, grown, 9, 2);
    percent(d, alone / grown);
    format_count(batch, n * shard);
    format_count(towers, n);
    enum style style = here ? STYLE_STRONG : STYLE_PLAIN;
    if (here)
        canvas_put(scene->canvas, row, col, RUNE_RIGHT, style);
    canvas_print(scene->canvas, row, col + 1, FIXED_COLS, style, "%6s %s %s", towers, a, b);
    if (both)
        canvas_print(scene->canvas, row, col + FIXED_COLS, GROWING_COLS, style, "%11s %s %s", batch, c, d);
}

static size_t whole_bytes(double bytes) {
    return bytes > 0 && bytes < 0x1p63 ? (size_t)bytes : 0;
}

/* What was measured, the noise scale first; returns the row below. */
static int draw_measured(const struct scene *scene, const struct scaling *s, struct box box) {
    char image[FORMAT_SIZE], bytes[32], rate[32], text[200];
    enum style style = noise_words(scene, s->images, text, sizeof text);
    int rows = canvas_paragraph(scene->canvas, box, style, text);
    box.row += rows;
    box.rows -= rows;
    format_short(image, s->image_ms, 3);
    snprintf(text, sizeof text,
             box.cols >= 90 ? "%s ms an image, %s averaged at %s/s in memory, %.2f ms a message (assumed)"
                            : "%s ms an image, %s at %s/s, %.2f ms a message (assumed)",
             image, memory_words(whole_bytes(s->bytes), bytes),
             memory_words(whole_bytes(s->bandwidth * 1000), rate), s->latency_ms);
    return box.row + canvas_paragraph(scene->canvas, box, STYLE_PLAIN, text);
}

/* The table, from `row` on; returns the row below. */
static int draw_table(const struct scene *scene, const struct scaling *s, struct box box) {
    struct canvas *canvas = scene->canvas;
    bool both = box.cols >= FIXED_COLS + GROWING_COLS;
    int row = box.row, end = box.row + box.rows;
    canvas_text(canvas, row++, box.col, box.cols, STYLE_STRONG,
                both ? "         fixed batch          growing batch" : "         fixed batch");
    canvas_text(canvas, row++, box.col, box.cols, STYLE_FAINT,
                both ? " towers   step ms efficient      batch   step ms efficient"
                     : " towers   step ms efficient");
    for (int64_t n = 1; n <= 1024 && row < end && (both || n <= s->images); n *= 2)
        draw_row(scene, s, row++, box.col, both, n);
    return row;
}

void scaling_draw(const struct scene *scene, struct box body) {
    static const char formula[] =
        "step = shard \u00d7 ms + 2(N\u22121)/N \u00d7 bytes/bandwidth + 2(N\u22121) "
        "\u00d7 latency + update";
    static const char fixed[] =
        "fixed: the same steps in less time; growing: fewer, less noisy steps an epoch";
    struct scaling s;
    struct canvas *canvas = scene->canvas;
    int margin = body.cols >= 24 ? 1 : 0;
    struct box box = {body.row, body.col + margin, body.rows, body.cols - 2 * margin};
    int end = body.row + body.rows;
    scaling_measure(&s, scene->state);
    canvas_clip(canvas, body);
    if (!s.known) {
        canvas_paragraph(canvas, (struct box){box.row + box.rows / 3, box.col, box.rows / 2, box.cols},
                         STYLE_FAINT, "the times of a step are not known here: nothing can be worked out");
        canvas_clip(canvas, canvas_whole(canvas));
        return;
    }
    const char *source =
        box.cols >= 90 ? "ring all-reduce: Patarasuk, Yuan 2009; Thakur et al. 2005; a device for each tower"
                       : "ring all-reduce: Patarasuk, Yuan 2009; Thakur et al. 2005; a device a tower";
    bool narrow = text_width(source) > box.cols || text_width(formula) > box.cols;
    box.row = draw_measured(scene, &s, box);
    if (!narrow) {
        canvas_text(canvas, box.row++, box.col, box.cols, STYLE_FAINT, formula);
        canvas_text(canvas, box.row++, box.col, box.cols, STYLE_FAINT, source);
    }
    box.row += body.rows >= 20;
    box.rows = end - box.row;
    box.row = draw_table(scene, &s, box);
    const char *const below[] = {fixed, narrow ? formula : "", narrow ? source : ""};
    for (int i = 0; i < 3; i++) { /* what finds room whole */
        int rows = text_rows(below[i], box.cols);
        box.rows = end - box.row - 1;
        if (rows == 0 || rows > box.rows)
            continue;
        canvas_paragraph(canvas, (struct box){box.row + 1, box.col, rows, box.cols}, STYLE_FAINT, below[i]);
        box.row += 1 + rows;
    }
    canvas_clip(canvas, canvas_whole(canvas));
}
