#!/usr/bin/env python3
"""One training step of cifar10 in PyTorch, again and again: what `towerscope bench` puts its own rate beside.

Says "ready VERSION" when it is, then answers each line "SECONDS" on its input with the images per second of
a round of that length. The network and the update are those of engine/model/models/cifar10.ini; the batch is
random and stays the same.
"""

import argparse
import sys
import time

import torch
import torch.nn.functional as F


def parameters(channels, generator):
    shapes = {
        "conv1": (64, channels, 5, 5, 0.05, 0.0),
        "conv2": (64, 64, 5, 5, 0.05, 0.1),
        "local3": (384, 2304, 0.04, 0.1),
        "local4": (192, 384, 0.04, 0.1),
        "softmax_linear": (10, 192, 1 / 192, 0.0),
    }
    made = {}
    for name, (*shape, deviation, bias) in shapes.items():
        weights = torch.randn(*shape, generator=generator).clamp(-2, 2) * deviation
        made[name] = weights, torch.full((shape[0],), bias)
    return made


def band(channels, radius, alpha):
    """LRN's sum over neighbouring channels as a convolution of one pixel."""
    index = torch.arange(channels)
    near = (index[:, None] - index[None, :]).abs() <= radius
    return (near * alpha).reshape(channels, channels, 1, 1)


class Step:
    def __init__(self, options):
        generator = torch.Generator().manual_seed(1)
        layout = torch.channels_last if options.channels_last else torch.contiguous_format
        self.channels_last, self.banded = options.channels_last, options.banded
        self.x = torch.randn(options.batch, 3, 24, 24, generator=generator).contiguous(memory_format=layout)
        self.y = torch.randint(0, 10, (options.batch,), generator=generator)
        self.p = parameters(3, generator)
        for name, (weights, bias) in self.p.items():
            if weights.dim() == 4:
                weights = weights.contiguous(memory_format=layout)
            self.p[name] = weights.requires_grad_(True), bias.requires_grad_(True)
        self.band = band(64, 4, 0.001 / 9).contiguous(memory_format=layout)
        self.one = torch.ones(64)
        self.optimizer = torch.optim.SGD([t for pair in self.p.values() for t in pair], lr=0.01)

    def norm(self, x):
        if not self.banded:
            return F.local_response_norm(x, 9, alpha=0.001, beta=0.75, k=1.0)
        root = F.conv2d(x * x, self.band, self.one).rsqrt()
        return x * (root * root.sqrt())

    def loss(self):
        p = self.p
        x = F.relu(F.conv2d(self.x, *p["conv1"], padding=2))
        x = self.norm(F.max_pool2d(x, 3, 2, ceil_mode=True))
        x = self.norm(F.relu(F.conv2d(x, *p["conv2"], padding=2)))
        x = F.max_pool2d(x, 3, 2, ceil_mode=True)
        if self.channels_last:  # flattening in this order copies nothing
            x = x.permute(0, 2, 3, 1)
        x = x.reshape(x.shape[0], 2304)
        x = F.relu(F.linear(x, *p["local3"]))
        x = F.relu(F.linear(x, *p["local4"]))
        x = F.linear(x, *p["softmax_linear"])
        decay = sum((p[name][0] ** 2).sum() for name in ("local3", "local4"))
        return F.cross_entropy(x, self.y) + 0.002 * decay

    def run(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss().backward()
        self.optimizer.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--banded", action="store_true", help="LRN as a banded convolution")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    step = Step(options)
    for _ in range(3):
        step.run()
    print("ready", torch.__version__, flush=True)
    for line in sys.stdin:
        steps, start = 0, time.perf_counter()
        while steps == 0 or time.perf_counter() - start < float(line):
            step.run()
            steps += 1
        print(options.batch * steps / (time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    main()
