"""Does a result survive SIGKILL and a full disk? Runs that are cut off, resumed and compared.

    python benchmarks/faults.py --json > results/faults.json

A run of `tampl simulate`, `train` or `compare` is killed at a random moment, up to four times one
after another, and then left to end; its files must be those of a run that nobody disturbed. Runs
on disks that fill (small tmpfs mounts, for which one must be root) must end with exit code 0 or 2,
must leave no damaged file under a final name, and must end well once the disk has room.

Processes start from a fork server that has imported everything, so that a kill falls into the work
and not into the imports. `--quick` does two of each.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from tampl.data import Store, read_shard
from tampl.errors import InputError
from tampl.files import strict_json
from tampl.lab.provenance import provenance
from tampl.models.checkpoint import load_tensors

KILLS, FULL_DISKS = 20, 100
CHAIN = 4
ROOM = "64m"
PRELOADED = [
    *("tampl.lab.cli", "tampl.lab.comparisons", "tampl.lab.pipeline", "tampl.systems.sirs"),
    *("tampl.lab.report.figures.forecasts", "tampl.lab.report.figures.training", "h5py"),
    *("torch._dynamo", "torch.distributed", "scipy.integrate"),
]

RECIPE = """
[system]
name = "sirs"
size = 12
frames = 9
coverage = 0.1
clusters = [1, 2, 4]

[data]
seed = 0
train = {train}
valid = 4
test = 4
members = 4
shard_size = 2

[model]
latent_dim = 3
[model.encoder]
name = "lattice"
widths = [8]
hidden = [16]
[model.transition]
name = "flow"
hidden = [32]
steps = 2
[model.readout]
name = "mlp"
hidden = [16]

[training]
seed = 1
epochs = {epochs}
batch_size = 64
validate_every = 2
validation_members = 2
save_every = 1
"""

Facts = dict[str, str]
"""What must be the same after a resume, by name."""


@dataclass(frozen=True)
class Work:
    """A command and what counts of its outcome.

    Attributes:
        name: The verb.
        arguments: Arguments of the command that leaves its files in a folder.
        facts: What must be the same, of that folder.
        damaged: The published files in that folder that are damaged.
    """

    name: str
    arguments: Callable[[Path], list[str]]
    facts: Callable[[Path], Facts]
    damaged: Callable[[Path], list[str]]


def call(arguments: Sequence[str], log: str) -> None:
    """The command line, in a process of its own; its output goes to a file."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    torch.set_num_threads(1)
    sys.argv = ["tampl", *arguments]
    from tampl.lab.cli import main

    main()


class Starter:
    """Starts commands from a server that has imported what they need."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(PRELOADED)

    def start(self, arguments: Sequence[str]) -> BaseProcess:
        process = self.context.Process(target=call, args=(list(arguments), str(self.log)))
        process.start()
        return process

    def run(self, arguments: Sequence[str]) -> int:
        """Runs a command to its end and returns its exit code, negative for a signal."""
        process = self.start(arguments)
        process.join(600)
        assert process.exitcode is not None, f"{arguments} did not end in ten minutes"
        return process.exitcode


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def store_facts(folder: Path) -> Facts:
    """All files of a store."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): _digest(path) for path in files}


def run_facts(folder: Path) -> Facts:
    """Models, weights and log of a run; what is told by the clock is left out."""
    facts = {name: _digest(folder / f"{name}.safetensors") for name in ("best", "last")}
    tensors, header = load_tensors(folder / "state.safetensors", "tampl-state-1")
    state = hashlib.sha256()
    for name in sorted(tensors):
        state.update(name.encode() + tensors[name].numpy().tobytes())
    log = json.loads((folder / "history.json").read_text())
    for epoch in log:
        epoch.pop("seconds")
    facts |= {"state": state.hexdigest(), "history": json.dumps(log)}
    evaluation = folder / "evaluation.json"
    if evaluation.exists():
        facts["scores"] = json.dumps(json.loads(evaluation.read_text())["scores"])
    names = sorted(path.name for path in folder.iterdir())
    return facts | {"epoch": str(header["epoch"]), "files": json.dumps(names)}


