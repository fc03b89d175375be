"""From arrays to a forecast: the whole library in the lines of a notebook.

    python examples/notebook.py

The arrays are made here, by an epidemic on a small periodic lattice in plain NumPy; put your own
in their place. It takes about a minute on two cores.
"""

# %% Arrays: x (trajectories, frames, height, width), y (trajectories, frames, observables)
import numpy as np

import tampl

RUNS, FRAMES, SIZE = 160, 31, 24


def simulate(seed=0):
    """Sites are susceptible (0), infected (1) or recovered (2); all are updated at once."""
    rng = np.random.default_rng(seed)
    sites = np.zeros((RUNS, SIZE, SIZE), np.uint8)
    for lattice in sites:  # the same number of infected sites, in one disc or scattered
        rows, columns = rng.integers(SIZE, size=(2, rng.choice([1, 2, 4, 16])))
        grid = np.indices((SIZE, SIZE))[..., None]
        apart = np.abs(grid - np.array([rows, columns])[:, None, None])
        nearest = (np.minimum(apart, SIZE - apart) ** 2).sum(axis=0).min(axis=-1)
        lattice.flat[np.argsort(nearest + rng.random(nearest.shape), axis=None)[:30]] = 1
    path = [sites]
    for _ in range(FRAMES - 1):
        ill = sites == 1
        near = sum(np.roll(ill, shift, axis) for axis in (1, 2) for shift in (1, -1))
        chance = np.choose(sites, [1 - 0.8**near, 0.25, 0.05])  # infection, recovery, loss
        sites = np.where(rng.random(sites.shape) < chance, (sites + 1) % 3, sites)
        path.append(sites)
    x = np.stack(path, axis=1)
    return x, np.stack([(x == state).mean(axis=(2, 3)) for state in range(3)], axis=-1)


x, y = simulate()

# %% A data set, cut by trajectory
data = tampl.Dataset(x, y, interval=0.5, observables=["S", "I", "R"])
train, valid, test = data.split(0.8, 0.1, 0.1, seed=0)

# %% Train; the model with the lowest validation error is kept
model = tampl.TamplPlus(latent_dim=8).fit(train, valid=valid, epochs=20, seed=42)
print(model)

# %% Forecast: an ensemble of futures from one lattice each
ahead = model.forecast(test.x[:, 0], y0=test.y[:, 0], horizon=FRAMES - 1, members=64, seed=1)
low, high = ahead.quantiles([0.1, 0.9])
print("I at the end, first test lattice:", ahead.mean[0, -1, 1], "+-", ahead.std[0, -1, 1])
print("80 % of the members lie between", low[0, -1, 1], "and", high[0, -1, 1])
figure = ahead.plot(truth=test.y)

# %% How good is it?
print(tampl.evaluate(model, test))

# %% Keep it
if __name__ == "__main__":
    figure.savefig("forecast.png", dpi=150)
    model.save("model.safetensors")
    model = tampl.load("model.safetensors")
