#include "tui/palette.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of the 256 colours, the tower's hue and the same hue for the background, on dark and on light
 * ground. The hues are those of Okabe and Ito, "Color universal design", 2008, brought near. */
struct hue {
    short dark, dark_faint, light, light_faint;
};

static const struct hue safe[TOWER_HUES] = {
    {74, 24, 31, 117},    {214, 94, 172, 222}, {36, 23, 29, 115},   {175, 96, 132, 182},
    {227, 101, 100, 186}, {32, 25, 25, 110},   {166, 88, 130, 216}, {250, 240, 240, 250},
};
static const struct hue bright[TOWER_HUES] = {
    {81, 30, 26, 111},   {203, 95, 160, 217}, {119, 65, 28, 114},   {219, 97, 127, 177},
    {221, 94, 136, 179}, {75, 25, 19, 105},   {209, 130, 166, 209}, {231, 243, 236, 249},
};
static const struct hue grey[TOWER_HUES] = {
    {255, 241, 232, 250}, {250, 239, 238, 248}, {245, 237, 244, 252}, {253, 240, 235, 249},
    {247, 238, 241, 251}, {254, 241, 233, 250}, {248, 239, 239, 248}, {251, 240, 236, 249},
};

/* Of the eight: cyan, yellow, green, magenta, blue, red, white, and the terminal's own. */
static const short eight[TOWER_HUES] = {6, 3, 2, 5, 4, 1, 7, -1};

static struct look plain(int foreground) {
    return (struct look){foreground, -1, false, false, false};
}

static struct look tower_look(enum palette_name palette, int tower, bool faint, int colours, bool light) {
    struct look look = plain(-1);
    if (colours >= 256) {
        const struct hue *hue = &(palette == PALETTE_GREY     ? grey
                                  : palette == PALETTE_BRIGHT ? bright
                                                              : safe)[tower];
        look.foreground = light   ? (faint ? hue->light_faint : hue->light)
                          : faint ? hue->dark_faint
                                  : hue->dark;
        return look;
    }
    if (colours >= 8 && palette != PALETTE_GREY)
        look.foreground = light && eight[tower] == 7 ? -1 : eight[tower];
    look.faint = faint;
    return look;
}

/* A meaning in 256 colours on dark and on light ground, and in 8. */
static struct look meaning(int dark, int light_colour, int of_eight, int colours, bool light) {
    return plain(colours >= 256 ? (light ? light_colour : dark) : colours >= 8 ? of_eight : -1);
}

struct look palette_look(enum palette_name palette, enum style style, int colours, bool light) {
    if (style >= STYLE_TOWER)
        return tower_look(palette, (style - STYLE_TOWER) % TOWER_HUES, style >= STYLE_TOWER_FAINT, colours,
                          light);
    struct look look = plain(-1);
    switch (style) {
    case STYLE_FAINT:
        look = meaning(244, 242, -1, colours, light);
        look.faint = colours < 256;
        break;
    case STYLE_STRONG:
        look.bold = true;
        break;
    case STYLE_GOOD:
        look = meaning(71, 28, 2, colours, light);
        break;
    case STYLE_WARNING:
        look = meaning(214, 130, 3, colours, light);
        look.bold = true;
        break;
    case STYLE_ALARM:
        look = meaning(203, 160, 1, colours, light);
        look.bold = true;
        break;
    case STYLE_BANNER:
        look = meaning(231, 231, 7, colours, light);
        look.background = colours >= 256 ? 160 : colours >= 8 ? 1 : -1;
        look.bold = true;
        look.reverse = colours < 8;
        break;
    case STYLE_SELECTED:
        look.reverse = true;
        break;
    case STYLE_KEY:
        look = meaning(75, 25, 6, colours, light);
        look.bold = colours < 8;
        break;
    default:
        break;
    }
    return look;
}

short palette_tone(int tone) {
    static const short levels[4] = {0, 1, 3, 5};
    if (tone < TONE_GREYS) /* black, greys of the terminal's own ramp, white */
        return (short)(tone <= 0                ? 16
                       : tone == TONE_GREYS - 1 ? 231
                                                : 232 + (tone - 1) * 23 / (TONE_GREYS - 3));
    tone -= TONE_GREYS;
    return (short)(16 + 36 * levels[tone / 16 % 4] + 6 * levels[tone / 4 % 4] + levels[tone % 4]);
}

/* The sixteen that terminals choose themselves are given as xterm has them. */
void palette_rgb(short colour, uint8_t rgb[3]) {
    static const uint8_t steps[6] = {0, 95, 135, 175, 215, 255};
    for (int k = 0; k < 3; k++) {
        if (colour >= 232)
            rgb[k] = (uint8_t)(8 + 10 * (colour - 232));
        else if (colour >= 16)
            rgb[k] = steps[(colour - 16) / (k == 0 ? 36 : k == 1 ? 6 : 1) % 6];
        else
            rgb[k] = (uint8_t)((colour >> k & 1) * (colour >= 8 ? 255 : 205));
    }
}

int palette_number(int colour, int colours) {
    uint8_t rgb[3];
    if (colours < 1 << 24 || colour < 8)
        return colour;
    palette_rgb((short)colour, rgb);
    return rgb[0] << 16 | rgb[1] << 8 | rgb[2];
}

bool palette_light(const char *colorfgbg) {
    const char *last = colorfgbg ? strrchr(colorfgbg, ';') : NULL;
    if (!last || last[1] < '0' || last[1] > '9')
        return false;
    int background = atoi(last + 1);
    return background == 7 || (background >= 9 && background <= 15);
}
