"""Does a result survive SIGKILL and a full disk? Runs that are cut off, resumed and compared.

    python benchmarks/faults.py --json > results/faults.json

A run of `tampl simulate`, `train` or `compare` is killed at a random moment, up to four times one
after another, and then left to end; its files must be those of a run that nobody disturbed. Runs
on disks that fill must end with exit code 0 or 2, must leave no damaged file under a final name,
and must end well once the disk has room. A disk is an ext4 file system in a file or a tmpfs, one
after the other, because the two fail at different moments; to mount them one must be root.

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
DISK = 2**24
"""Bytes of a disk; a file that is removed before the resume takes up what should not be free."""
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
        "exit_codes_of_resumes": _plain(codes),
        "damaged_files": damaged,
        "different_results": different,
        "seconds_undisturbed": round(seconds, 2),
    }


def mount_memory(where: Path, image: Path) -> None:
    """Mounts a disk in memory, which refuses a write at once."""
    _call("mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", where)


def mount_ext4(where: Path, image: Path) -> None:
    """Mounts a file as a disk, as disks of machines are."""
    with image.open("wb") as file:
        file.truncate(DISK)
    _call("mkfs.ext4", "-q", "-b", "4096", "-m", "0", image)
    _call("mount", "-o", "loop", image, where)


DISKS: dict[str, Callable[[Path, Path], None]] = {"ext4": mount_ext4, "tmpfs": mount_memory}


def _call(*command: str | Path) -> None:
    subprocess.run(list(map(str, command)), check=True, capture_output=True)


@contextmanager
def small_disk(where: Path, kind: str) -> Iterator[None]:
    """A disk of its own in a folder."""
    where.mkdir()
    image = where.with_suffix(".image")
    try:
        DISKS[kind](where, image)
        try:
            yield
        finally:
            _call("umount", where)
    finally:
        where.rmdir()
        image.unlink(missing_ok=True)


def occupy(disk: Path, room: int) -> Path:
    """Takes up a disk but for so many bytes with one file; returns the file."""
    ballast, state = disk / "ballast", os.statvfs(disk)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, state.f_bavail * state.f_frsize - room)
    return ballast


def find_disks(where: Path) -> list[str]:
    """The kinds of disks that this process may mount."""
    found = []
    for kind in DISKS:
        try:
            with small_disk(where / "probe", kind):
                found.append(kind)
        except (OSError, subprocess.CalledProcessError):
            pass
    return found


def fill_disks(
    work: Work, starter: Starter, kinds: Sequence[str], runs: int, where: Path
) -> dict[str, Any]:
    """Runs a command on disks with room for almost nothing to almost enough, and resumes it."""
    code = starter.run(work.arguments(where / "whole"))
    assert code == 0, f"{work.name} ended with {code} undisturbed"
    wanted = work.facts(where / "whole")
    blocks = sum(-(-p.stat().st_size // 4096) + 1 for p in (where / "whole").rglob("*"))
    assert 4096 * blocks < DISK / 2, f"{work.name} needs larger disks"
    codes: dict[str, Counter[int]] = {kind: Counter() for kind in kinds}
    resumed, damaged, different, silent = Counter[int](), 0, 0, 0
    for number in range(runs):
        disk, kind = where / "disk", kinds[number % len(kinds)]
        with small_disk(disk, kind):
            ballast = occupy(disk, 4096 * (2 + number * blocks // runs))
            code = starter.run(work.arguments(disk / "out"))
            codes[kind][code] += 1
            damaged += len(work.damaged(disk / "out"))
            silent += code == 0 and work.facts(disk / "out") != wanted
            ballast.unlink()
            code = starter.run(work.arguments(disk / "out"))
            resumed[code] += 1
            different += code != 0 or work.facts(disk / "out") != wanted
        print(f"{work.name}: disk {number + 1} of {runs}, exit codes {codes}", file=sys.stderr)
    return {
        "runs": runs,
        "exit_codes": {kind: _plain(count) for kind, count in codes.items()},
        "exit_codes_of_resumes": _plain(resumed),
        "damaged_files": damaged,
        "wrong_but_silent": silent,
        "different_results": different,
    }


def _plain(codes: Counter[int]) -> dict[str, int]:
    return {str(code): count for code, count in codes.items()}


def is_sound(record: dict[str, Any]) -> bool:
    """Whether nothing was lost: exit codes 0 and 2 only, no damage, no difference."""
    parts = [part for part in record.values() if isinstance(part, dict)]
    wrong = ("damaged_files", "different_results", "wrong_but_silent")
    filled = [codes for part in parts for codes in part.get("exit_codes", {}).values()]
    codes = {code for each in filled for code in each}
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
    kinds = find_disks(where)
    if not kinds:
        return record | {"full_disk": "not measured: mounting a small disk needs root"}
    shares = {"simulate": disks - disks // 2, "train": disks // 2}
    for work in (simulate, train):
        folder = where / f"disk-{work.name}"
        folder.mkdir()
        record[f"full_disk_{work.name}"] = fill_disks(
            work, starter, kinds, shares[work.name], folder
        )
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
