"""From trajectories in files to a store: `tampl import`.

The files are gone over three times: once to survey them, once to compute observables, and once to
write the shards. All that can be wrong is found before anything is written. The identity of the
store comes from the content of the files and from the options, so that the same import resumes an
interrupted one, to the same bytes, and another one is refused. `source.json` in the folder of the
store says where its data came from.
"""

import gc
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ...data.dataset import OWN_DATA
from ...data.generate import resumed
from ...data.manifest import Manifest, Shard, Split, lay_out_shards
from ...data.shards import Arrays, encode_labels, write_shard
from ...data.store import Store
from ...description import Description, Observable
from ...errors import InputError
from ...files import write_json
from ...frozen import Frozen
from ...progress import bar, say
from ...version import __version__
from .arrays import fill_in
from .formats import FORMATS, recognise_format
from .forms import Form, Survey, Timing, choose_form
from .observations import ComputedObservation, Observation, ReadObservation, find_observation
from .splits import SPLITS, Segment, SplitSpec, divide
from .tracks import Piece, Reading, Track, refuse_damage, split_address

__all__ = ["SOURCE", "ImportSpec", "import_trajectories"]

KERNEL = "import-1"
SOURCE = "source.json"

_MOST_OPEN = 32
"""Files of trajectories that are open at a time."""

_DIGITS = 6
"""Of an interval that is taken from times, which may be rounded to 32 bits."""


class ImportSpec(Frozen):
    """What to import.

    Attributes:
        files: The files, folders or arrays of trajectories.
        observables: The observables, each as `observations` explains.
        format: Name of the format; None to recognise it.
        interval: Time between two frames of the files; None where the files say it.
        time_unit: Its unit.
        every: Keep every such frame.
        reading: How to read the files.
        splits: How to divide the trajectories.
    """

    files: tuple[str, ...] = Field(min_length=1)
    observables: tuple[str, ...]
    format: str | None = None
    interval: float | None = None
    time_unit: str | None = None
    every: int = 1
    reading: Reading = Reading()
    splits: SplitSpec = SplitSpec()


@dataclass(frozen=True)
class _Kept:
    """The frames of a track that are kept.

    Attributes:
        frames: Their numbers in the file.
        slots: Their places among the frames of the store.
    """

    frames: NDArray[np.int64]
    slots: NDArray[np.int64]

    @property
    def length(self) -> int:
        """Places from the first to the last."""
        return int(self.slots[-1]) + 1

    def within(self, segment: Segment) -> "_Kept":
        """Those of a segment, which begins with the first of them."""
        first, last = np.searchsorted(self.slots, (segment.start, segment.stop))
        slots = self.slots[first:last]
        return _Kept(self.frames[first:last], slots - slots[:1])


def import_trajectories(spec: ImportSpec, out: str | Path, *, progress: bool = True) -> Store:
    """Makes a store of trajectories in files, or what is missing of it.

    Arguments:
        spec: What to import.
        out: The folder of the store; it is made where it does not exist.
        progress: Whether to show bars on standard error.
    """
    _refuse_values(spec)
    observations = [find_observation(text) for text in spec.observables]
    files = tuple(file for text in spec.files for file in _expand(text))
    spec = spec.model_copy(update={"files": files})
    tracks = _find_tracks(spec)
    digests = _digest_all(spec, tracks, observations, progress=progress)
    survey, timings = Survey(spec.reading), []
    with bar("reading", len(tracks), visible=progress) as advance:
        for track in tracks:
            timings.append(survey.add(track))
            advance(track.file.name)
    data = _Data(tracks, _thin(tracks, timings, spec.every), choose_form(survey))
    interval = _find_interval(spec, tracks, timings)
    groups = data.group()
    lengths = [kept.length for kept in data.kept]
    division = divide(tracks, lengths, groups, spec.splits).leave_out(
        lambda segment: len(data.kept[segment.track].within(segment).frames) < 2
    )
    splits = {name: _Part.of(division.splits[name], test=name == "test") for name in SPLITS}
    remarks = [*division.remarks, *(part.remark for part in splits.values() if part.remark)]
    observables = _describe(observations, data)
    y = _observe(observations, data, splits, progress=progress)
    _refuse_constant(y, observables)
    frames = max(segment.frames for segment in y)
    description = Description(
        system=OWN_DATA,
        parameters={},
        microstate=data.form.kind,
        observables=observables,
        interval=interval * spec.every,
        frames=frames,
        time_unit=_find_unit(spec, tracks),
    )
    plans = {name: part.plan(data, frames) for name, part in splits.items()}
    manifest = Manifest(
        description=description,
        seed=spec.splits.seed,
        kernel=f"{KERNEL}-{_identify(spec, digests)}",
        code_version=__version__,
        splits=plans,
        shards=lay_out_shards(plans, description),
    )
    for remark in remarks:
        say(remark)
    with resumed(Path(out), manifest, progress=progress) as store:
        _write_source(store, spec, digests, data.form, remarks)
        missing = store.missing()
        with bar("importing", len(missing), visible=progress) as advance:
            for shard in missing:
                holes = manifest.splits[shard.split].holes
                part = splits[shard.split]
                arrays = _make_arrays(shard, part, data, y, frames=frames, holes=holes)
                write_shard(store.path / shard.file, arrays, manifest=store.manifest, shard=shard)
                advance(shard.file)
    return store


