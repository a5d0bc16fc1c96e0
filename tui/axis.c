#include "tui/axis.h"

#include <math.h>

#include "engine/wire/event.h"

/* The least of 1, 2, 5, 10, ... times a power of ten that is not below x. */
static double round_up(double x) {
    double power = pow(10, floor(log10(x)));
    static const double steps[] = {1, 2, 5, 10};
    for (int i = 0; i < 4; i++)
        if (x <= steps[i] * power * (1 + 1e-9))
            return steps[i] * power;
    return 10 * power;
}

static double log_round(double x, bool up) {
    double power = pow(10, floor(log10(x) + 1e-9));
    static const double steps[] = {1, 2, 5, 10};
    if (up)
        return round_up(x);
    for (int i = 3; i > 0; i--)
        if (x >= steps[i] * power * (1 - 1e-9))
            return steps[i] * power;
    return power;
}

struct axis axis_values(double low, double high, int ticks, bool logarithmic) {
    struct axis axis = {.log = logarithmic};
    ticks = ticks < 1 ? 1 : ticks;
    if (!isfinite(low) || !isfinite(high) || low > high)
        low = 0, high = 1;
    if (logarithmic) {
        if (!(high > 0))
            low = high = 1;
        if (!(low > 0))
            low = high / 1000;
        axis.low = log_round(low, false);
        axis.high = log_round(high, true);
        if (!(axis.low < axis.high))
            axis.high = axis.low * 10;
        return axis;
    }
    double span = high - low, size = fmax(fabs(low), fabs(high));
    if (!(span > size * 1e-9))
        span = size > 0 ? size * 0.1 : 1;
    axis.tick = round_up(span / ticks);
    double grain = axis.tick / 2; /* of the ends: finer than the ticks, so that curves fill the plot */
    axis.low = floor(low / grain + 1e-9) * grain;
    axis.high = ceil(high / grain - 1e-9) * grain;
    if (!(axis.low < axis.high))
        axis.high = axis.low + axis.tick;
    return axis;
}

/* Lengths an axis of steps may have: ten a decade, so that a curve fills at least four fifths of it; three a
 * decade below a thousand, where a young run would jump with every breath. */
static double length_up(double x) {
    static const double lengths[] = {1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.4, 8, 10};
    double power = pow(10, floor(log10(x)));
    if (x < 1000)
        return round_up(x);
    for (int i = 0; i < 11; i++)
        if (x <= lengths[i] * power * (1 + 1e-9))
            return lengths[i] * power;
    return 10 * power;
}

struct axis axis_steps(int64_t first, int64_t last, int64_t window, int64_t planned, bool ended) {
    struct axis axis = {0};
    double begin = (double)first, end = (double)last;
    if (end < begin)
        end = begin;
    if (window > 0 && end - begin > (double)window) {
        /* The window jumps by a quarter of itself. */
        double jump = fmax(floor((double)window / 4), 1);
        axis.high = ended ? end : ceil(end / jump) * jump;
        axis.low = fmax(axis.high - (double)window, begin);
    } else {
        axis.low = begin;
        axis.high = ended ? end : begin - 1 + fmax(length_up(fmax(end - begin + 1, 1)), 20);
        if (planned != WIRE_UNKNOWN_INT && planned >= last && axis.high > (double)planned)
            axis.high = (double)planned;
    }
    if (axis.high < axis.low + 1)
        axis.high = axis.low + 1;
    if (!(axis.high > axis.low)) /* steps that only a foreign record has */
        axis.high = nextafter(axis.low, INFINITY);
    axis.tick = round_up((axis.high - axis.low) / 5);
    if (axis.tick < 1)
        axis.tick = 1;
    return axis;
}

double axis_place(const struct axis *axis, double value) {
    if (!axis->log)
        return (value - axis->low) / (axis->high - axis->low);
    if (!(value > 0))
        return -1;
    return (log(value) - log(axis->low)) / (log(axis->high) - log(axis->low));
}

int axis_ticks(const struct axis *axis, double *out, int max) {
    int n = 0;
    if (!axis->log) {
        double first = ceil(axis->low / axis->tick - 1e-9);
        for (int i = 0; n < max && i < 1000; i++) {
            double value = (first + i) * axis->tick;
            if (value > axis->high * (1 + 1e-12) + axis->tick * 1e-9)
                break;
            out[n++] = fabs(value) < axis->tick * 1e-9 ? 0 : value;
        }
        return n;
    }
    /* Ones, twos and fives of each decade; only the ones over more than three decades. */
    bool ones = axis->high / axis->low > 1001;
    static const double steps[] = {1, 2, 5};
    for (double power = pow(10, floor(log10(axis->low) + 1e-9)); power <= axis->high * (1 + 1e-9);
         power *= 10)
        for (int i = 0; i < (ones ? 1 : 3) && n < max; i++) {
            double value = steps[i] * power;
            if (value >= axis->low * (1 - 1e-9) && value <= axis->high * (1 + 1e-9))
                out[n++] = value;
        }
    return n;
}
