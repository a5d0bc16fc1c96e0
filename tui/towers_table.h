/* The rows of the Towers screen. */
#ifndef TOWERSCOPE_TUI_TOWERS_TABLE_H
#define TOWERSCOPE_TUI_TOWERS_TABLE_H

#include "tui/layout.h"
#include "tui/scene.h"

struct towers_table {
    const struct towers_layout *at;
    const int *order; /* the towers that are shown, by number */
    int count, first; /* how many, and the first of those that scroll */
    int selected;     /* a tower to name (it strays); -1: none */
    int digits;       /* of the highest tower number */
};

/* Heads, tower rows, rule and averaged row. Before the first step the figures are dashes. */
void towers_table_draw(const struct scene *scene, const struct towers_table *table);

#endif
