"""TAMPL on one page of plain torch, without the library.

The microstate x is 50 numbers: a noisy damped rotation (q, p), hidden by a random rotation among
48 other coordinates that mean nothing. The macrostate is y = q alone; its future depends on p too.
We learn E, T and R from trajectories, then forecast y with its spread from one microstate.

    python examples/minimal.py
"""

import math
from copy import deepcopy
from itertools import pairwise

import torch
from torch import nn

N, D, M = 50, 4, 1  # sizes of microstate, latent state and macrostate
LAMBDA_CUR, LAMBDA_TR = 1.0, 0.1  # the paper's weights


def mlp(*widths):
    layers = [layer for a, b in pairwise(widths) for layer in (nn.Linear(a, b), nn.SiLU())]
    return nn.Sequential(*layers[:-1])


def velocity(T, u, s, z):
    """v(u, s; z), the velocity field of the conditional flow; s enters through sines."""
    phase = math.pi * s * torch.arange(1, 9)
    return T(torch.cat([u, z, s, phase.sin(), phase.cos()], dim=-1))


def transition_loss(T, z, z_next, s, epsilon):
    """l_tr: regress the velocity of the straight path from noise to the next latent state."""
    u = (1 - s) * epsilon + s * z_next
    return (velocity(T, u, s, z) - (z_next - epsilon)).square().mean()


def representation_loss(E, R, T, E_bar, batch):
    """L_enc: E(x_t) must tell y_t, and T must find the frozen encoding of x_{t+1} from it."""
    x, y, x_next, s, epsilon = batch
    z = E(x)
    current = (R(z) - y).square().sum(dim=-1).mean()
    return LAMBDA_CUR * current + LAMBDA_TR * transition_loss(T, z, E_bar(x_next), s, epsilon)


def descend(loss, optimiser):
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def train_epoch(E, R, T, E_bar, optimisers, stage_1, stage_2):
    """One epoch of Algorithm 1; each stage is a list of batches (x, y, x_next, s, epsilon)."""
    T.requires_grad_(False)
    for batch in stage_1:  # stage I: encoder and readout move, T and E_bar are fixed
        descend(representation_loss(E, R, T, E_bar, batch), optimisers[0])
    T.requires_grad_(True)
    E_bar.load_state_dict(E.state_dict())  # the hard copy between the stages
    for x, _, x_next, s, epsilon in stage_2:  # stage II: only T moves
        descend(transition_loss(T, E_bar(x), E_bar(x_next), s, epsilon), optimisers[1])


@torch.no_grad()
def forecast(E, R, T, x, horizon, steps=10):
    """Algorithm 2: encode once, then step the latent state; rows of x are ensemble members."""
    z = E(x)
    y = [R(z)]
    for _ in range(horizon):
        w = torch.randn_like(z)
        for k in range(steps):  # midpoint rule for dw/ds = v(w, s; z)
            s = torch.full((len(z), 1), k / steps)
            half = w + velocity(T, w, s, z) / (2 * steps)
            w = w + velocity(T, half, s + 1 / (2 * steps), z) / steps
        z = w
        y.append(R(z))
    return torch.stack(y, dim=1)


def simulate(q, p, frames, mixing):
    """A damped rotation with noise; (n,) starts to microstates (n, F, N) and y (n, F, 1)."""
    turn, noise = 0.98 * torch.exp(torch.tensor(0.3j)), 0.05
    state, path = torch.complex(q, p), []
    for _ in range(frames):
        path.append(state)
        state = turn * state + noise * torch.randn_like(state)
    path = torch.stack(path, dim=1)
    y = path.real.unsqueeze(-1)
    idle = torch.randn(*path.shape, N - 2)
    return torch.cat([y, path.imag.unsqueeze(-1), idle], dim=-1) @ mixing, y


def batches(x, y, size):
    """All pairs in random order, with fresh flow times and noise."""
    x_now, y_now, x_next = (a.flatten(0, 1) for a in (x[:, :-1], y[:, :-1], x[:, 1:]))
    for i in torch.randperm(len(x_now)).split(size):
        yield x_now[i], y_now[i], x_next[i], torch.rand(len(i), 1), torch.randn(len(i), D)


def main(epochs=30, runs=200, frames=31, members=200):
    torch.manual_seed(0)
    mixing = torch.linalg.qr(torch.randn(N, N)).Q
    x, y = simulate(torch.randn(runs), torch.randn(runs), frames, mixing)

    E, R, T = mlp(N, D), mlp(D, 64, M), mlp(2 * D + 17, 128, 128, D)
    E_bar = deepcopy(E).requires_grad_(False)
    optimisers = [torch.optim.AdamW([*E.parameters(), *R.parameters()], lr=5e-3)]
    optimisers += [torch.optim.AdamW(T.parameters(), lr=5e-3)]
    for epoch in range(1, epochs + 1):
        train_epoch(E, R, T, E_bar, optimisers, batches(x, y, 128), batches(x, y, 128))
        for optimiser in optimisers:
            optimiser.param_groups[0]["lr"] *= 0.9
        if epoch % 10 == 0:
            print(f"epoch {epoch:3d}   latent std {E(x[:, 0]).std(dim=0).mean():.2f}")

    start, _ = simulate(torch.tensor([0.0, 0.0]), torch.tensor([2.0, -2.0]), 1, mixing)
    print("two microstates with y = 0, which turn opposite ways (mean and std of y):")
    for x_0, p in zip(start[:, 0], (2.0, -2.0), strict=True):
        ours = forecast(E, R, T, x_0.expand(members, N), frames - 1)[..., 0]
        _, true = simulate(torch.zeros(members), torch.full((members,), p), frames, mixing)
        for t in (5, frames // 2, frames - 1):
            a, b = ours[:, t], true[:, t, 0]
            print(f"t {t:3d}  forecast {a.mean():6.2f} +- {a.std():.2f}", end="   ")
            print(f"simulated {b.mean():6.2f} +- {b.std():.2f}")


if __name__ == "__main__":
    main()
