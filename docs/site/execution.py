"""Runs the pages of the site, each in a process and an empty folder of its own, two at a time.

The outputs are kept under the hash of everything that can change them: the blocks of the page,
the package, the pins, and the runner. A second build runs nothing.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from blocks import Block, find_blocks

__all__ = ["Output", "run_pages"]

ROOT = Path(__file__).parents[2]
CACHE = ROOT / "build" / "site-outputs"
RUNNER = Path(__file__).with_name("runner.py")
TINY = ROOT / "tests" / "tiny.toml"
LIMIT = 900


@dataclass(frozen=True)
class Output:
    """What a block printed, and the PNG files that it drew, in base64."""

    text: str
    figures: tuple[str, ...]


def run_pages(pages: Mapping[str, str]) -> dict[str, list[Output]]:
    """The outputs of the blocks of every page.

    Arguments:
        pages: Texts by the path of the page in the repository.
    """
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        done = pool.map(lambda item: _run_or_recall(*item), pages.items())
        return dict(zip(pages, done, strict=True))


def _run_or_recall(page: str, text: str) -> list[Output]:
    blocks = find_blocks(text)
    if not blocks:
        return []
    code = [(block.kind, block.text) for block in blocks]
    key = hashlib.sha256(f"{_hash_package()}{page}{code}".encode()).hexdigest()[:32]
    kept = CACHE / f"{key}.json"
    if not kept.exists():
        start = time.monotonic()
        made = _run(page, blocks)
        CACHE.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(".part")
        part.write_text(made, encoding="utf-8")
        part.rename(kept)
        print(f"ran {page} in {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    outputs = json.loads(kept.read_text(encoding="utf-8"))
    return [Output(each["text"], tuple(each["figures"])) for each in outputs]


def _run(page: str, blocks: Iterable[Block]) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    # One thread: pages run side by side, and numbers shall not depend on how many cores there are.
    threads = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    with TemporaryDirectory() as folder:
        recipes = Path(folder) / "recipes"
        shutil.copytree(ROOT / "recipes", recipes)
        if "tutorials" not in page:  # pages of reference name the recipe, which takes minutes
            shutil.copy(TINY, recipes / "sirs-mini.toml")
        done = subprocess.run(
            [sys.executable, str(RUNNER), page],
            input=json.dumps([asdict(block) for block in blocks]),
            cwd=folder,
            env={**os.environ, **threads, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"a block of {page} failed:\n{done.stderr[-3000:]}")
    return done.stdout


@cache
def _hash_package() -> str:
    files = [*sorted((ROOT / "src" / "tampl").rglob("*.py")), RUNNER, TINY]
    files += [ROOT / "constraints.txt", *sorted((ROOT / "recipes").glob("*.toml"))]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
