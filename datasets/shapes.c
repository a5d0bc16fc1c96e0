/* A shape is given by its signed distance in pixels from the outline (negative inside), exact near the
 * outline, where the coverage of a pixel is taken from it. Place, size, angle, stroke and colours vary; none
 * of them says anything about the class, so that a linear model, which can only add up pixels, gets about one
 * in three right. The shape is always the lighter, and stays whole in nearly every cut-out of 24x24. */
#include "datasets/shapes.h"

#include <endian.h>
#include <string.h>

#include "engine/base/random.h"

const char *const shape_names[SHAPE_KINDS] = {"disc",  "ring", "square",   "frame", "triangle",
                                              "cross", "star", "crescent", "bar",   "corner"};

struct pose {
    float x, y, cosine, sine; /* centre, angle */
    float radius, stroke;     /* half the size; half the width of lines */
};

static inline float least(float a, float b) {
    return a < b ? a : b;
}

static inline float most(float a, float b) {
    return a > b ? a : b;
}

static inline float magnitude(float a) {
    return a < 0 ? -a : a;
}

/* Right on the circle to first order, and without a root. */
static inline float disc(float u, float v, float radius) {
    return (u * u + v * v - radius * radius) * (0.5f / radius);
}

static inline float box(float u, float v, float half_width, float half_height) {
    return most(magnitude(u) - half_width, magnitude(v) - half_height);
}

static inline float triangle(float u, float v, float radius) {
    float inner = 0.5f * radius;
    return most(v, most(0.8660254f * u, -0.8660254f * u) - 0.5f * v) - inner;
}

/* A pentagram holds the points that are outside at most one of its five lines: the second largest of the
 * distances. */
static inline float star(float u, float v, float radius) {
    static const float normal[5][2] = {{0, 1},
                                       {0.9510565f, 0.3090170f},
                                       {0.5877853f, -0.8090170f},
                                       {-0.5877853f, -0.8090170f},
                                       {-0.9510565f, 0.3090170f}};
    float first = -1e9f, second = -1e9f;
    for (int i = 0; i < 5; i++) {
        float d = normal[i][0] * u + normal[i][1] * v -
                  0.4f * radius; /* 0.309 for straight lines: 0.4 is plumper */
        second = most(second, least(first, d));
        first = most(first, d);
    }
    return second;
}

/* Signed distance at (u, v), in the shape's own frame. */
static inline float distance(enum shape_kind kind, const struct pose *p, float u, float v) {
    float r = p->radius, s = p->stroke;
    switch (kind) {
    case SHAPE_DISC:
        return disc(u, v, r);
    case SHAPE_RING:
        return most(disc(u, v, r), -disc(u, v, r - 2 * s));
    case SHAPE_SQUARE:
        return box(u, v, 0.85f * r, 0.85f * r);
    case SHAPE_FRAME:
        return most(box(u, v, 0.9f * r, 0.9f * r), -box(u, v, 0.9f * r - 2 * s, 0.9f * r - 2 * s));
    case SHAPE_TRIANGLE:
        return triangle(u, v, 1.15f * r);
    case SHAPE_CROSS:
        return least(box(u, v, r, s), box(u, v, s, r));
    case SHAPE_STAR:
        return star(u, v, r);
    case SHAPE_CRESCENT:
        return most(disc(u, v, r), -disc(u - 0.55f * r, v, 0.75f * r));
    case SHAPE_BAR:
        return box(u, v, r, s);
    case SHAPE_CORNER: {
        float arm = 0.85f * r;
        return least(box(u, v + arm - s, arm, s), box(u + arm - s, v, s, arm));
    }
    case SHAPE_KINDS:
        break;
    }
    return 1;
}

/* Coverage of a row of pixels, 0..1. Called with a constant kind, so that each has a loop of its own. */
static inline void cover_row(enum shape_kind kind, const struct pose *p, int row, float *restrict cover) {
    float y = (float)row + 0.5f - p->y;
    float u0 = p->sine * y, v0 = p->cosine * y;
    for (int i = 0; i < SHAPE_SIDE; i++) {
        float x = (float)i + 0.5f - p->x;
        float d = distance(kind, p, p->cosine * x + u0, v0 - p->sine * x);
        cover[i] = most(0, least(1, 0.5f - d));
    }
}

#define COVER(kind)                                                                                          \
    case kind:                                                                                               \
        for (int row = 0; row < SHAPE_SIDE; row++)                                                           \
            cover_row(kind, pose, row, cover + row * SHAPE_SIDE);                                            \
        break

