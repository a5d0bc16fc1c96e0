#!/usr/bin/env python3
"""One training step of cifar10 in TensorFlow, again and again: what `towerscope bench` puts its own rate beside.

Says "ready VERSION" when it is, then answers each line "SECONDS" on its input with the images per second of
a round of that length. The network and the update are those of engine/model/models/cifar10.ini; the batch is
random and stays the same. One graph (tf.function; XLA was half as fast), images as TensorFlow keeps them (NHWC).
"""

import argparse
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import tensorflow as tf  # noqa: E402

SHAPES = {
    "conv1": ((5, 5, 3, 64), 0.05, 0.0),
    "conv2": ((5, 5, 64, 64), 0.05, 0.1),
    "local3": ((2304, 384), 0.04, 0.1),
    "local4": ((384, 192), 0.04, 0.1),
    "softmax_linear": ((192, 10), 1 / 192, 0.0),
}


def band(channels, radius, alpha):
    """LRN's sum over neighbouring channels as a convolution of one pixel, which is faster than tf.nn.lrn."""
    index = tf.range(channels)
    near = tf.abs(index[:, None] - index[None, :]) <= radius
    return tf.reshape(tf.cast(near, tf.float32) * alpha, (1, 1, channels, channels))


class Step(tf.Module):
    def __init__(self, batch, own_norm):
        super().__init__()
        random = tf.random.Generator.from_seed(1)
        self.x = random.normal((batch, 24, 24, 3))
        self.y = random.uniform((batch,), 0, 10, tf.int32)
        self.p = {}
        for name, (shape, deviation, bias) in SHAPES.items():
            weights = tf.clip_by_value(random.normal(shape), -2, 2) * deviation
            self.p[name] = tf.Variable(weights), tf.Variable(tf.fill(shape[-1:], bias))
        self.all = [v for pair in self.p.values() for v in pair]
        self.band, self.own_norm = band(64, 4, 0.001 / 9), own_norm

    def norm(self, x):
        if self.own_norm:
            return tf.nn.lrn(x, 4, bias=1.0, alpha=0.001 / 9, beta=0.75)
        root = tf.math.rsqrt(tf.nn.conv2d(x * x, self.band, 1, "SAME") + 1.0)
        return x * (root * tf.sqrt(root))

    def convolve(self, x, name):
        weights, bias = self.p[name]
        return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, weights, 1, "SAME"), bias))

    def dense(self, x, name):
        weights, bias = self.p[name]
        return tf.nn.bias_add(x @ weights, bias)

    def loss(self):
        x = self.norm(tf.nn.max_pool2d(self.convolve(self.x, "conv1"), 3, 2, "SAME"))
        x = tf.nn.max_pool2d(self.norm(self.convolve(x, "conv2")), 3, 2, "SAME")
        x = tf.nn.relu(self.dense(tf.reshape(x, (-1, 2304)), "local3"))
        x = self.dense(tf.nn.relu(self.dense(x, "local4")), "softmax_linear")
        decay = tf.nn.l2_loss(self.p["local3"][0]) + tf.nn.l2_loss(self.p["local4"][0])
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.y, logits=x)
        return tf.reduce_mean(each) + 0.004 * decay

    @tf.function
    def run(self):
        with tf.GradientTape() as tape:
            loss = self.loss()
        for variable, gradient in zip(self.all, tape.gradient(loss, self.all)):
            variable.assign_sub(0.01 * gradient)
        return loss


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--own-norm", action="store_true", help="tf.nn.lrn")
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)  # more would be further threads
    step = Step(options.batch, options.own_norm)
    for _ in range(3):
        step.run()
    print("ready", tf.__version__, flush=True)
    for line in sys.stdin:
        steps, start = 0, time.perf_counter()
        while steps == 0 or time.perf_counter() - start < float(line):
            step.run().numpy()
            steps += 1
        print(options.batch * steps / (time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    main()
