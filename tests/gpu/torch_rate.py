#!/usr/bin/env python3
"""Images per second of cifar10's training step in PyTorch on a GPU: what `check.sh` puts towerscope's beside.

Prints its version, and is then asked line by line, "PRECISION BATCH SETTING"; it answers each by the same with the
rate behind it, or by "# " and why not: so check.sh can take turns with towerscope. The network and the update are
those of engine/model/models/cifar10.ini with its moving averages; images are random and stay the same, channels
last. Settings, each as fast as we found to write it:

  eager     as one writes it
  graph     the eager step captured into a CUDA graph
  compiled  by torch.compile, and the whole step with its update captured into a CUDA graph

LRN is tried as PyTorch's own and as a banded convolution, and the faster one is taken; compiled, it is a sum of
shifted channels, which the compiler makes one kernel of.
"""

import argparse
import os
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
from torch_step import band, parameters  # noqa: E402


OWN, BANDED, SHIFTED = range(3)  # ways to write LRN


class Step:
    def __init__(self, batch, precision, norm):
        generator = torch.Generator().manual_seed(1)
        self.precision, self.way = precision, norm
        self.x = torch.randn(batch, 3, 24, 24, generator=generator).cuda()
        self.x = self.x.contiguous(memory_format=torch.channels_last)
        self.y = torch.randint(0, 10, (batch,), generator=generator).cuda()
        self.p, self.shadow = {}, []
        for name, pair in parameters(3, generator).items():
            weights, bias = (t.cuda() for t in pair)
            if weights.dim() == 4:
                weights = weights.contiguous(memory_format=torch.channels_last)
            self.p[name] = weights.requires_grad_(True), bias.requires_grad_(True)
            self.shadow += [weights.detach().clone(), bias.detach().clone()]
        self.all = [t for pair in self.p.values() for t in pair]
        self.band = band(64, 4, 0.001 / 9).cuda().contiguous(memory_format=torch.channels_last)
        self.one = torch.ones(64).cuda()
        self.optimizer = torch.optim.SGD(self.all, lr=0.01, foreach=True)

    def norm(self, x):
        if self.way == OWN:
            return F.local_response_norm(x, 9, alpha=0.001, beta=0.75, k=1.0)
        if self.way == BANDED:
            root = F.conv2d(x * x, self.band.to(x.dtype), self.one.to(x.dtype)).rsqrt()
        else:
            around = F.pad(x * x, (0, 0, 0, 0, 4, 4))
            root = (1.0 + 0.001 / 9 * sum(around[:, i:i + 64] for i in range(9))).rsqrt()
        return x * (root * root.sqrt())

    def loss(self):
        p = self.p
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=self.precision == "bf16"):
            x = F.relu(F.conv2d(self.x, *p["conv1"], padding=2))
            x = self.norm(F.max_pool2d(x, 3, 2, ceil_mode=True))
            x = self.norm(F.relu(F.conv2d(x, *p["conv2"], padding=2)))
            x = F.max_pool2d(x, 3, 2, ceil_mode=True)
            x = x.permute(0, 2, 3, 1).reshape(x.shape[0], 2304)
            x = F.relu(F.linear(x, *p["local3"]))
            x = F.relu(F.linear(x, *p["local4"]))
            x = F.linear(x, *p["softmax_linear"])
        decay = sum((p[name][0] ** 2).sum() for name in ("local3", "local4"))
        return F.cross_entropy(x.float(), self.y) + 0.002 * decay

    def update(self):
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(self.shadow, self.all, 1 - 0.9999)

    def run(self, loss=None):
        self.optimizer.zero_grad(set_to_none=True)
        (loss or self.loss)().backward()
        self.update()


def captured(step, loss=None):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step.run(loss)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step.run(loss)
    return graph.replay


def compiled(step):
    torch._dynamo.reset()  # what was compiled for another step is of no use
    try:
        return captured(step, torch.compile(step.loss))
    except RuntimeError:  # a version that can't capture what it compiled: its own CUDA graphs, the update beside them
        torch._dynamo.reset()
        loss = torch.compile(step.loss, mode="reduce-overhead")

    def run():
        torch.compiler.cudagraph_mark_step_begin()
        step.run(loss)

    return run


def rate(run, batch, seconds):
    for _ in range(5):
        run()
    torch.cuda.synchronize()
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        for _ in range(10):
            run()
        torch.cuda.synchronize()
        steps += 10
    return batch * steps / (time.perf_counter() - start)


SETTINGS = {"eager": lambda step: step.run, "graph": captured, "compiled": compiled}


def measure(precision, batch, setting, seconds):
    """The best rate of the ways to write it."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    ways = (SHIFTED,) if setting == "compiled" else (OWN, BANDED)
    return max(rate(SETTINGS[setting](Step(batch, precision, way)), batch, seconds) for way in ways)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each measurement")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU")
    torch.backends.cudnn.benchmark = True
    print(torch.__version__, flush=True)
    for line in sys.stdin:
        try:
            precision, batch, setting = line.split()
            value = measure(precision, int(batch), setting, options.seconds)
            print(precision, batch, setting, "%.0f" % value, flush=True)
        except Exception as error:  # one setting that fails leaves the others
            print("#", line.strip(), str(error).splitlines()[:1], flush=True)


if __name__ == "__main__":
    main()
