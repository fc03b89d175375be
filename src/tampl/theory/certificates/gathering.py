r"""Every certificate that a point (B, D, K) of a linear system can have, with verdicts in words.

Some hold anywhere: the fit of K, the anchoring of the scale, what a joint step does to ||B||_F,
what reconstruction would select. Others are about two kinds of points only: those of the local
convergence theorem about exact realisations, D B = C and K B = B A, and those of the incorrect
attractor about closed models without the task, K B = B A, D = 0, C Sigma B^T = 0. A point of
neither kind is refused unless `partial` certificates are asked for.

A file is a NumPy archive of A, C, Sigma and either a realisation B, D, K or only its dimension d.

Reference: the paper's section "Analysis" and its appendix "Proofs and Supporting Results".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZipFile

import numpy as np

from ...errors import InputError
from ..checks import LARGEST, TOLERANCE, require_moderate
from ..linear import (
    LinearSystem,
    Realisation,
    Weights,
    current_loss,
    rollout_error,
    transition_loss,
)
from ..realisability import (
    NoRealisationError,
    is_exact,
    observable_row_space,
    realise,
    require_exact,
    require_single,
)
from ..selection import find_threshold
from ..updates import Round, joint_gradient, shrinking_step_bound
from .anchoring import fit_transition, scale_anchoring
from .attractor import (
    detached_instability,
    incorrect_attractor,
    require_incorrect_point,
    schur_test,
    spectral_ordering,
)
from .convergence import certify_convergence, certify_rounds

__all__ = ["HORIZON", "Finding", "certify", "certify_dimension", "certify_file", "read_system"]

HORIZON = 10
"""Steps of the rollout error that is reported."""

ABOUT_EXACT = ("local convergence", "TAMPL rounds")
"""Names of the findings about exact realisations, which depend on the latent coordinates."""

MOST_BYTES = 2**30
"""Numbers in a file: matrices of that size would take days."""

SYSTEM, MODEL = ("A", "C", "Sigma"), ("B", "D", "K")
"""Names of the arrays in a file."""


@dataclass(frozen=True)
class Finding:
    """One certificate.

    Attributes:
        name: The name of the certificate.
        verdict: One word or two; "does not apply" where the theorem is about other points.
        words: The verdict as a sentence.
        numbers: The numbers behind the verdict.
    """

    name: str
    verdict: str
    words: str
    numbers: Mapping[str, Any]


def certify(
    system: LinearSystem,
    r: Realisation,
    *,
    weights: Weights,
    steps: Round,
    partial: bool = False,
) -> tuple[Finding, ...]:
    """Gathers every certificate of a point.

    Arguments:
        system: One system, not a batch.
        r: The point.
        weights: The weights of the losses; `rec` plays no role.
        steps: The round of TAMPL in question.
        partial: Whether to accept a point that is neither exact nor closed without the task, and
            to give only the certificates that need neither.
    """
    require_single(system)
    _refuse_absurd(weights)
    for name in MODEL:
        if (shape := getattr(r, name).shape)[:-2]:
            raise InputError(f"`{name}` must be one matrix, not a batch; its shape is {shape}")
        require_moderate(getattr(r, name), name)
    exact, incorrect = is_exact(system, r), _is_incorrect(system, r)
    if not (exact or incorrect or partial):
        try:
            require_exact(system, r)
        except InputError as error:
            hint = "with `partial` only the certificates that need no exact one are given"
            raise InputError(f"{error}; {hint}") from None
    return (
        _judge_dimension(system, r.latent_dim),
        _judge_exactness(system, r, exact),
        _judge_reconstruction(system, r.latent_dim, weights),
        _as_finding("transition fit", fit_transition(system, r, weights, steps.mu_transition)),
        _as_finding("scale anchoring", scale_anchoring(system, r)),
        _judge_joint_scale(system, r, weights),
        *_judge_incorrect_point(system, r, weights, incorrect),
        *_judge_exact_point(system, r, weights, steps if exact else None),
    )


def certify_dimension(
    system: LinearSystem, latent_dim: int, *, weights: Weights, steps: Round
) -> tuple[Finding, ...]:
    """Gathers every certificate of the exact realisation that `realise` finds.

    Its encoder has orthonormal rows. In other latent coordinates the realisation is as exact, but
    s_star, the scale condition and the spectral radius differ, and those findings say so. If no
    exact realisation exists, only the findings about the dimension are given.

    Arguments:
        system: One system, not a batch.
        latent_dim: The latent dimension d, from 1 to n.
        weights: The weights of the losses; `rec` plays no role.
        steps: The round of TAMPL in question.
    """
    require_single(system)
    _refuse_absurd(weights)
    if not 1 <= latent_dim <= system.n:
        raise InputError(f"`d` = {latent_dim} must be from 1 to n = {system.n}, the rows of `A`")
    found = _judge_dimension(system, latent_dim)
    if found.verdict == "none exists":
        return found, _judge_reconstruction(system, latent_dim, weights)
    findings = certify(system, realise(system, latent_dim), weights=weights, steps=steps)
    note = "This is for an encoder with orthonormal rows; another scaling may have another verdict"
    return tuple(
        replace(found, words=f"{found.words} {note}.") if found.name in ABOUT_EXACT else found
        for found in findings
    )


def read_system(path: str | Path) -> tuple[LinearSystem, Realisation | int]:
    """Reads a system with its realisation or, if there is none, its latent dimension.

    Arguments:
        path: The archive, as `numpy.savez` writes it.
    """
    arrays = _read_arrays(Path(path))
    if missing := [name for name in SYSTEM if name not in arrays]:
        raise InputError(f"{path} lacks `{'`, `'.join(missing)}`; give A, C and Sigma")
    system = LinearSystem(*(arrays[name] for name in SYSTEM))
    if present := [name for name in MODEL if name in arrays]:
        if len(present) < len(MODEL):
            raise InputError(f"{path} has only {present} of a realisation; give B, D and K, or d")
        model = Realisation(*(arrays[name] for name in MODEL))
        if "d" in arrays and _read_dimension(arrays, path) != model.latent_dim:
            raise InputError(
                f"`d` = {arrays['d'].item()} must be {model.latent_dim}, the rows of `B`"
            )
        return system, model
    return system, _read_dimension(arrays, path)


def certify_file(
    path: str | Path, *, weights: Weights, steps: Round, partial: bool = False
) -> tuple[Finding, ...]:
    """Gathers every certificate of the system and the realisation or dimension in a file.

    Arguments:
        path: The archive, as `numpy.savez` writes it.
        weights: The weights of the losses.
        steps: The round of TAMPL in question.
        partial: As in `certify`.
    """
    system, model = read_system(path)
    if isinstance(model, Realisation):
        return certify(system, model, weights=weights, steps=steps, partial=partial)
    return certify_dimension(system, model, weights=weights, steps=steps)


def _refuse_absurd(weights: Weights) -> None:
    for name, value in (("cur", weights.cur), ("tr", weights.tr)):
        if value > LARGEST:
            raise InputError(f"`weights.{name}` = {value} must be at most {LARGEST:.0e}")


def _judge_dimension(system: LinearSystem, latent_dim: int) -> Finding:
    smallest = len(observable_row_space(system))
    numbers = {"n": system.n, "m": system.m, "d": latent_dim, "smallest_d": smallest}
    try:
        realise(system, latent_dim)
    except NoRealisationError as error:
        # The rule in the message is for callers of `realise`; only its reason is news here.
        words = f"No exact realisation of dimension {latent_dim} exists, since {error.reason}."
        return Finding("realisability", "none exists", words, numbers)
    words = (
        f"An exact realisation of dimension {latent_dim} exists; the smallest one has {smallest}."
    )
    return Finding("realisability", "exists", words, numbers)


def _judge_exactness(system: LinearSystem, r: Realisation, exact: bool) -> Finding:
    rollout = float(np.sum(rollout_error(system, r, HORIZON)[1:]))
    numbers = {
        "l_cur": float(current_loss(system, r)),
        "l_tr": float(transition_loss(system, r)),
        "rollout": rollout,
    }
    verdict, what = ("exact", "is") if exact else ("inexact", "is not")
    words = (
        f"This {what} an exact realisation: L_cur = {numbers['l_cur']:.4g}, L_tr ="
        f" {numbers['l_tr']:.4g}, rollout error over {HORIZON} steps {rollout:.4g}."
    )
    return Finding("exactness", verdict, words, numbers)


def _judge_reconstruction(system: LinearSystem, latent_dim: int, weights: Weights) -> Finding:
    """The smallest weight of reconstruction at which some observable is lost."""
    name = "reconstruction"
    rows = [row for row in system.C if np.any(row)]
    if not rows or weights.cur == 0:
        words = "There is no task for reconstruction to lose."
        return Finding(name, "does not apply", words, {})
    found = [find_threshold(system, row, latent_dim=latent_dim, cur=weights.cur) for row in rows]
    first = min(found, key=lambda threshold: (threshold.rec, threshold.kept_last))
    numbers = {
        "lambda_rec": first.rec,
        "kept_before": first.kept_before,
        "kept_last": first.kept_last,
        "searched": first.searched,
    }
    lost = (
        f"the best {latent_dim} latent coordinates determine less than half of the variance of an"
        " observable"
    )
    if first.rec == 0:
        words = f"Without reconstruction already, {lost}."
        return Finding(name, "no room", words, numbers)
    if np.isfinite(first.rec):
        # Of several observables, a larger weight may bring one back at the cost of another.
        at = f"lambda_rec = {first.rec:.4g}"
        words = f"From {at} on, {lost}." if system.m == 1 else f"Just above {at}, {lost}."
        return Finding(name, "harmful", words, numbers)
    words = (
        f"With {latent_dim} latent coordinates no weight of reconstruction up to lambda_rec ="
        f" {numbers['searched']:.4g} loses the task."
    )
    return Finding(name, "harmless", words, numbers)


def _judge_joint_scale(system: LinearSystem, r: Realisation, weights: Weights) -> Finding:
    bound = float(shrinking_step_bound(system, r, weights))
    if bound == 0 or _is_stationary(system, r, weights):
        words = "No joint step has to shrink the encoder."
        return Finding("joint scale", "not forced", words, {"step_bound": 0.0})
    words = f"Every joint step below {bound:.4g} shrinks the norm of the encoder."
    return Finding("joint scale", "shrinks", words, {"step_bound": bound})


def _is_stationary(system: LinearSystem, r: Realisation, weights: Weights) -> bool:
    """Whether the gradient in B is roundoff of its terms, so that its direction says nothing."""
    norm = np.linalg.norm
    current = weights.cur * norm(r.D) * (norm(r.D) * norm(r.B) + norm(system.C))
    transition = weights.tr * (norm(r.K) + norm(system.A)) ** 2 * norm(r.B)
    size = 2 * (current + transition) * norm(system.Sigma)
    return bool(norm(joint_gradient(system, r, weights).B) <= TOLERANCE * size)


def _judge_incorrect_point(
    system: LinearSystem, r: Realisation, weights: Weights, applies: bool
) -> list[Finding]:
    checks: dict[str, Callable[[], Any]] = {
        "incorrect attractor": lambda: incorrect_attractor(system, r, weights),
        "Schur test": lambda: schur_test(system, r, weights),
        "detached instability": lambda: detached_instability(system, r, weights),
        "spectral ordering": lambda: spectral_ordering(system, r),
    }
    if not applies:
        words = "It is about closed models without the task: K B = B A, D = 0, C Sigma B^T = 0."
        return [Finding(name, "does not apply", words, {}) for name in checks]
    findings = []
    for name, check in checks.items():
        try:
            findings.append(_as_finding(name, check()))
        except InputError as error:
            # The instability and its ordering are for Sigma = I and symmetric A only.
            findings.append(Finding(name, "does not apply", f"{error}.", {}))
    return findings


def _judge_exact_point(
    system: LinearSystem, r: Realisation, weights: Weights, steps: Round | None
) -> list[Finding]:
    theorem, rounds = ABOUT_EXACT
    if steps is None:
        words = "It is about exact realisations: D B = C, K B = B A."
        return [Finding(name, "does not apply", words, {}) for name in ABOUT_EXACT]
    by_spectrum = _as_finding(rounds, certify_rounds(system, r, weights, steps))
    single = steps.encoder_steps == steps.transition_steps == 1
    if single and steps.mu_encoder == steps.mu_transition:
        found = certify_convergence(system, r, weights, steps.mu_encoder)
        return [_as_finding(theorem, found), by_spectrum]
    numbers = dict(_as_finding(theorem, certify_convergence(system, r, weights)).numbers)
    for name in ("mu", "error_bound", "coarse_bound"):  # those of a step that was not asked for
        del numbers[name]
    mu_max = numbers["mu_max"]
    words = (
        "The theorem is about rounds of one step per block with a common step size, not about this"
        " one; "
        + (f"it certifies steps up to {mu_max:.4g}." if mu_max > 0 else "it certifies none.")
    )
    return [Finding(theorem, "does not apply", words, numbers), by_spectrum]


def _is_incorrect(system: LinearSystem, r: Realisation) -> bool:
    try:
        require_incorrect_point(system, r)
    except InputError:
        return False
    return True


def _as_finding(name: str, record: Any) -> Finding:  # noqa: ANN401
    """A certificate as a finding, with those of its fields that are single numbers."""
    numbers = {}
    for field in fields(record):
        value = np.asarray(getattr(record, field.name))
        if value.ndim == 0 and value.dtype.kind in "bif":
            numbers[field.name] = value.item()
    return Finding(name, str(record.verdict), str(record.words), numbers)


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    wrong = f"{path} is no archive of arrays; write one with `numpy.savez`"
    if path.exists() and not path.is_file():
        raise InputError(wrong)
    # Opened here, because NumPy leaves a file open that turns out to be no archive.
    with path.open("rb") as stream:
        try:
            _refuse_oversized(stream, path)
            with np.load(stream, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except InputError:
            raise
        # Which one depends on the damaged byte: zlib, zipfile, tokenize and NumPy have their own.
        except Exception as error:
            raise InputError(wrong) from error
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise InputError(f"`{name}` in {path} must be real numbers; its type is {array.dtype}")
    if unknown := sorted(set(arrays) - {*SYSTEM, *MODEL, "d"}):
        raise InputError(f"{path} has unknown arrays {unknown}; names are A, C, Sigma, B, D, K, d")
    return arrays


def _refuse_oversized(stream: BinaryIO, path: Path) -> None:
    """Refuses an archive whose arrays would fill the memory once they are unpacked."""
    with ZipFile(stream) as archive:
        size = sum(member.file_size for member in archive.infolist())
    stream.seek(0)
    if size > MOST_BYTES:
        raise InputError(
            f"{path} holds {size / 2**30:,.1f} GiB of numbers once it is unpacked; at most "
            f"{MOST_BYTES / 2**30:.0f} GiB are read"
        )


def _read_dimension(arrays: dict[str, np.ndarray], path: str | Path) -> int:
    d = arrays.get("d")
    if d is None:
        raise InputError(f"{path} has no realisation; give B, D and K, or the dimension d")
    if d.size != 1 or not float(d.item()).is_integer():
        raise InputError(f"`d` must be one whole number; it is {d.tolist()}")
    return int(d.item())
