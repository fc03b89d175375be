"""Mutated inputs, thousands of them: each is read as it was meant, or refused in one line.

    python tests/faults/test_fuzz.py --cases 10000 --json > results/fuzz.json

Recipes, settings and devices of the command line, manifests, shards, checkpoints, run files,
records, arrays and matrices are changed at random: bits and bytes of files, and values of what is
plain data (null, other types, absurd numbers, deep nesting). Reading what results must work or
raise `InputError`, in seconds and in bounded memory.
Where a file carries a checksum, what is read in spite of a change must be what was written.
"""

import argparse
import copy
import json
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from tampl.data import Store
from tampl.errors import ForecastWarning, InputError
from tampl.evaluation.cases import Cases
from tampl.files import strict_json
from tampl.forecast import Forecast
from tampl.lab import pipeline
from tampl.lab.campaign import RunPlan
from tampl.lab.provenance import provenance
from tampl.lab.recipes import Axis, parse_setting, read_recipe
from tampl.lab.report.tables import comparison_grid, trust_grid
from tampl.lab.runs import Run
from tampl.models import load_model, resolve_device
from tampl.models.checkpoint import load_tensors, save_tensors
from tampl.models.model import FORMAT
from tampl.theory.certificates import certify_file
from tampl.theory.linear import Weights
from tampl.theory.updates import Round
from workbench import Workbench

TINY = Path(__file__).parents[1] / "tiny.toml"
CASES = 1100
MEMORY = 2**30
SECONDS = 20


class HangError(BaseException):
    """A case that does not end; no handler for wrong input is to take it."""


@contextmanager
def time_limit(seconds):
    def ring(number, frame):
        raise HangError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def nest(levels):
    return json.loads("[" * levels + "]" * levels)


STRANGE = (
    *(None, True, False, "", "x", "\x00", "é" * 300, "../../x", "nan"),
    *(0, -1, 1, 2, 3, 10**12, 10**30, 2**63, -(2**63), 10**4000),
    *(0.5, -0.0, 1e308, -1e308, 5e-324, float("nan"), float("inf")),
    *([], {}, [[]], [None], {"a": None}, [1, 2, 3], [0.5] * 50, {"name": "flow"}),
)


def nodes(tree, path=()):
    """The places in plain data, as paths of keys."""
    yield path
    items = tree.items() if isinstance(tree, dict) else ()
    items = enumerate(tree[:20]) if isinstance(tree, list) else items
    for key, value in items:
        yield from nodes(value, (*path, key))


def mutate_tree(tree, chance):
    """Plain data with one to three values replaced, left out or added."""
    tree = copy.deepcopy(tree)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        *path, last = chance.choice([path for path in nodes(tree) if path] or [("x",)])
        parent = tree
        for key in path:
            parent = parent[key]
        kind = chance.random()
        value = nest(chance.choice((50, 150))) if kind < 0.05 else chance.choice(STRANGE)
        if kind > 0.9 and isinstance(parent, dict):
            parent.pop(last, None)
        elif kind > 0.85 and isinstance(parent, dict):
            parent[chance.choice(("extra", "name", ""))] = value
        elif isinstance(value, dict | list) or not isinstance(parent, str):
            parent[last] = value
    return tree


def mutate_bytes(content, chance):
    """A file with bits flipped, bytes replaced, a part cut out, or its end lost."""
    content = bytearray(content)
    if not content:
        return bytes(content)
    kind = chance.random()
    if kind < 0.5:
        for _ in range(chance.choice((1, 1, 2, 8))):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif kind < 0.7:
        at, size = chance.randrange(len(content)), chance.choice((1, 4, 8, 64))
        content[at : at + size] = chance.choice((b"\x00", b"\xff", b"\x7f")) * size
    elif kind < 0.85:
        del content[chance.randrange(len(content)) :]
    elif kind < 0.95:
        at = chance.randrange(len(content))
        del content[at : at + chance.choice((1, 8, 100))]
    else:
        content[:0] = bytes(chance.randrange(256) for _ in range(8))
    return bytes(content)