def _refuse_values(spec: ImportSpec) -> None:
    if not spec.observables:
        raise InputError(
            "`--observable` is missing: give a file beside the trajectories, a name such as "
            "radius-of-gyration, or MODULE:FUNCTION"
        )
    if spec.interval is not None and not 0 < spec.interval < np.inf:
        raise InputError(f"`--interval` is {spec.interval}; it must be a positive number")
    if spec.every < 1:
        raise InputError(f"`--every` is {spec.every}; it must be at least 1")


def _expand(text: str) -> list[str]:
    """The files of a pattern such as `run*.npz:x`, which not every shell spells out."""
    path, inner = split_address(text)
    if path.exists():
        return [text]
    found = sorted(glob(str(path)))
    return [file if inner is None else f"{file}:{inner}" for file in found] or [text]


def _find_tracks(spec: ImportSpec) -> list[Track]:
    formats = {text: spec.format or recognise_format(text) for text in spec.files}
    (first, name), *others = formats.items()
    for text, other in others:
        if other != name:
            raise InputError(
                f"{first} is of format {name} and {text} of format {other}: import one format at "
                "a time"
            )
    if len(formats) < len(spec.files):
        twice = next(text for text in spec.files if spec.files.count(text) > 1)
        raise InputError(f"{twice} is given twice; give each trajectory once")

    @lru_cache(maxsize=_MOST_OPEN)
    def open_tracks(text: str) -> list[Track]:
        # MDAnalysis closes a file when its reader is collected, which is part of a cycle.
        if open_tracks.cache_info().misses % _MOST_OPEN == 0:
            gc.collect()
        with refuse_damage(text):
            return FORMATS[name](text, spec.reading)

    # A track keeps its file open, and a process may open some hundred files only.
    def read_again(text: str, number: int, frames: range) -> Piece:
        return open_tracks(text)[number].read(frames)

    tracks = [
        replace(track, read=partial(read_again, text, number))
        for text in spec.files
        for number, track in enumerate(open_tracks(text))
    ]
    for track in tracks:
        if track.frames < 2:
            raise InputError(
                f"{track.name} has {track.frames} frame; a trajectory needs two at least"
            )
    return tracks


def _thin(tracks: Sequence[Track], timings: Sequence[Timing], every: int) -> list[_Kept]:
    kept = []
    for track, timing in zip(tracks, timings, strict=True):
        frames = np.flatnonzero(timing.present & (timing.places % every == 0))
        if len(frames) < 2:
            raise InputError(
                f"{track.name} keeps {len(frames)} of {track.frames} frames with `--every` "
                f"{every}; a trajectory needs two at least"
            )
        slots = timing.places[frames] // every
        kept.append(_Kept(frames, slots - slots[0]))
    return kept


def _find_interval(spec: ImportSpec, tracks: Sequence[Track], timings: Sequence[Timing]) -> float:
    known = [
        (track, timing.interval)
        for track, timing in zip(tracks, timings, strict=True)
        if timing.interval is not None
    ]
    for track, interval in known[1:]:
        if abs(interval - known[0][1]) > 1e-3 * known[0][1]:
            raise InputError(
                f"{track.name} has frames {interval:g} apart, and {known[0][0].name} "
                f"{known[0][1]:g}: give trajectories with one interval between frames"
            )
    if spec.interval is not None:
        return spec.interval
    if not known:
        raise InputError(
            f"`--interval` is missing, and {tracks[0].name} does not say the time between its "
            "frames: give it"
        )
    return float(f"{known[0][1]:.{_DIGITS}g}")


def _find_unit(spec: ImportSpec, tracks: Sequence[Track]) -> str:
    if spec.time_unit is not None:
        return spec.time_unit
    return tracks[0].time_unit if spec.interval is None else ""


