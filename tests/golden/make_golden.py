#!/usr/bin/env python3
"""Make the golden values: what the tutorial's network gives, computed by network.py, in files that tests compare
the program with.

    make_golden.py [--check] [FOLDER]

--check compares with what is there instead of writing. The same bytes on every machine; needs NumPy. Where PyTorch
can be imported the first step's loss and gradients are compared with its own, which changes nothing in the files.

Parameters and images come from an integer hash (below), which tests/support/golden.c has too. A file is a list of
records; see write_record().
"""

import argparse
import math
import os
import struct
import sys

import numpy as np

sys.dont_write_bytecode = True
import network  # noqa: E402 (beside this file)

STEPS, BATCH, CLASSES = 10, 6, 10
SPLITS = ((6,), (3, 3), (4, 2), (2, 2, 2), (3, 2, 1))
LONG_SPLIT = (3, 2, 1)  # also trained for all the steps
SAMPLES = 251  # values of a tensor that are stored, at most

# Settings of the two trajectories. The clip lies between the smallest and the largest norm that occur.
PLAIN = {"lr": 0.1, "momentum": 0.0, "clip": 0.0, "ema": 0.0}
FULL = {"lr": 0.1, "momentum": 0.9, "clip": 2.0, "ema": 0.9999}

# How near a decision may be to turning (see network.margins). Float sums differ by some 3e-7 of the largest value;
# a Winograd transform by some 3e-6 in the second convolution.
MARGIN = {"conv1": 1.5e-6, "pool1": 1.5e-6, "conv2": 6e-6, "pool2": 6e-6, "local3": 6e-6, "local4": 6e-6}


# ---- numbers from a hash

def mix(x):
    """A 32-bit hash of an array of 32-bit numbers (the constants are those of Ettinger and Wellons' "lowbias32")."""
    x = np.asarray(x, dtype=np.uint32).copy()
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    return x


def numbers(stream, count):
    """`count` numbers of 16 bits."""
    start = int(mix([stream])[0])
    index = (np.arange(count, dtype=np.uint64) + start) & 0xFFFFFFFF
    return (mix(index.astype(np.uint32)) >> np.uint32(16)).astype(np.int64)


def spread(stream, shape):
    """Odd multiples of 2^-16 between -1 and 1."""
    return ((2 * numbers(stream, math.prod(shape)) - 65535) / 65536.0).reshape(shape)


PARAMETER_STREAM, PROBE_STREAM, IMAGE_STREAM = 1, 100, 1000
WEIGHT_SCALE = {"conv1": 2.0**-4, "conv2": 2.0**-4, "local3": 2.0**-4, "local4": 2.0**-4, "softmax_linear": 2.0**-6}
BIAS_BASE = {"conv1": 0.0, "conv2": 0.125, "local3": 0.125, "local4": 0.125, "softmax_linear": 0.0}


def initial_parameters(channels):
    shapes = {"conv1": (5, 5, channels, 64), "conv2": (5, 5, 64, 64), "local3": (2304, 384), "local4": (384, 192),
              "softmax_linear": (192, CLASSES)}
    p = {}
    for number, name in enumerate(network.PARAMETERS):
        layer, kind = name.split("/")
        values = spread(PARAMETER_STREAM + number, shapes[layer] if kind == "weights" else shapes[layer][-1:])
        p[name] = WEIGHT_SCALE[layer] * values if kind == "weights" else BIAS_BASE[layer] + 2.0**-5 * values
    return p


def image(identity, channels):
    return 2.0 * spread(IMAGE_STREAM + 2 * identity, (24, 24, channels))


def label(identity):
    return int(numbers(IMAGE_STREAM + 2 * identity + 1, 1)[0]) % CLASSES


# ---- the files