def mutate_json(content, chance, otherwise=None):
    """JSON with one to three values replaced, or absurd where the mutation cannot be written."""
    try:
        return json.dumps(mutate_tree(json.loads(content), chance)).encode()
    except ValueError:  # integers of too many digits
        return otherwise or b"9" * 5000
    except RecursionError:
        return otherwise or b"[" * 5000


def mutate_text(text, chance):
    return mutate_bytes(text.encode(), chance).decode("utf-8", "surrogateescape")


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


class Target:
    """What is mutated: `run` takes one case and returns whether the content was unchanged."""

    def __init__(self, folder, parts):
        self.folder, self.parts = folder, parts


class Recipes(Target):
    def run(self, chance):
        path, text = self.folder / "recipe.toml", TINY.read_text()
        if chance.random() < 0.5:
            content = mutate_text(text, chance)
        else:
            lines = text.splitlines()
            at = chance.choice([k for k, line in enumerate(lines) if " = " in line])
            values = (*map(toml, STRANGE), "[" * 300 + "]" * 300, "9" * 5000, "{" * 100)
            lines[at] = f"{lines[at].split(' = ')[0]} = {chance.choice(values)}"
            content = "\n".join(lines)
        path.write_bytes(content.encode("utf-8", "surrogateescape"))
        recipe = read_recipe(path)
        recipe.data.shards(recipe.system.description)
        recipe.as_tables()


def toml(value):
    return "nan" if value is None else json.dumps(value).replace("NaN", "nan")


class Stores(Target):
    """Manifests and shards: what is read is what was written."""

    def __init__(self, folder, parts):
        super().__init__(folder, parts)
        self.store = folder / "store"
        shutil.copytree(parts.store.path, self.store)
        self.files = {path: path.read_bytes() for path in self.store.rglob("*.*")}
        self.wanted = self.read()

    def read(self):
        store = Store.open(self.store)
        train, test = store.dataset("train"), store.references("test")
        return [train.x, train.y, train.labels, test.x, test.y, test.labels]

    def try_with(self, path, content):
        path.write_bytes(content)
        try:
            assert same(self.read(), self.wanted), f"{path.name} was read as something else"
        finally:
            path.write_bytes(self.files[path])


class Manifests(Stores):
    def run(self, chance):
        path = self.store / "manifest.json"
        if chance.random() < 0.4:
            content = mutate_bytes(self.files[path], chance)
        else:
            content = mutate_json(self.files[path], chance)
        self.try_with(path, content)


class Shards(Stores):
    def run(self, chance):
        path = chance.choice([path for path in self.files if path.suffix == ".h5"])
        self.try_with(path, mutate_bytes(self.files[path], chance))


class Models(Target):
    """Damaged files, and files that are whole and say something else."""

    def __init__(self, folder, parts):
        super().__init__(folder, parts)
        self.content = parts.best.read_bytes()
        self.tensors, self.header = load_tensors(parts.best, FORMAT)

    def run(self, chance):
        path = self.folder / "model.safetensors"
        if chance.random() < 0.5:
            path.write_bytes(mutate_bytes(self.content, chance))
            found = load_model(path, device="cpu").state_dict()
            assert found.keys() == self.tensors.keys()
            assert all(torch.equal(found[name], self.tensors[name]) for name in found)
            return
        tensors, header = dict(self.tensors), self.header
        if chance.random() < 0.5:
            header = mutate_tree(header, chance)
        else:
            mutate_tensors(tensors, chance)
        write_tensors(path, tensors, header)
        load_model(path, device="cpu")


def write_tensors(path, tensors, header):
    try:
        save_tensors(path, tensors, header)
    except (ValueError, RecursionError):
        save_tensors(path, tensors, {})


def mutate_tensors(tensors, chance):
    """Replaces one tensor by another of its name, or leaves one out, or adds one."""
    name = chance.choice(sorted(tensors))
    value = tensors[name]
    tensors[name] = chance.choice(
        (
            value.reshape(-1)[:1].clone(),
            value.unsqueeze(0).expand(3, *value.shape).contiguous(),
            value.to(torch.bfloat16),
            value.to(torch.int64),
            value.to(torch.float64 if value.dtype == torch.float32 else torch.float32),
            torch.full_like(value, 0),
            torch.zeros(0, dtype=value.dtype),
        )
    )
    if chance.random() < 0.2:
        tensors["extra"] = tensors.pop(name)


