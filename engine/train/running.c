#include "engine/train/running.h"

#include <math.h>

enum { WINDOW = 100 };

void running_update(struct running *running, double loss, double grad_norm) {
    running->steps++;
    int64_t window = running->steps < WINDOW ? running->steps : WINDOW;
    running->loss += (loss - running->loss) / (double)window;
    if (!running->any) {
        running->loss_min = running->loss_max = loss;
        running->grad_norm_max = grad_norm;
        running->any = true;
        return;
    }
    running->loss_min = fmin(running->loss_min, loss);
    running->loss_max = fmax(running->loss_max, loss);
    running->grad_norm_max = fmax(running->grad_norm_max, grad_norm);
}

void running_recorded(struct running *running) {
    running->any = false;
}

bool running_good(const struct running *running, double loss) {
    return isfinite(loss) && loss < 10 * running->loss;
}