def campaign_facts(folder: Path) -> Facts:
    """The data and every run of a comparison."""
    facts = {f"data/{key}": value for key, value in store_facts(folder / "data").items()}
    for run in sorted((folder / "runs").iterdir()):
        facts |= {f"{run.name}/{key}": value for key, value in run_facts(run).items()}
    return facts


def damaged_shards(folder: Path) -> list[str]:
    """The shards of a store that are there and cannot be read with their checksum."""
    if not (folder / "manifest.json").exists():
        return []
    found = []
    try:
        store = Store.open(folder)
    except InputError as error:
        return [str(error)]
    missing = set(store.missing())
    for shard in store.manifest.shards:
        if shard not in missing:
            try:
                read_shard(folder / shard.file, manifest=store.manifest, shard=shard)
            except InputError as error:
                found.append(str(error))
    return found


def damaged_run(folder: Path) -> list[str]:
    """The files of a run that are there and cannot be read."""
    found = []
    for path in folder.glob("*.json"):
        try:
            json.loads(path.read_text())
        except ValueError as error:
            found.append(f"{path}: {error}")
    for path in folder.glob("*.safetensors"):
        kind = "tampl-state-1" if path.name.startswith("state") else "tampl-model-99"
        try:
            load_tensors(path, kind)
        except InputError as error:
            found.append(str(error))
    return found


def damaged_campaign(folder: Path) -> list[str]:
    """The damaged files of data and runs."""
    runs = folder / "runs"
    found = damaged_shards(folder / "data") + damaged_run(folder)
    return found + [line for run in runs.glob("*") if run.is_dir() for line in damaged_run(run)]


def kill_and_resume(
    work: Work, starter: Starter, kills: int, where: Path, chance: random.Random
) -> dict[str, Any]:
    """Kills a command `kills` times in all, resumes it, and compares."""
    began = time.monotonic()
    code = starter.run(work.arguments(where / "whole"))
    assert code == 0, f"{work.name} ended with {code} undisturbed"
    seconds, wanted = time.monotonic() - began, work.facts(where / "whole")
    done, early, different, damaged, codes = 0, 0, 0, 0, Counter[int]()
    place = 0
    while done < kills:
        place += 1
        folder = where / str(place)
        for _ in range(min(CHAIN, kills - done)):
            process = starter.start(work.arguments(folder))
            process.join(chance.uniform(0.02, 0.9) * seconds)
            if process.exitcode is not None:
                early += 1
                break
            os.kill(process.pid or 0, signal.SIGKILL)
            process.join()
            done += 1
            damaged += len(work.damaged(folder))
        codes[starter.run(work.arguments(folder))] += 1
        different += work.facts(folder) != wanted
        shutil.rmtree(folder)
        print(f"{work.name}: {done} of {kills} kills", file=sys.stderr)
    return {
        "kills": done,
        "ended_before_the_kill": early,
        "resumed": place,
        "exit_codes_of_resumes": {str(code): count for code, count in codes.items()},
        "damaged_files": damaged,
        "different_results": different,
        "seconds_undisturbed": round(seconds, 2),
    }


@contextmanager
def small_disk(where: Path, size: str) -> Iterator[None]:
    """A disk of its own in a folder, of a size as `mount` takes it."""
    where.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(where)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(where)], check=True)
        where.rmdir()


def can_mount(where: Path) -> bool:
    """Whether this process may mount a disk."""
    try:
        with small_disk(where / "probe", "64k"):
            return True
    except (OSError, subprocess.CalledProcessError):
        shutil.rmtree(where / "probe", ignore_errors=True)
        return False


