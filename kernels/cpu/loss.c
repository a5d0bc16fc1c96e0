/* Softmax cross-entropy. Exponentials are the C library's: a batch has a thousand or so, a hundredth of a per
 * cent of a step, and they are the same on every instruction set. */
#include "kernels/cpu/impl.h"

#include <math.h>

/* Returns the loss of one image; p and d may be NULL. */
static float image_loss(const float *logits, int classes, int label, float scale, float *p, float *d) {
    float largest = logits[0];
    double sum = 0;
    for (int c = 1; c < classes; c++)
        largest = logits[c] > largest ? logits[c] : largest;
    for (int c = 0; c < classes; c++)
        sum += (double)expf(logits[c] - largest);
    float inverse = (float)(1 / sum);
    for (int c = 0; (p || d) && c < classes; c++) {
        float probability = expf(logits[c] - largest) * inverse;
        if (p)
            p[c] = probability;
        if (d)
            d[c] = (probability - (float)(c == label)) * scale;
    }
    return (float)(log(sum) + (double)largest - (double)logits[label]);
}

static enum status check_bytes(struct span span, size_t bytes, bool needed, const char *what) {
    if (span.data ? span.bytes >= bytes : !needed)
        return STATUS_OK;
    return status_fail(STATUS_INTERNAL, "%s: %zu bytes, expected %zu", what, span.data ? span.bytes : 0,
                       bytes);
}

enum status cpu_loss(struct stream *stream, const struct loss_args *args) {
    (void)stream;
    if (args->images < 1 || args->classes < 1)
        return status_fail(STATUS_INTERNAL, "loss of %d images with %d classes", args->images, args->classes);
    size_t bytes = (size_t)args->images * (size_t)args->classes * sizeof(float);
    STATUS_TRY(check_bytes(args->logits, bytes, true, "the logits"));
    STATUS_TRY(check_bytes(args->losses, (size_t)args->images * sizeof(float), true, "the losses"));
    STATUS_TRY(check_bytes(args->probabilities, bytes, false, "the probabilities"));
    STATUS_TRY(check_bytes(args->dlogits, bytes, false, "the logits' gradient"));
    for (int n = 0; n < args->images; n++)
        if (args->labels[n] < 0 || args->labels[n] >= args->classes)
            return status_fail(STATUS_INTERNAL, "label %d of image %d: expected 0 to %d",
                               (int)args->labels[n], n, args->classes - 1);
    float *p = args->probabilities.data, *d = args->dlogits.data, *losses = args->losses.data;
    for (int n = 0; n < args->images; n++) {
        size_t at = (size_t)n * (size_t)args->classes;
        losses[n] = image_loss((const float *)args->logits.data + at, args->classes, args->labels[n],
                               (float)args->scale, p ? p + at : NULL, d ? d + at : NULL);
    }
    return STATUS_OK;
}
