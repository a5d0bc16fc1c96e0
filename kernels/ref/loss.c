/* Softmax cross-entropy. Exponentials and their sum are made in double in both builds: there are few, and the
 * loss is what people look at. */
#include "kernels/ref/operation.h"

#include <math.h>

/* Returns the loss of one image; p and d may be NULL. */
static double image_loss(const real *logits, int classes, int label, double scale, real *p, real *d) {
    double largest = logits[0], sum = 0;
    for (int c = 1; c < classes; c++)
        largest = logits[c] > largest ? logits[c] : largest;
    for (int c = 0; c < classes; c++)
        sum += exp(logits[c] - largest);
    for (int c = 0; c < classes; c++) {
        double probability = exp(logits[c] - largest) / sum;
        if (p)
            p[c] = (real)probability;
        if (d)
            d[c] = (real)((probability - (c == label)) * scale);
    }
    return log(sum) + largest - logits[label];
}

enum status REF(loss)(struct stream *stream, const struct loss_args *a) {
    (void)stream;
    if (a->images < 1 || a->classes < 1)
        return status_fail(STATUS_INTERNAL, "loss of %d images with %d classes", a->images, a->classes);
    size_t bytes = (size_t)a->images * (size_t)a->classes * sizeof(real);
    STATUS_TRY(REF(need)(a->logits, bytes, "the logits"));
    STATUS_TRY(REF(need)(a->losses, (size_t)a->images * sizeof(real), "the losses"));
    if (a->probabilities.data)
        STATUS_TRY(REF(need)(a->probabilities, bytes, "the probabilities"));
    if (a->dlogits.data)
        STATUS_TRY(REF(need)(a->dlogits, bytes, "the logits' gradient"));
    for (int n = 0; n < a->images; n++)
        if (a->labels[n] < 0 || a->labels[n] >= a->classes)
            return status_fail(STATUS_INTERNAL, "label %d of image %d: expected 0 to %d", (int)a->labels[n],
                               n, a->classes - 1);
    for (int n = 0; n < a->images; n++) {
        size_t at = (size_t)n * a->classes;
        real *p = a->probabilities.data, *d = a->dlogits.data;
        ((real *)a->losses.data)[n] =
            (real)image_loss((const real *)a->logits.data + at, a->classes, a->labels[n], a->scale,
                             p ? p + at : NULL, d ? d + at : NULL);
    }
    return STATUS_OK;
}