def fill_disks(work: Work, starter: Starter, runs: int, where: Path) -> dict[str, Any]:
    """Runs a command on disks of sizes from almost nothing to almost enough, and resumes it."""
    code = starter.run(work.arguments(where / "whole"))
    assert code == 0, f"{work.name} ended with {code} undisturbed"
    wanted = work.facts(where / "whole")
    blocks = sum(-(-p.stat().st_size // 4096) + 1 for p in (where / "whole").rglob("*"))
    codes, resumed, damaged, different, silent = Counter[int](), Counter[int](), 0, 0, 0
    for number in range(runs):
        disk = where / "disk"
        size = 2 + number * blocks // runs
        with small_disk(disk, f"{4 * size}k"):
            code = starter.run(work.arguments(disk / "out"))
            codes[code] += 1
            found = work.damaged(disk / "out")
            damaged += len(found)
            silent += code == 0 and work.facts(disk / "out") != wanted
            remount = ["mount", "-o", f"remount,size={ROOM}", str(disk)]
            subprocess.run(remount, check=True)
            code = starter.run(work.arguments(disk / "out"))
            resumed[code] += 1
            different += code != 0 or work.facts(disk / "out") != wanted
        print(f"{work.name}: disk {number + 1} of {runs}, exit codes {codes}", file=sys.stderr)
    return {
        "runs": runs,
        "exit_codes": {str(code): count for code, count in codes.items()},
        "exit_codes_of_resumes": {str(code): count for code, count in resumed.items()},
        "damaged_files": damaged,
        "wrong_but_silent": silent,
        "different_results": different,
    }


def is_sound(record: dict[str, Any]) -> bool:
    """Whether nothing was lost: exit codes 0 and 2 only, no damage, no difference."""
    parts = [part for part in record.values() if isinstance(part, dict)]
    wrong = ("damaged_files", "different_results", "wrong_but_silent")
    codes = {code for part in parts for code in part.get("exit_codes", {})}
    resumes = {code for part in parts for code in part.get("exit_codes_of_resumes", {})}
    return (
        codes <= {"0", "2"}
        and resumes <= {"0"}
        and not any(part.get(key) for part in parts for key in wrong)
    )


def measure(where: Path, *, kills: int, disks: int, seed: int, small: bool) -> dict[str, Any]:
    """Everything, in a folder that is to be removed afterwards."""
    starter, chance = Starter(where / "log.txt"), random.Random(seed)
    recipe, short = where / "recipe.toml", where / "short.toml"
    recipe.write_text(RECIPE.format(train=12 if small else 120, epochs=4 if small else 12))
    short.write_text(RECIPE.format(train=12, epochs=4))
    data = where / "data"
    assert starter.run(["simulate", str(short), "--out", str(data)]) == 0, "no data"
    verbs = ("simulate", "train", "compare")
    simulate = Work(
        "simulate",
        lambda out: ["simulate", str(recipe), "--out", str(out)],
        store_facts,
        damaged_shards,
    )
    train = Work(
        "train",
        lambda out: ["train", str(recipe), "--data", str(data), "--out", str(out)],
        run_facts,
        damaged_run,
    )
    compare = Work(
        "compare",
        lambda out: ["compare", str(short), "--methods", "tampl,jld", "--out", str(out)],
        campaign_facts,
        damaged_campaign,
    )
    record: dict[str, Any] = {}
    for verb, work in zip(verbs, (simulate, train, compare), strict=True):
        (where / verb).mkdir()
        record[f"kill_{verb}"] = kill_and_resume(work, starter, kills, where / verb, chance)
    if not can_mount(where):
        return record | {"full_disk": "not measured: mounting a small disk needs root"}
    shares = {"simulate": disks - disks // 2, "train": disks // 2}
    for work in (simulate, train):
        folder = where / f"disk-{work.name}"
        folder.mkdir()
        record[f"full_disk_{work.name}"] = fill_disks(work, starter, shares[work.name], folder)
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--quick", action="store_true", help="two of each, on less work")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    arguments = parser.parse_args()
    kills, disks = (2, 4) if arguments.quick else (KILLS, FULL_DISKS)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tampl-faults-") as folder:
        record = measure(
            Path(folder), kills=kills, disks=disks, seed=arguments.seed, small=arguments.quick
        )
    sound = is_sound(record)
    record |= {
        "sound": sound,
        "seed": arguments.seed,
        "seconds": round(time.monotonic() - began),
        "provenance": provenance("cpu"),
    }
    print(strict_json(record, indent=1) if arguments.json else record)
    sys.exit(0 if sound else 1)


if __name__ == "__main__":
    main()