static void cover_picture(enum shape_kind kind, const struct pose *pose,
                          float cover[SHAPE_SIDE * SHAPE_SIDE]) {
    switch (kind) {
        COVER(SHAPE_DISC);
        COVER(SHAPE_RING);
        COVER(SHAPE_SQUARE);
        COVER(SHAPE_FRAME);
        COVER(SHAPE_TRIANGLE);
        COVER(SHAPE_CROSS);
        COVER(SHAPE_STAR);
        COVER(SHAPE_CRESCENT);
        COVER(SHAPE_BAR);
        COVER(SHAPE_CORNER);
    case SHAPE_KINDS:
        break;
    }
}

static float between(struct random *random, float low, float high) {
    return low + (high - low) * random_float(random);
}

/* Turn by up to `most` either way. The tangent of half the angle is drawn, which gives sine and cosine by
 * division: those of a mathematics library differ in the last bits from one to the next. */
static void turn(struct random *random, float most_half_tangent, struct pose *pose) {
    float t = between(random, -most_half_tangent, most_half_tangent);
    pose->cosine = (1 - t * t) / (1 + t * t);
    pose->sine = 2 * t / (1 + t * t);
}

struct paint {
    float ground[3], slope_x[3], slope_y[3]; /* the ground's colour and how it changes across the picture */
    float shape[3];
    float grain; /* width of the noise */
};

/* A dim ground, near grey, and a lighter shape of any tint. */
static struct paint mix_paint(struct random *random) {
    struct paint paint;
    float middle = between(random, 95, 160), half = between(random, 42, 72);
    for (int c = 0; c < 3; c++) {
        paint.ground[c] = middle - half + between(random, -8, 8);
        paint.shape[c] = middle + half + between(random, -35, 35);
        paint.slope_x[c] = between(random, -0.5f, 0.5f);
        paint.slope_y[c] = between(random, -0.5f, 0.5f);
    }
    paint.grain = between(random, 2, 8);
    return paint;
}

/* One row from its coverage; noise: a byte for each pixel. */
static void paint_row(const struct paint *paint, int row, const float *restrict cover,
                      const uint8_t *restrict noise, uint8_t *restrict pixels) {
    uint8_t plane[3][SHAPE_SIDE];
    float y = (float)row - 0.5f * SHAPE_SIDE, grain = paint->grain / 256;
    for (int c = 0; c < 3; c++) {
        float left = paint->ground[c] + paint->slope_y[c] * y - paint->slope_x[c] * 0.5f * SHAPE_SIDE;
        float slope = paint->slope_x[c], shape = paint->shape[c];
        for (int i = 0; i < SHAPE_SIDE; i++) {
            float ground = left + slope * (float)i;
            float value = ground + cover[i] * (shape - ground) + ((float)noise[i] - 127.5f) * grain;
            plane[c][i] = (uint8_t)(int)most(0, least(255, value + 0.5f));
        }
    }
    for (int i = 0; i < SHAPE_SIDE; i++) {
        pixels[3 * i] = plane[0][i];
        pixels[3 * i + 1] = plane[1][i];
        pixels[3 * i + 2] = plane[2][i];
    }
}

void shape_draw(enum shape_kind kind, uint64_t seed, uint64_t index, uint8_t *pixels) {
    enum { BLOCKS = SHAPE_SIDE / 16 };
    struct random random = random_begin(seed, RANDOM_GENERATED_DATA, index);
    struct pose pose;
    pose.x = between(&random, 14.5f, 17.5f);
    pose.y = between(&random, 14.5f, 17.5f);
    pose.radius = between(&random, 6.5f, 8.5f);
    pose.stroke = between(&random, 1.3f, 1.8f);
    turn(&random, 0.4142f, &pose); /* an eighth of a turn either way */
    struct paint paint = mix_paint(&random);
    float cover[SHAPE_SIDE * SHAPE_SIDE];
    cover_picture(kind, &pose, cover);
    uint64_t counter = random.counter;
    for (int row = 0; row < SHAPE_SIDE; row++) {
        uint32_t noise[BLOCKS][4];
        uint8_t bytes[SHAPE_SIDE];
        for (int i = 0; i < BLOCKS; i++)
            random_block(&random.key, counter++, noise[i]);
        for (int i = 0; i < SHAPE_SIDE / 4; i++) {
            /* the same picture on machines of either byte order */
            uint32_t word = htole32(noise[i / 4][i % 4]);
            memcpy(bytes + 4 * i, &word, 4);
        }
        paint_row(&paint, row, cover + row * SHAPE_SIDE, bytes, pixels + (size_t)row * 3 * SHAPE_SIDE);
    }
}
