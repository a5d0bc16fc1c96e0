#include "tui/scroll.h"

enum { FAR = 1 << 20 };

bool scroll_act(int *first, int page, enum action action) {
    switch (action) {
    case ACTION_UP:
        --*first;
        return true;
    case ACTION_DOWN:
        ++*first;
        return true;
    case ACTION_PAGE_UP:
        *first -= page;
        return true;
    case ACTION_PAGE_DOWN:
        *first += page;
        return true;
    case ACTION_HOME:
        *first = 0;
        return true;
    case ACTION_END:
        *first = FAR;
        return true;
    default:
        return false;
    }
}

int scroll_within(int first, int most) {
    return first > most ? (most > 0 ? most : 0) : first < 0 ? 0 : first;
}
