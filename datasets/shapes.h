/* Drawing for the generated set: ten shapes, told apart by their form alone. Inside datasets/ only. */
#ifndef TOWERSCOPE_DATASETS_SHAPES_H
#define TOWERSCOPE_DATASETS_SHAPES_H

#include <stdint.h>

enum shape_kind {
    SHAPE_DISC,
    SHAPE_RING,
    SHAPE_SQUARE,
    SHAPE_FRAME,
    SHAPE_TRIANGLE,
    SHAPE_CROSS,
    SHAPE_STAR,
    SHAPE_CRESCENT,
    SHAPE_BAR,
    SHAPE_CORNER,
    SHAPE_KINDS
};

enum { SHAPE_SIDE = 32 }; /* pixels of the square picture */

extern const char *const shape_names[SHAPE_KINDS];

/* A picture is a pure function of (seed, index): 32x32 pixels, red, green, blue. */
void shape_draw(enum shape_kind kind, uint64_t seed, uint64_t index, uint8_t *pixels);

#endif
