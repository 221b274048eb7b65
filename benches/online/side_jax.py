"""The attacks of benches/online in JAX, compiled as a whole: a scan over the steps, derivatives by vjp.

    side_jax.py rnn|gru gradient-sign|dynamic|fixed-point UNITS INPUTS CLASSES BATCH

Prints sequences x steps a second, the median of rounds, compilation not counted.
"""

import statistics
import sys
import time

import jax
import jax.numpy as jnp

ALPHA, STEPS, TOLERANCE, ITERATIONS = 0.15, 100, 1e-5, 30
# Gauss and Legendre's four points on [0, 1].
POINTS = [
    (0.06943184420297371, 0.17392742256872693),
    (0.33000947820757187, 0.32607257743127307),
    (0.6699905217924281, 0.32607257743127307),
    (0.9305681557970262, 0.17392742256872693),
]


def weights(cell, units, inputs, classes):
    keys = iter(jax.random.split(jax.random.key(1), 8))
    bound = units**-0.5
    draw = lambda *shape: jax.random.uniform(next(keys), shape, minval=-bound, maxval=bound)
    gates = 1 if cell == "rnn" else 2
    return {
        "w": draw(inputs, gates * units),
        "u": draw(units, gates * units),
        "b": draw(gates * units),
        "wn": draw(inputs, units),
        "un": draw(units, units),
        "bn": draw(units),
        "head": draw(units, classes),
        "bias": draw(classes),
    }


def step(p, cell, x, h):
    gates = x @ p["w"] + h @ p["u"] + p["b"]
    if cell == "rnn":
        return jnp.tanh(gates)
    z, r = jnp.split(jax.nn.sigmoid(gates), 2, axis=1)
    return (1 - z) * jnp.tanh(x @ p["wn"] + (r * h) @ p["un"] + p["bn"]) + z * h


def attack(p, cell, name, signal):
    def ascent(h):
        g = jax.grad(lambda h: -jax.nn.log_softmax(h @ p["head"] + p["bias"])[:, 0].sum())(h)
        return g / jnp.linalg.norm(g, axis=1, keepdims=True)

    def pull(h, x, v):
        return jax.vjp(lambda x: step(p, cell, x, h), x)[1](v)[0]

    def mean_pull(h, x, d, v):
        return sum(w * pull(h, x + q * d, v) for q, w in POINTS)

    def one(carry, x):
        h, d = carry
        v = ascent(h)
        after = d
        if name == "gradient-sign":
            d = after = ALPHA * jnp.sign(pull(h, x, v))
        elif name == "dynamic":
            after = ALPHA * mean_pull(h, x, d, v)
        else:

            def better(state):
                d, _, k = state
                new = ALPHA * mean_pull(h, x, d, v)
                return new, jnp.abs(new - d).max(), k + 1

            going = lambda state: (state[1] >= TOLERANCE) & (state[2] < ITERATIONS)
            d = after = jax.lax.while_loop(going, better, (d, jnp.inf, 0))[0]
        return (step(p, cell, x + d, h), after), d

    start = jnp.zeros((signal.shape[1], p["head"].shape[0]))
    return jax.lax.scan(one, (start, jnp.zeros_like(signal[0])), signal)


def main():
    cell, name = sys.argv[1:3]
    units, inputs, classes, batch = map(int, sys.argv[3:7])
    p = weights(cell, units, inputs, classes)
    signal = jnp.sin(jnp.arange(STEPS * batch * inputs).reshape(STEPS, batch, inputs) * 0.13)
    run = jax.jit(lambda p, signal: attack(p, cell, name, signal))
    jax.block_until_ready(run(p, signal))
    times = []
    for _ in range(9):
        start = time.perf_counter()
        jax.block_until_ready(run(p, signal))
        times.append(time.perf_counter() - start)
    print(batch * STEPS / statistics.median(times))


main()
