"""The section of the small lattice, on which all methods were measured first."""

from tampl.lab.report.tables import comparison_grid, difference_grid

from .records import SEED, Records, Section
from .tables import machine, seeded, sweep_table, trained, tuning_table


def write_comparison(records: Records) -> str:
    """All methods, their differences, and the same on a CPU."""
    mini, cpu = records.comparisons["sirs-mini"], records.load("compare-sirs-mini-cpu.json")
    return f"""\
## Small lattice (`recipes/sirs-mini.toml`)

{seeded(mini.seeds)}, {trained(records.runs("sirs-mini"))}. Weights are averaged \
as the recipe says, for every method. `results/sirs-mini/`.

{comparison_grid(mini).markdown()}
Differences paired by seed, with the 95 % interval of Student's t:

{difference_grid(mini).markdown()}
{len(cpu["methods"])} methods with seed {cpu["seeds"][0]} on \
{cpu["provenance"]["cores"]} cores ({machine(cpu)}) took \
{cpu["seconds"] / 60:.0f} minutes, simulation and evaluation included, at commit \
{cpu["provenance"]["commit"]}: TAMPL \
{cpu["scores"]["tampl"]["rmse"]["mean"]:.4f}, JLD {cpu["scores"]["jld"]["rmse"]["mean"]:.4f}. \
`results/compare-sirs-mini-cpu.json`.

![One simulated trajectory, and the observables as simulated and as each method forecasts \
them](images/sirs-mini-comparison.png)

One test microstate of the small lattice, all methods with seed {SEED}. On top one simulated \
trajectory; below, simulation in black, each method in its colour, bands of one standard deviation.
"""


def write_sweeps(records: Records) -> str:
    """Both sweeps."""
    return f"""\
### Small lattice: weight of JLD's transition loss

{sweep_table(records.load("sweep-sirs-mini-jld.json"))}

`results/sweep-sirs-mini-jld.json`.

### Small lattice: latent dimension of TAMPL

{sweep_table(records.load("sweep-sirs-mini-latent_dim.json"))}

`results/sweep-sirs-mini-latent_dim.json`.
"""


def write_tuning(records: Records) -> str:
    """How the weights of penalties were chosen."""
    tuning = records.load("tuning.json")
    return f"""\
### Small lattice: weights of the penalties

Chosen on validation data with seed {tuning["seed"]} and {tuning["epochs"]} epochs, a third of \
the recipe's. VICReg's covariance weight is a 25th of its variance weight, as in its paper. The \
lowest of the first column was taken. One seed is noisy: repeated on a CPU, neighbours change \
places. `results/tuning.json`.

{tuning_table(tuning)}
"""


SECTIONS = (
    Section(write_comparison, ("sirs-mini", "compare-sirs-mini-cpu.json")),
    Section(write_sweeps, ("sweep-sirs-mini-jld.json", "sweep-sirs-mini-latent_dim.json")),
    Section(write_tuning, ("tuning.json",)),
)