@dataclass(frozen=True)
class _Data:
    """The trajectories of an import: their files, the frames to keep, and their stored form."""

    tracks: Sequence[Track]
    kept: Sequence[_Kept]
    form: Form

    def blocks(self, segment: Segment) -> Iterator[NDArray[Any]]:
        """Its microstates in stored form, in turn."""
        track = self.tracks[segment.track]
        frames = self.kept[segment.track].within(segment).frames
        for part, piece in track.pieces(_cover(frames)):
            chosen = np.isin(np.asarray(part), frames)
            if chosen.any():
                yield self.form.store(_choose(piece, chosen), track.name)

    def group(self) -> list[list[int]]:
        """The tracks that share an initial microstate, a list for each of those."""
        places: dict[bytes, list[int]] = {}
        for number, (track, kept) in enumerate(zip(self.tracks, self.kept, strict=True)):
            first = int(kept.frames[0])
            stored = self.form.store(track.cut(range(first, first + 1)), track.name)
            digest = hashlib.sha256(np.ascontiguousarray(stored[0]).tobytes()).digest()
            places.setdefault(digest, []).append(number)
        return list(places.values())


def _cover(frames: NDArray[np.int64]) -> range:
    """The shortest range that holds all frames."""
    steps = np.diff(frames)
    step = int(steps[0]) if len(steps) and (steps == steps[0]).all() else 1
    return range(int(frames[0]), int(frames[-1]) + 1, step)


def _choose(piece: Piece, chosen: NDArray[np.bool_]) -> Piece:
    if chosen.all():
        return piece
    types = piece.types
    if types is not None and types.ndim == 2:
        types = types[chosen]
    return Piece(
        piece.x[chosen],
        types=types,
        box=None if piece.box is None else piece.box[chosen],
    )


@dataclass(frozen=True)
class _Part:
    """A split: its segments in the order of its rows.

    Attributes:
        groups: The segments of each initial microstate.
        members: References from each; 0 for whole trajectories.
        remark: What to say about how it was made; empty for nothing.
    """

    groups: Sequence[Sequence[Segment]]
    members: int
    remark: str = ""

    @classmethod
    def of(cls, groups: Sequence[Sequence[Segment]], *, test: bool) -> "_Part":
        """References where every test state has several trajectories, whole ones elsewhere."""
        sizes = [len(group) for group in groups]
        fewest = min(sizes)
        if test and fewest > 1:
            left = sum(sizes) - fewest * len(sizes)
            remark = f"{left} test trajectories are left out, so that each state has {fewest}"
            return cls([group[:fewest] for group in groups], fewest, remark if left else "")
        if len(set(sizes)) == 1:
            return cls(groups, 0)
        return cls([[segment] for group in groups for segment in group], 0)

    @property
    def segments(self) -> list[Segment]:
        """All segments, those of one initial microstate one after another."""
        return [segment for group in self.groups for segment in group]

    def plan(self, data: "_Data", frames: int) -> Split:
        """The entry of the manifest."""
        holes = any(
            len(data.kept[segment.track].within(segment).frames) < frames
            for segment in self.segments
        )
        runs = 1 if self.members else len(self.groups[0])
        return Split(count=len(self.groups), members=self.members, runs=runs, holes=holes)


def _describe(observations: Sequence[Observation], data: _Data) -> tuple[Observable, ...]:
    found = [o for each in observations for o in each.describe(data.form.kind, data.tracks)]
    symbols = [observable.symbol for observable in found]
    for symbol in symbols:
        if symbols.count(symbol) > 1:
            raise InputError(
                f"two observables have the symbol {symbol!r}: name the columns apart, or give "
                "`symbol=...` to one"
            )
    return tuple(found)


def _observe(
    observations: Sequence[Observation],
    data: _Data,
    splits: Mapping[str, _Part],
    *,
    progress: bool,
) -> dict[Segment, NDArray[np.float64]]:
    """The macrostates of every segment at the frames that exist, (F, m)."""
    needed = [kept.frames for kept in data.kept]
    read = {
        o.text: o.read(data.tracks, needed) for o in observations if isinstance(o, ReadObservation)
    }
    computed = [o for o in observations if isinstance(o, ComputedObservation)]
    segments = [segment for part in splits.values() for segment in part.segments]
    found: dict[Segment, NDArray[np.float64]] = {}
    with bar("observing", len(segments), visible=progress and bool(computed)) as advance:
        for segment in segments:
            frames = data.kept[segment.track].within(segment).frames
            name = data.tracks[segment.track].name
            values = {text: whole[segment.track][frames] for text, whole in read.items()}
            for each in computed:
                blocks = data.blocks(segment)
                values[each.text] = each.observe(blocks, data.form.kind, name)
            found[segment] = np.concatenate([values[o.text] for o in observations], axis=1)
            advance(name)
    return found


def _refuse_constant(
    y: Mapping[Segment, NDArray[np.float64]], observables: Sequence[Observable]
) -> None:
    lowest = np.min([values.min(axis=0) for values in y.values()], axis=0)
    highest = np.max([values.max(axis=0) for values in y.values()], axis=0)
    for observable, low, high in zip(observables, lowest, highest, strict=True):
        if low == high:
            raise InputError(
                f"the observable `{observable.name}` is {low:g} in every frame of every "
                "trajectory, and there is nothing to learn of it: leave it out"
            )