class States(Target):
    """Checkpoints of a training, taken up by a trainer."""

    def __init__(self, folder, parts):
        super().__init__(folder, parts)
        self.trainer = parts.trainer
        self.tensors = {name: value.clone() for name, value in self.trainer.tensors().items()}
        self.path = folder / "state.safetensors"
        self.header = {"format": "tampl-state-1", "epoch": 1}
        save_tensors(self.path, self.tensors, self.header)
        self.content = self.path.read_bytes()

    def run(self, chance):
        if chance.random() < 0.4:
            self.path.write_bytes(mutate_bytes(self.content, chance))
            tensors, header = load_tensors(self.path, "tampl-state-1")
            assert all(torch.equal(tensors[name], self.tensors[name]) for name in self.tensors)
        else:
            tensors, header = dict(self.tensors), self.header
            mutate_tensors(tensors, chance)
            header = json.loads(mutate_json(json.dumps(header), chance, otherwise="{}"))
            write_tensors(self.path, tensors, header)
            tensors, header = load_tensors(self.path, "tampl-state-1")
        self.trainer.load(header.get("epoch"), tensors)


class RunFiles(Target):
    """The JSON of a run: an evaluation that is read in spite of a change is the same."""

    NAMES = ("run.json", "history.json", "evaluation.json", "provenance.json")

    def __init__(self, folder, parts):
        super().__init__(folder, parts)
        self.path = folder / "run"
        shutil.copytree(parts.run, self.path)
        self.identity = Run.open(self.path).read_identity()
        self.plan = RunPlan(parts.recipe, "tampl", self.path, "tampl")
        self.wanted = strict_json(Run.open(self.path).read_record().as_dict())

    def run(self, chance):
        name = chance.choice(self.NAMES)
        path = self.path / name
        before = path.read_bytes()
        if chance.random() < 0.3:
            content = mutate_bytes(before, chance)
        else:
            content = mutate_json(before, chance)
        path.write_bytes(content)
        try:
            run = Run.open(self.path)
            run.read_stage(2)
            run.read_provenance()
            run.describe_saved(2)
            self.plan.describe()
            with run.claim(self.identity, extend=True):
                run.find_shorter(self.identity)
            record = run.read_record()
            assert strict_json(record.as_dict()) == self.wanted, f"{name} was read as another"
            run.read_trial("tampl")
        finally:
            path.write_bytes(before)


class Records(Target):
    """Records of measured results, which may be edited by hand."""

    def __init__(self, folder, parts):
        super().__init__(folder, parts)
        self.path = folder / "results" / "experiment" / "tampl-42.json"
        Run.open(parts.run).read_record().save(self.path)
        self.content = self.path.read_bytes()

    def run(self, chance):
        if chance.random() < 0.4:
            content = mutate_bytes(self.content, chance)
        else:
            content = mutate_json(self.content, chance)
        self.path.write_bytes(content)
        for results in pipeline.read_results(self.folder / "results").values():
            strict_json(results.as_dict())
            comparison_grid(results.comparison).markdown()
            trust_grid(results.trusts).markdown()


class Options(Target):
    """Settings, seeds and devices as they are given on the command line."""

    KEYS = (
        *("training.epochs", "training.batch_size", "model.latent_dim", "model.encoder.widths"),
        *("lambda_cur", "model.transition", "training.transition.learning_rate", "training"),
        *("training.seed", "model.transition.steps", "system.size", "x", "", "a.b.c.d"),
    )
    DEVICES = ("cpu", "cuda", "cuda:7", "hpu", "meta", "mps", "xla", "xpu", "lazy", "", "\x00")

    def run(self, chance):
        kind = chance.random()
        if kind < 0.2:
            device = chance.choice(self.DEVICES)
            resolve_device(device if kind < 0.1 else mutate_text(device, chance))
            return
        values = (*map(toml, STRANGE), "[" * 3000, "[" * 200 + "]" * 200, "9" * 5000, "{" * 50)
        listed = ",".join(chance.choice(values) for _ in range(chance.choice((1, 1, 2))))
        text = f"{chance.choice(self.KEYS)}={listed}"
        if kind < 0.4:
            text = mutate_text(text, chance)
        key, found = parse_setting(text)
        axis = Axis.find(self.parts.recipe, "tampl", key, values=found)
        for value in axis.values:
            axis.folder(value, 1)
            recipe = self.parts.recipe.with_value(axis.path, value)
            recipe.method("tampl").turns(recipe.training)


