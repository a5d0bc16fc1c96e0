"""The cifar10 network in NumPy, from a checkpoint alone: checkpoint_numpy.py CHECKPOINT PIXELS IMAGES LOGITS

PIXELS and LOGITS hold float32: [images][24][24][3] in, and the engine's [images][classes], which must agree with ours
within 1e-4 of the largest. Written from the paper's formulas, with nothing of the engine's: windows are gathered by
index, everything is float64. Exit 0: they agree; 1: they don't; 77: NumPy is not installed.
"""

import json
import struct
import sys

try:
    import numpy as np
except ImportError:
    sys.exit(77)


def load(path):
    try:
        from safetensors.numpy import load_file

        return load_file(path)
    except ImportError:
        pass
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    types = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}
    return {
        name: np.frombuffer(data[slice(*entry["data_offsets"])], types[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def windows(x, kernel, stride, fill):
    """[images][out][out][kernel][kernel][channels] of TensorFlow's SAME."""
    side = x.shape[1]
    out = -(-side // stride)
    pad = max((out - 1) * stride + kernel - side, 0)
    edges = (pad // 2, pad - pad // 2)
    padded = np.pad(x, ((0, 0), edges, edges, (0, 0)), constant_values=fill)
    places = np.arange(out)[:, None] * stride + np.arange(kernel)
    return padded[:, places[:, None, :, None], places[None, :, None, :]]


def conv(x, weights, biases):
    taps = windows(x, weights.shape[0], 1, 0.0)
    return np.maximum(np.tensordot(taps, weights, 3) + biases, 0)


def pool(x):
    return windows(x, 3, 2, -np.inf).max((3, 4))


def norm(x):
    channels = x.shape[-1]
    near = abs(np.arange(channels)[:, None] - np.arange(channels)) <= 4
    return x * (1 + 0.001 / 9 * (x * x @ near)) ** -0.75


def main():
    checkpoint, pixels, images, expected = sys.argv[1:]
    t = {name: values.astype(np.float64) for name, values in load(checkpoint).items()}
    x = np.fromfile(pixels, "<f4").reshape(int(images), 24, 24, 3).astype(np.float64)
    x = norm(pool(conv(x, t["conv1/weights"], t["conv1/biases"])))
    x = pool(norm(conv(x, t["conv2/weights"], t["conv2/biases"])))
    x = x.reshape(len(x), -1)
    for layer in "local3", "local4":
        x = np.maximum(x @ t[layer + "/weights"] + t[layer + "/biases"], 0)
    logits = x @ t["softmax_linear/weights"] + t["softmax_linear/biases"]
    theirs = np.fromfile(expected, "<f4").reshape(logits.shape)
    off = abs(logits - theirs).max() / abs(logits).max()
    print(f"the largest difference of a logit is {off:.2g} of the largest")
    return 0 if off <= 1e-4 else 1


sys.exit(main())