def _make_arrays(
    shard: Shard,
    part: _Part,
    data: _Data,
    y: Mapping[Segment, NDArray[np.float64]],
    *,
    frames: int,
    holes: bool,
) -> Arrays:
    """The datasets of a shard."""
    groups = part.groups[shard.start : shard.start + shard.count]
    segments = [segment for group in groups for segment in group]
    kind = data.form.kind
    macrostates = np.full((len(segments), frames, y[segments[0]].shape[1]), np.nan)
    present = np.zeros((len(segments), frames), dtype=np.uint8)
    for row, segment in enumerate(segments):
        slots = data.kept[segment.track].within(segment).slots
        macrostates[row, slots], present[row, slots] = y[segment], 1
    if part.members:
        leading = (len(groups), part.members)
        first = [next(data.blocks(group[0]))[0] for group in groups]
        arrays = {
            "initial": np.stack(first),
            "macrostates": macrostates.reshape(*leading, *macrostates.shape[1:]),
        }
    else:
        x = np.zeros((len(segments), frames, *kind.shape), kind.dtype)
        for row, segment in enumerate(segments):
            slots, done = data.kept[segment.track].within(segment).slots, 0
            for block in data.blocks(segment):
                x[row, slots[done : done + len(block)]] = block
                done += len(block)
        arrays = {"microstates": x, "macrostates": macrostates}
    rows = len(groups) if part.members else len(segments)
    arrays["labels"] = encode_labels([""] * rows)
    if holes:
        arrays["present"] = present.reshape(arrays["macrostates"].shape[:-1])
    return arrays


def _digest_all(
    spec: ImportSpec,
    tracks: Sequence[Track],
    observations: Sequence[Observation],
    *,
    progress: bool,
) -> dict[str, list[tuple[str, str]]]:
    """The files that the store is made of, with the SHA-256 of each, by what they are for."""
    beside = [path for each in observations for path in each.sources(tracks)]
    for text in (spec.reading.times, spec.reading.types, spec.reading.box):
        path = None if text is None else split_address(fill_in(text, tracks[0].file))[0]
        if path is not None and path.exists():
            beside += [split_address(fill_in(text or "", track.file))[0] for track in tracks]
    if spec.reading.topology is not None:
        beside.append(spec.reading.topology)
    groups = {"trajectories": [track.file for track in tracks], "beside": beside}
    unique = {name: list(dict.fromkeys(paths)) for name, paths in groups.items()}
    found: dict[str, list[tuple[str, str]]] = {}
    with bar("digesting", sum(map(len, unique.values())), visible=progress) as advance:
        for name, paths in unique.items():
            found[name] = []
            for path in paths:
                found[name].append((str(path), _digest(path)))
                advance(path.name)
    _refuse_duplicates(found["trajectories"])
    return found


def _refuse_duplicates(files: Sequence[tuple[str, str]]) -> None:
    seen: dict[str, str] = {}
    for path, digest in files:
        if digest in seen:
            raise InputError(
                f"{path} has the same content as {seen[digest]}: give each trajectory once"
            )
        seen[digest] = path


def _digest(path: Path) -> str:
    """SHA-256 of a file, or of the names and contents of all files in a folder."""
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    for file in files:
        if file is not path:
            digest.update(f"{file.relative_to(path).as_posix()}\n".encode())
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def _identify(spec: ImportSpec, digests: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """A hash of the contents of all files and of the options, but not of where the files are."""
    options = spec.model_dump(mode="json", exclude={"files": True, "reading": {"topology"}})
    options["observables"] = [_leave_out_place(text) for text in spec.observables]
    for key in ("times", "types", "box"):
        options["reading"][key] = _leave_out_place(options["reading"][key] or "")
    arrays = [split_address(text)[1] for text in spec.files]
    contents = {name: [digest for _, digest in files] for name, files in digests.items()}
    tree = {"options": options, "arrays": arrays, "contents": contents}
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()


def _leave_out_place(text: str) -> str:
    """The name of an array without that of its file; what is no file stays as it is."""
    path, inner = split_address(text)
    if "{" in text or (text and path.exists()):
        return f"file:{inner or ''}"
    return text


def _write_source(
    store: Store,
    spec: ImportSpec,
    digests: Mapping[str, Sequence[tuple[str, str]]],
    form: Form,
    remarks: Sequence[str],
) -> None:
    path = store.path / SOURCE
    if not path.exists():
        files = {
            name: [{"file": file, "sha256": digest} for file, digest in pairs]
            for name, pairs in digests.items()
        }
        options = spec.model_dump(mode="json")
        write_json(path, {**files, "options": options, **form.notes, "remarks": list(remarks)})
