"""The tutorial's network in NumPy, in double, written from its description and sharing nothing with the C code.

Made so that every machine gets the same bytes: only additions, multiplications, divisions and square roots, each
on whole arrays in an order that stands here. No matrix product, no sum() and no exp() of a library, whose last
bits depend on the processor. Arrays of images are [image][row][column][channel].
"""

import math
from decimal import Context

import numpy as np

PRECISE = Context(prec=40)
RADIUS, BIAS, ALPHA = 4, 1.0, 0.001 / 9  # of the norm layers; beta is 3/4


def exact_exp(x):
    """exp(x), rounded once."""
    return float(PRECISE.exp(PRECISE.create_decimal_from_float(float(x))))


def exact_log(x):
    """log(x), rounded once."""
    return float(PRECISE.ln(PRECISE.create_decimal_from_float(float(x))))


def ordered_sum(array, axis):
    """Sum along an axis, from the first element to the last."""
    parts = np.moveaxis(array, axis, 0)
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def same_padding(size, kernel, stride):
    """Output size, padding before and after."""
    out = -(-size // stride)
    pad = max((out - 1) * stride + kernel - size, 0)
    return out, pad // 2, pad - pad // 2


# ---- convolution, stride 1

def padded(x, kernel):
    _, before, after = same_padding(x.shape[1], kernel, 1)
    return np.pad(x, ((0, 0), (before, after), (before, after), (0, 0)))


def conv(x, w):
    images, height, width, channels = x.shape
    xp = padded(x, w.shape[0])
    y = np.zeros((images, height, width, w.shape[3]))
    for u in range(w.shape[0]):
        for v in range(w.shape[1]):
            for c in range(channels):
                y += xp[:, u:u + height, v:v + width, c, None] * w[u, v, c]
    return y


def conv_weight_gradient(x, dy, kernel):
    images, height, width, outputs = dy.shape
    xp = padded(x, kernel)
    dw = np.zeros((kernel, kernel, x.shape[3], outputs))
    for n in range(images):
        for i in range(height):
            for j in range(width):
                dw += xp[n, i:i + kernel, j:j + kernel, :, None] * dy[n, i, j]
    return dw


def conv_input_gradient(w, dy):
    kernel, _, channels, outputs = w.shape
    images, height, width, _ = dy.shape
    _, before, after = same_padding(height, kernel, 1)
    dxp = np.zeros((images, height + before + after, width + before + after, channels))
    for u in range(kernel):
        for v in range(kernel):
            for o in range(outputs):
                dxp[:, u:u + height, v:v + width] += dy[..., o, None] * w[u, v, :, o]
    return dxp[:, before:before + height, before:before + width]


# ---- max pool 3x3, stride 2

def windows(x):
    """[9][image][out row][out column][channel]: the window's values in row order, -inf where there is no image."""
    out, before, after = same_padding(x.shape[1], 3, 2)
    xp = np.pad(x, ((0, 0), (before, after + 1), (before, after + 1), (0, 0)), constant_values=-np.inf)
    return np.stack([xp[:, u:u + 2 * out:2, v:v + 2 * out:2] for u in range(3) for v in range(3)])


def pool(x):
    return windows(x).max(axis=0)


def pool_gradient(x, dy):
    size, out = x.shape[1], dy.shape[1]
    _, before, after = same_padding(size, 3, 2)
    winner = windows(x).argmax(axis=0)  # the first of equals
    dxp = np.zeros((x.shape[0], size + before + after + 1, size + before + after + 1, x.shape[3]))
    for tap in range(9):
        u, v = divmod(tap, 3)
        dxp[:, u:u + 2 * out:2, v:v + 2 * out:2] += np.where(winner == tap, dy, 0.0)
    return dxp[:, before:before + size, before:before + size]


# ---- local response normalisation

def neighbours(values):
    """Sum over the channels within RADIUS, clipped at the ends."""
    channels = values.shape[-1]
    total = np.zeros_like(values)
    for shift in range(-RADIUS, RADIUS + 1):
        low, high = max(0, -shift), min(channels, channels - shift)
        total[..., low:high] += values[..., low + shift:high + shift]
    return total


def normaliser(x):
    """N and N ** -3/4."""
    n = BIAS + ALPHA * neighbours(x * x)
    root = np.sqrt(n)
    return n, 1.0 / (root * np.sqrt(root))


def norm(x):
    return x * normaliser(x)[1]


def norm_gradient(x, dy):
    n, power = normaliser(x)
    return dy * power - (2 * ALPHA * 0.75) * x * neighbours(dy * x * power / n)


# ---- dense

def dense(x, w):
    y = np.zeros((x.shape[0], w.shape[1]))
    for i in range(w.shape[0]):
        y += x[:, i, None] * w[i]
    return y


def dense_weight_gradient(x, dy):
    dw = np.zeros((x.shape[1], dy.shape[1]))
    for n in range(x.shape[0]):
        dw += x[n, :, None] * dy[n]
    return dw


def dense_input_gradient(w, dy):
    dx = np.zeros((dy.shape[0], w.shape[0]))
    for o in range(w.shape[1]):
        dx += dy[:, o, None] * w[:, o]
    return dx


# ---- the network

def relu(x):
    return np.maximum(x, 0.0)


LAYERS = ("conv1", "pool1", "norm1", "conv2", "norm2", "pool2", "local3", "local4", "softmax_linear")
PARAMETERS = tuple(f"{layer}/{kind}" for layer in ("conv1", "conv2", "local3", "local4", "softmax_linear")
                   for kind in ("weights", "biases"))
DECAY = {"local3/weights": 0.004, "local4/weights": 0.004}


def forward(p, x):
    """Outputs of all layers by name, and under "NAME/before" what went into a ReLU."""
    a = {"input": x}

    def layer(name, value, with_relu=True):
        value = value + p[name + "/biases"]
        if with_relu:
            a[name + "/before"] = value
            value = relu(value)
        a[name] = value
        return value

    layer("conv1", conv(x, p["conv1/weights"]))
    a["pool1"] = pool(a["conv1"])
    a["norm1"] = norm(a["pool1"])
    layer("conv2", conv(a["norm1"], p["conv2/weights"]))
    a["norm2"] = norm(a["conv2"])
    a["pool2"] = pool(a["norm2"])
    flat = a["pool2"].reshape(len(x), -1)
    layer("local3", dense(flat, p["local3/weights"]))
    layer("local4", dense(a["local3"], p["local4/weights"]))
    layer("softmax_linear", dense(a["local4"], p["softmax_linear/weights"]), with_relu=False)
    return a


def losses(logits, labels):
    """Cross-entropy of each image, and the gradient of their mean."""
    each, gradient = [], np.zeros_like(logits)
    for n, label in enumerate(labels):
        largest = max(logits[n])
        exponentials = [exact_exp(value - largest) for value in logits[n]]
        total = math.fsum(exponentials)
        each.append(exact_log(total) + largest - logits[n][label])
        for c, e in enumerate(exponentials):
            gradient[n, c] = (e / total - (1.0 if c == label else 0.0)) / len(labels)
    return each, gradient


def backward(p, a, dlogits):
    """Gradients of the parameters, cross-entropy only."""
    g = {}

    def bias_and(name, dy):
        flat = dy.reshape(-1, dy.shape[-1])
        g[name + "/biases"] = ordered_sum(flat, 0)
        return dy

    def through_relu(name, dy):
        return np.where(a[name] > 0, dy, 0.0)

    def dense_layer(name, x, dy):
        bias_and(name, dy)
        g[name + "/weights"] = dense_weight_gradient(x, dy)
        return dense_input_gradient(p[name + "/weights"], dy)

    images = len(dlogits)
    d = dense_layer("softmax_linear", a["local4"], dlogits)
    d = dense_layer("local4", a["local3"], through_relu("local4", d))
    d = dense_layer("local3", a["pool2"].reshape(images, -1), through_relu("local3", d))
    d = pool_gradient(a["norm2"], d.reshape(a["pool2"].shape))
    d = through_relu("conv2", norm_gradient(a["conv2"], d))
    bias_and("conv2", d)
    g["conv2/weights"] = conv_weight_gradient(a["norm1"], d, 5)
    d = norm_gradient(a["pool1"], conv_input_gradient(p["conv2/weights"], d))
    d = through_relu("conv1", pool_gradient(a["conv1"], d))
    bias_and("conv1", d)
    g["conv1/weights"] = conv_weight_gradient(a["input"], d, 5)
    return g


# ---- margins

def relative_margin(values, scale):
    return float(np.abs(values).min() / scale)


def margins(a):
    """For each decision that float could take otherwise, how far the nearest one is from turning, relative to the
    largest value there: inputs of ReLUs from 0, the two largest of a pool's window from each other (windows of
    zeros do not count: the ReLU below lets nothing through, whichever wins)."""
    found = {}
    for name in ("conv1", "conv2", "local3", "local4"):
        before = a[name + "/before"]
        found[name] = relative_margin(before, np.abs(before).max())
    for name, x in (("pool1", a["conv1"]), ("pool2", a["norm2"])):
        ordered = np.sort(windows(x), axis=0)
        first, second = ordered[-1], ordered[-2]
        found[name] = relative_margin((first - second)[first > 0], x.max())
    return found