def write_record(out, name, values):
    """Little-endian: length of the name (16 bits), name, count and stride (64 and 32 bits), then as doubles the
    norm, the largest size, the probe (sum of the values with signs from the hash) and values[::stride]."""
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    stride = 1
    if flat.size > SAMPLES:
        stride = -(-flat.size // SAMPLES) | 1
    signs = np.where(numbers(PROBE_STREAM, flat.size) & 1, 1.0, -1.0)
    head = (math.sqrt(math.fsum(flat * flat)), float(np.abs(flat).max()), math.fsum(flat * signs))
    text = name.encode()
    out.append(struct.pack("<H", len(text)) + text + struct.pack("<QI3d", flat.size, stride, *head) +
               flat[::stride].astype("<f8").tobytes())


# ---- choosing images

def choose_batch(p, channels, first):
    """The next BATCH images from number `first` on that have their margins under the parameters p."""
    chosen, identity = [], first
    while len(chosen) < BATCH:
        found = network.margins(network.forward(p, image(identity, channels)[None]))
        if all(found[name] > MARGIN[name] for name in MARGIN):
            chosen.append(identity)
        identity += 1
    return chosen, identity


# ---- a step

def tower_step(p, channels, identities):
    """A tower's activations, cross-entropy, decay terms and the gradient of their sum."""
    a = network.forward(p, np.stack([image(i, channels) for i in identities]))
    each, dlogits = network.losses(a["softmax_linear"], [label(i) for i in identities])
    g = network.backward(p, a, dlogits)
    terms = {}
    for name, decay in network.DECAY.items():
        terms[name] = decay * (math.fsum((p[name] * p[name]).reshape(-1)) / 2)
        g[name] = g[name] + decay * p[name]
    return {"activations": a, "terms": list(terms.values()) + [math.fsum(each) / len(each)], "gradient": g}


def norm_of(tensors):
    return math.sqrt(math.fsum(value for t in tensors.values() for value in (t * t).reshape(-1)))


def average_of(towers, split):
    """Weighted by the towers' shares of the images."""
    total = sum(split)
    average = {}
    for name in network.PARAMETERS:
        average[name] = (split[0] / total) * towers[0]["gradient"][name]
        for tower, images in zip(towers[1:], split[1:]):
            average[name] = average[name] + (images / total) * tower["gradient"][name]
    return average


class Trajectory:
    """Training by one rule: parameters, momentum, moving averages."""

    def __init__(self, channels, settings):
        self.channels, self.settings = channels, settings
        self.p = initial_parameters(channels)
        self.velocity = {name: np.zeros_like(t) for name, t in self.p.items()}
        self.shadow = dict(self.p)
        self.steps = 0

    def step(self, identities, split):
        """One step of the batch over towers; returns the towers, the average and its norm."""
        towers, first = [], 0
        for images in split:
            towers.append(tower_step(self.p, self.channels, identities[first:first + images]))
            first += images
        average = average_of(towers, split)
        norm = norm_of(average)
        s = self.settings
        scale = s["clip"] / norm if 0 < s["clip"] < norm else 1.0
        d = min(s["ema"], (1 + self.steps) / (10 + self.steps))
        for name in network.PARAMETERS:
            self.velocity[name] = s["momentum"] * self.velocity[name] + scale * average[name]
            self.p[name] = self.p[name] - s["lr"] * self.velocity[name]
            self.shadow[name] = self.shadow[name] - (1 - d) * (self.shadow[name] - self.p[name])
        self.steps += 1
        return towers, average, norm

    def loss(self, towers, split):
        return math.fsum(images / sum(split) * math.fsum(tower["terms"]) for tower, images in zip(towers, split))


def expect_near(what, a, b, tolerance):
    worst = max(float(np.abs(a[n] - b[n]).max() / np.abs(b[n]).max()) for n in network.PARAMETERS)
    if not worst <= tolerance:
        sys.exit(f"{what}: off by {worst:g} of the largest value, expected at most {tolerance:g}")


# ---- what goes into a file

def record_parameters(out, prefix, tensors):
    for name in network.PARAMETERS:
        write_record(out, f"{prefix}/{name}", tensors[name])


def record_first_step(out, channels, identities):
    """Layers, losses and gradients of the first batch, whole and split."""
    for split in SPLITS:
        name = "split/" + "-".join(map(str, split))
        run = Trajectory(channels, PLAIN)
        towers, average, norm = run.step(identities, split)
        write_record(out, name + "/terms", [term for tower in towers for term in tower["terms"]])
        write_record(out, name + "/loss", [run.loss(towers, split)])
        write_record(out, name + "/norms", [norm_of(tower["gradient"]) for tower in towers])
        write_record(out, name + "/norm", [norm])
        if split == SPLITS[0]:
            whole, whole_run = average, run
            for layer in network.LAYERS:
                write_record(out, "layer/" + layer, towers[0]["activations"][layer])
            record_parameters(out, "average", average)
            record_parameters(out, "plain/parameters1", run.p)
            cross_check(channels, identities, towers[0])
        else:
            expect_near(name, average, whole, 1e-12)
            expect_near(name, run.p, whole_run.p, 1e-12)
        if split == LONG_SPLIT:
            for k, tower in enumerate(towers):
                record_parameters(out, f"{name}/gradient{k}", tower["gradient"])


def train(out, name, channels, settings, split):
    """A trajectory of STEPS, each with a batch of its own that has its margins; returns it and the batches."""
    run, batches, next_image, records = Trajectory(channels, settings), [], 0, {"loss": [], "norm": []}
    for _ in range(STEPS):
        identities, next_image = choose_batch(run.p, channels, next_image)
        batches.append(identities)
        towers, _, norm = run.step(identities, split)
        records["loss"].append(run.loss(towers, split))
        records["norm"].append(norm)
        if run.steps == 1 and name == "full":
            record_parameters(out, f"{name}/parameters1", run.p)
            record_parameters(out, f"{name}/shadow1", run.shadow)
    print(f"  {name}: images up to {next_image}, losses {records['loss'][0]:.4f} to {records['loss'][-1]:.4f}, "
          f"norms {min(records['norm']):.3f} to {max(records['norm']):.3f}", flush=True)
    if settings["clip"] and not min(records["norm"]) < settings["clip"] < max(records["norm"]):
        sys.exit(f"the clip {settings['clip']} does not lie between the norms")
    write_record(out, f"{name}/images", [i for batch in batches for i in batch])
    write_record(out, f"{name}/labels", [label(i) for batch in batches for i in batch])
    write_record(out, f"{name}/settings", [settings[key] for key in ("lr", "momentum", "clip", "ema")])
    write_record(out, f"{name}/losses", records["loss"])
    write_record(out, f"{name}/norms", records["norm"])
    record_parameters(out, f"{name}/parameters{STEPS}", run.p)
    return run, batches


def make(channels):
    out = [b"towerscope golden 1\n"]
    print(f"cifar10, {channels} channels", flush=True)
    record_parameters(out, "initial", initial_parameters(channels))
    plain, batches = train(out, "plain", channels, PLAIN, SPLITS[0])
    again = Trajectory(channels, PLAIN)
    for identities in batches:
        again.step(identities, LONG_SPLIT)
    expect_near("towers of 3, 2 and 1 against one", again.p, plain.p, 1e-11)
    record_first_step(out, channels, batches[0])
    full, _ = train(out, "full", channels, FULL, LONG_SPLIT)
    record_parameters(out, f"full/velocity{STEPS}", full.velocity)
    record_parameters(out, f"full/shadow{STEPS}", full.shadow)
    return b"".join(out)


# ---- PyTorch's word for it

def cross_check(channels, identities, tower):
    """Loss and gradients of the first step by PyTorch's own operations and differentiation, in double."""
    try:
        import torch
        import torch.nn.functional as F
    except ImportError:
        print("  PyTorch is not installed: not compared with it")
        return
    p = {n: torch.tensor(t, requires_grad=True) for n, t in initial_parameters(channels).items()}
    x = torch.tensor(np.stack([image(i, channels) for i in identities])).permute(0, 3, 1, 2)

    def convolve(x, name):
        w = p[name + "/weights"].permute(3, 2, 0, 1)
        return F.relu(F.conv2d(x, w, p[name + "/biases"], padding=2))

    def shrink(x):  # nothing before, one after; what is padded is 0, which after a ReLU never wins alone
        return F.max_pool2d(F.pad(x, (0, 1, 0, 1)), 3, 2)

    def normalise(x):  # PyTorch divides alpha by the window
        return F.local_response_norm(x, 9, alpha=0.001, beta=0.75, k=1.0)

    def full(x, name):
        return x @ p[name + "/weights"] + p[name + "/biases"]

    y = normalise(shrink(convolve(x, "conv1")))
    y = shrink(normalise(convolve(y, "conv2")))
    y = y.permute(0, 2, 3, 1).reshape(len(identities), -1)
    y = full(F.relu(full(F.relu(full(y, "local3")), "local4")), "softmax_linear")
    loss = F.cross_entropy(y, torch.tensor([label(i) for i in identities]))
    for name, decay in network.DECAY.items():
        loss = loss + decay * (p[name] ** 2).sum() / 2
    loss.backward()
    ours = math.fsum(tower["terms"])
    if not abs(loss.item() - ours) <= 1e-12 * ours:
        sys.exit(f"PyTorch's loss is {loss.item()!r}, ours {ours!r}")
    expect_near("gradients against PyTorch's", tower["gradient"], {n: t.grad.numpy() for n, t in p.items()}, 1e-10)
    print("  PyTorch agrees on the first step")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("folder", nargs="?", default=os.path.dirname(os.path.abspath(__file__)))
    arguments = parser.parse_args()
    for channels in (3, 1):
        path = os.path.join(arguments.folder, f"cifar10-{channels}.golden")
        data = make(channels)
        if arguments.check:
            with open(path, "rb") as file:
                if file.read() != data:
                    sys.exit(f"{path} is not what this script makes")
            print(f"  {path} is what this script makes")
        else:
            with open(path, "wb") as file:
                file.write(data)
            print(f"  {path}: {len(data)} bytes")


if __name__ == "__main__":
    main()
