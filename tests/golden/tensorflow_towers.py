#!/usr/bin/env python3
"""TensorFlow's word for the golden values: the towers of the question, each with its losses in a collection.

    tensorflow_towers.py [--channels N]

Builds, in TensorFlow's own graphs (float64), a tower for each shard of the first golden batch: every tower puts its
weight decays and its cross-entropy into the collection "losses" and adds up what get_collection finds there under the
tower's scope. Compares with what make_golden.py writes: each term, each tower's total, the average of the gradients,
the parameters after a step. Then leaves the scope away: tower k then adds up the losses of towers 0 to k. Needs
TensorFlow 2 and NumPy; exit code 77 where there is none.
"""

import argparse
import math
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
sys.dont_write_bytecode = True
try:
    import numpy as np
    import tensorflow as tf
except ImportError as error:
    print(f"TensorFlow is not installed: {error}")
    sys.exit(77)
import make_golden as golden  # noqa: E402 (beside this file)
import network  # noqa: E402

v1 = tf.compat.v1
TOLERANCE = 1e-11  # of the largest value


# ---- the network, by TensorFlow's operations

def variable(name, values):
    return v1.get_variable(name, dtype=tf.float64, initializer=tf.constant(values), use_resource=True)


def layer(name, p, multiply, decay):
    """A layer's product and biases, its parameters shared between towers, its decay put into the collection."""
    with v1.variable_scope(name, reuse=v1.AUTO_REUSE):
        weights = variable("weights", p[name + "/weights"])
        if decay:
            v1.add_to_collection("losses", tf.multiply(tf.nn.l2_loss(weights), decay, name="weight_loss"))
        return tf.nn.bias_add(multiply(weights), variable("biases", p[name + "/biases"]))


def logits(p, images):
    def convolve(name, x):
        return tf.nn.relu(layer(name, p, lambda w: tf.nn.conv2d(x, w, 1, "SAME"), None))

    def full(name, x):
        return layer(name, p, lambda w: tf.matmul(x, w), network.DECAY.get(name + "/weights"))

    def shrink(x):
        return tf.nn.max_pool2d(x, 3, 2, "SAME")

    def normalise(x):  # tf.nn.lrn knows no double: its definition, neighbours and all
        ones = tf.constant(np.tri(64, 64, network.RADIUS) - np.tri(64, 64, -network.RADIUS - 1))
        around = tf.tensordot(tf.square(x), ones, [[3], [0]])
        return x / tf.pow(network.BIAS + network.ALPHA * around, tf.constant(0.75, tf.float64))

    x = normalise(shrink(convolve("conv1", images)))
    x = shrink(normalise(convolve("conv2", x)))
    x = tf.nn.relu(full("local3", tf.reshape(x, (images.shape[0], -1))))
    return full("softmax_linear", tf.nn.relu(full("local4", x)))


def put_losses(p, images, labels):
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits(p, images))
    v1.add_to_collection("losses", tf.reduce_mean(each, name="cross_entropy"))


def average_gradients(towers, split):
    """The mean over towers, a shard counting by its images, variable by variable."""
    shares = [images / sum(split) for images in split]
    return [sum(share * gradient for share, gradient in zip(shares, gradients)) for gradients in zip(*towers)]


# ---- towers

def build(p, channels, identities, split, scoped):
    """(terms, total, gradients) of each tower, the average and the updates, as tensors."""
    towers, first = [], 0
    for k, count in enumerate(split):
        shard, first = identities[first:first + count], first + count
        with tf.name_scope(f"tower_{k}") as scope:
            put_losses(p, tf.constant(np.stack([golden.image(i, channels) for i in shard])),
                       tf.constant([golden.label(i) for i in shard]))
            terms = v1.get_collection("losses", scope) if scoped else v1.get_collection("losses")
            total = tf.add_n(terms, name="total_loss")
            variables = {v.op.name: v for v in v1.trainable_variables()}
            towers.append((terms, total, tf.gradients(total, [variables[n] for n in network.PARAMETERS])))
    average = average_gradients([gradients for _, _, gradients in towers], split)
    return towers, average, [variables[n] - golden.PLAIN["lr"] * g for n, g in zip(network.PARAMETERS, average)]


def by_name(tensors):
    return dict(zip(network.PARAMETERS, tensors))


def expect_losses(what, theirs, ours):
    for a, b in zip(theirs, ours, strict=True):
        if not abs(a - b) <= TOLERANCE * abs(b):
            sys.exit(f"{what}: TensorFlow has {a!r}, the golden values {b!r}")


def compare(channels, identities, split, scoped):
    p = golden.initial_parameters(channels)
    run = golden.Trajectory(channels, golden.PLAIN)
    towers, average, _ = run.step(identities, split)
    with tf.Graph().as_default(), v1.Session() as session:
        built = build(p, channels, identities, split, scoped)
        session.run(v1.global_variables_initializer())
        theirs, their_average, updated = session.run(built)
    totals = [math.fsum(tower["terms"]) for tower in towers]
    name = f"{channels} channels, towers of {split}"
    if not scoped:
        expect_losses(name + " without the scope", [total for _, total, _ in theirs], np.cumsum(totals))
        for k, (_, _, gradients) in enumerate(theirs):
            added = {n: sum(tower["gradient"][n] for tower in towers[:k + 1]) for n in network.PARAMETERS}
            golden.expect_near(f"{name}, gradient of tower {k} without the scope", by_name(gradients), added, TOLERANCE)
        return
    for tower, (terms, total, gradients) in zip(towers, theirs):
        expect_losses(name, list(terms) + [total], tower["terms"] + [math.fsum(tower["terms"])])
        golden.expect_near(name + ", a tower's gradient", by_name(gradients), tower["gradient"], TOLERANCE)
    golden.expect_near(name + ", the average", by_name(their_average), average, TOLERANCE)
    golden.expect_near(name + ", the parameters", by_name(updated), run.p, TOLERANCE)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--channels", type=int, nargs="*", default=[3, 1])
    for channels in parser.parse_args().channels:
        identities, _ = golden.choose_batch(golden.initial_parameters(channels), channels, 0)
        for split in golden.SPLITS:
            compare(channels, identities, split, scoped=True)
        compare(channels, identities, golden.LONG_SPLIT, scoped=False)
        print(f"TensorFlow {tf.__version__} agrees: {channels} channels, towers of " +
              ", ".join("+".join(map(str, split)) for split in golden.SPLITS))


if __name__ == "__main__":
    main()