class Arrays(Target):
    """Archives of test cases and of forecasts, and arrays of initial states."""

    def __init__(self, folder, parts):
        super().__init__(folder, parts)
        self.cases = (parts.run / "cases.npz").read_bytes()
        self.model = load_model(parts.best, device="cpu")
        self.states = np.zeros((2, *self.model.description.microstate.shape), np.uint8)
        made = self.model.forecast(self.states, horizon=1, members=2, progress=False)
        made.save(folder / "forecast.npz")
        self.forecast = (folder / "forecast.npz").read_bytes()

    def run(self, chance):
        kind = chance.random()
        if kind < 0.6:
            content, load = chance.choice(((self.cases, Cases), (self.forecast, Forecast)))
            path = self.folder / "archive.npz"
            path.write_bytes(mutate_bytes(content, chance) if kind < 0.3 else content)
            if kind >= 0.3:
                self.mutate_archive(path, chance)
            load.load(path)
            return
        path = self.folder / "initial.npy"
        with path.open("wb") as file:
            np.save(file, self.mutate_states(chance))
        if chance.random() < 0.5:
            path.write_bytes(mutate_bytes(path.read_bytes(), chance))
        states = pipeline._read_array(path)
        states = self.model.description.microstate.check(states, "`x0`")
        self.model.forecast(states[:2], horizon=1, members=2, progress=False)

    def mutate_archive(self, path, chance):
        """Replaces an array by one of another type or shape, or leaves it out."""
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        name = chance.choice(sorted(arrays))
        value = arrays.pop(name)
        strange = (value[None], value.reshape(-1)[:1], value.reshape(-1)[:0], value.astype("U9"))
        strange += (np.array("x"), np.array(10**9), np.ones((2, 2)), np.array(np.nan))
        if chance.random() < 0.8:
            arrays[name] = chance.choice(strange)
        np.savez_compressed(path, **arrays)

    def mutate_states(self, chance):
        kind = chance.choice(("f8", "i8", "u1", "b1", "c8", "U3", "f2", "S3"))
        states = self.states.astype(kind)
        states = chance.choice((states, states[0], states[:0], states[..., :-1], states[None]))
        if states.size and kind[0] in "fi":
            states.flat[0] = chance.choice((255, -1, 1, 3))
        return states


class Matrices(Target):
    """Systems and realisations, whose certificates are asked for."""

    VALUES = (1e300, -1e300, 1e160, 1e100, 1e30, 1e-300, 5e-324, 0.0, np.nan, np.inf, -1.0, 2.0)

    def run(self, chance):
        arrays = {"A": np.diag([0.9, 0.5, 0.3]), "C": np.eye(1, 3), "Sigma": np.eye(3)}
        if chance.random() < 0.5:
            arrays |= {"B": np.eye(2, 3), "D": np.eye(1, 2), "K": np.diag([0.9, 0.5])}
        else:
            arrays["d"] = np.array(float(chance.choice((1, 2, 3, 4, 0, -1, 0.5))))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a complex array becomes a real one
            for _ in range(chance.choice((1, 1, 2, 3))):
                self.mutate(arrays, chance)
        path = self.folder / "system.npz"
        np.savez_compressed(path, **arrays)
        if chance.random() < 0.3:
            path.write_bytes(mutate_bytes(path.read_bytes(), chance))
        steps = Round(mu_encoder=0.1, mu_transition=0.1)
        certify_file(path, weights=Weights(), steps=steps, partial=chance.random() < 0.5)

    def mutate(self, arrays, chance):
        name, value = chance.choice(sorted(arrays)), chance.choice(self.VALUES)
        a, kind = arrays[name], chance.random()
        if kind < 0.4 and a.size:
            a = a.copy()
            a.flat[chance.randrange(a.size)] = value
        elif kind < 0.7 and a.dtype.kind != "U":
            a = a * value
        elif kind < 0.8:
            a = a[..., :-1] if a.ndim else a[None]
        elif kind < 0.9:
            a = a.astype(chance.choice(("U5", "c16", "i8", "f2", "b1")))
        else:
            arrays.pop(name)
            return
        arrays[name] = a


SHARES = {
    Recipes: 0.13,
    Options: 0.06,
    Manifests: 0.13,
    Shards: 0.15,
    Models: 0.13,
    States: 0.09,
    RunFiles: 0.12,
    Records: 0.04,
    Arrays: 0.09,
    Matrices: 0.06,
}


class Parts:
    """A store, an evaluated run and a trainer, all tiny."""

    def __init__(self, folder):
        self.recipe = recipe = read_recipe(TINY).with_value("training.epochs", 2)
        self.store = pipeline.simulate(recipe, folder / "data", workers=1)
        self.run = folder / "trained"
        pipeline.train(recipe, self.store.path, self.run, device="cpu")
        pipeline.evaluate_run(self.run, self.store.path, device="cpu")
        self.best = self.run / "best.safetensors"
        from tampl.methods import Tampl

        bench = Workbench.prepare(folder / "bench", torch.device("cpu"))
        self.trainer = bench.trainer(Tampl())
        self.trainer.run_epoch()


def fuzz(kind, folder, parts, *, cases, seed):
    """Tries mutated inputs of a kind; returns how many were read or refused, and the others."""
    folder.mkdir()
    target, counts, wrong = kind(folder, parts), Counter(), []
    for number in range(cases):
        outcome = try_case(target, random.Random(f"{seed} {kind.__name__} {number}"))
        if outcome in ("read", "refused"):
            counts[outcome] += 1
        else:
            wrong.append(f"{kind.__name__} {number}: {outcome}")
    return {**counts, "wrong": wrong}


def peak_memory():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def try_case(target, chance):
    """`read`, `refused`, or what went wrong."""
    try:
        with time_limit(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ForecastWarning)
            target.run(chance)
    except InputError as error:
        return "refused" if "\n" not in str(error) else f"several lines: {error}"
    except (Exception, HangError) as error:
        own = [f for f in traceback.extract_tb(error.__traceback__) if "/tampl/" in f.filename]
        at = f"{own[-1].filename.split('/tampl/')[-1]}:{own[-1].lineno}" if own else "the test"
        return f"{type(error).__name__}: {str(error)[:200]} at {at}"
    return "read"


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return Parts(tmp_path_factory.mktemp("parts"))


def test_there_are_enough_cases():
    assert sum(round(share * CASES) for share in SHARES.values()) >= 1000


@pytest.mark.parametrize("kind", SHARES, ids=lambda kind: kind.__name__)
def test_mutated_inputs_are_read_or_refused(kind, parts, tmp_path):
    before = peak_memory()
    found = fuzz(kind, tmp_path / "fuzz", parts, cases=round(SHARES[kind] * CASES), seed=0)
    assert found["wrong"] == []
    assert found["refused"] > 0
    assert peak_memory() - before < MEMORY


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tampl-fuzz-") as folder:
        parts, before = Parts(Path(folder)), peak_memory()
        found = {}
        for kind, share in SHARES.items():
            place, cases = Path(folder) / kind.__name__, round(share * arguments.cases)
            found[kind.__name__] = fuzz(kind, place, parts, cases=cases, seed=arguments.seed)
            print(kind.__name__, {**found[kind.__name__], "wrong": "..."}, file=sys.stderr)
    wrong = sum(len(counts["wrong"]) for counts in found.values())
    record = {
        "cases": sum(round(share * arguments.cases) for share in SHARES.values()),
        "wrong": wrong,
        "kinds": found,
        "memory_grown": peak_memory() - before,
        "seed": arguments.seed,
        "seconds": round(time.monotonic() - began),
        "provenance": provenance("cpu"),
    }
    print(strict_json(record, indent=1) if arguments.json else record)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
