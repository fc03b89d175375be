r"""Every certificate that a point (B, D, K) of a linear system can have, with verdicts in words.

Some hold anywhere: the fit of K, the anchoring of the scale, what a joint step does to ||B||_F,
what reconstruction would select. Others are about two kinds of points only: those of the local
convergence theorem about exact realisations, D B = C and K B = B A, and those of the incorrect
attractor about closed models without the task, K B = B A, D = 0, C Sigma B^T = 0. A point of
neither kind is refused unless it is asked for.

Reference: the paper's section "Analysis" and its appendix "Proofs and Supporting Results".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ...errors import InputError
from ..checks import RANK_TOLERANCE, TOLERANCE
from ..gradients import joint_gradient
from ..joint import shrinking_step_bound
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
    refuse_batch,
    refuse_inexact,
)
from ..selection import find_threshold
from ..updates import Round
from .anchoring import fit_transition, scale_anchoring
from .attractor import incorrect_attractor, require_incorrect_point, schur_test
from .convergence import certify_convergence
from .instability import detached_instability, spectral_ordering
from .rounds import certify_rounds
from .verdicts import Verdict

__all__ = ["HORIZON", "Finding", "certify", "certify_dimension"]

HORIZON = 10
"""Steps of the rollout error that is reported."""

ABOUT_EXACT = ("local convergence", "TAMPL rounds")
"""Names of the findings about exact realisations, which depend on the latent coordinates."""


@dataclass(frozen=True)
class Finding:
    """One certificate.

    Attributes:
        name: What was asked.
        verdict: The answer in a word or two; `DOES_NOT_APPLY` where the point is not of its kind.
        words: The answer as a sentence.
        numbers: What it rests on.
    """

    name: str
    verdict: Verdict
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
        weights: The weights of the losses; `rec` and `next` play no role.
        steps: The round of TAMPL in question.
        partial: Whether to accept a point that is neither exact nor closed without the task, and
            to give only the certificates that need neither.
    """
    refuse_batch(system)
    _refuse_models(r)
    exact, incorrect = is_exact(system, r), _is_incorrect(system, r)
    if not (exact or incorrect or partial):
        _refuse(system, r)
    return (
        _realisability(system, r.latent_dim),
        _exactness(system, r, exact),
        _selection(system, r.latent_dim, weights),
        _finding("transition fit", fit_transition(system, r, weights, steps.mu_transition)),
        _finding("scale anchoring", scale_anchoring(system, r)),
        _joint_scale(system, r, weights),
        *_about_incorrect(system, r, weights, incorrect),
        *_about_exact(system, r, weights, steps if exact else None),
    )


def certify_dimension(
    system: LinearSystem, latent_dim: int, *, weights: Weights, steps: Round
) -> tuple[Finding, ...]:
    """Gathers every certificate of the exact realisation that `realise` finds.

    Its encoder has orthonormal rows. In other latent coordinates it is as exact, but s_star, the
    scale condition and the spectral radius are others, and those findings say so. Where no exact
    realisation exists, only what can be said of the dimension itself.

    Arguments:
        system: One system, not a batch.
        latent_dim: The latent dimension d, from 1 to n.
        weights: The weights of the losses; `rec` and `next` play no role.
        steps: The round of TAMPL in question.
    """
    refuse_batch(system)
    if not 1 <= latent_dim <= system.n:
        raise InputError(f"`d` = {latent_dim} must be from 1 to n = {system.n}, the rows of `A`")
    found = _realisability(system, latent_dim)
    if found.verdict is not Verdict.EXISTS:
        return found, _selection(system, latent_dim, weights)
    findings = certify(system, realise(system, latent_dim), weights=weights, steps=steps)
    note = "This is for an encoder with orthonormal rows; another scaling may have another verdict"
    return tuple(
        replace(found, words=f"{found.words} {note}.") if found.name in ABOUT_EXACT else found
        for found in findings
    )


def _realisability(system: LinearSystem, latent_dim: int) -> Finding:
    smallest = len(observable_row_space(system))
    numbers = {"n": system.n, "m": system.m, "d": latent_dim, "smallest_d": smallest}
    verdict = Verdict.EXISTS
    words = (
        f"An exact realisation of dimension {latent_dim} exists; the smallest one has {smallest}."
    )
    try:
        realise(system, latent_dim)
    except NoRealisationError as error:
        # The rule is for callers of `realise`; only its reason is news here.
        verdict = Verdict.NONE_EXISTS
        words = f"No exact realisation of dimension {latent_dim} exists, since {error.reason}."
    except InputError as error:
        verdict, words = Verdict.UNDECIDED, f"{error}."
    return Finding("realisability", verdict, words, numbers)


def _exactness(system: LinearSystem, r: Realisation, exact: bool) -> Finding:
    rollout = float(np.sum(rollout_error(system, r, HORIZON)[1:]))
    numbers = {
        "l_cur": float(current_loss(system, r)),
        "l_tr": float(transition_loss(system, r)),
        "rollout": rollout,
    }
    verdict, what = (Verdict.EXACT, "is") if exact else (Verdict.INEXACT, "is not")
    words = (
        f"This {what} an exact realisation: L_cur = {numbers['l_cur']:.4g}, L_tr ="
        f" {numbers['l_tr']:.4g}, rollout error over {HORIZON} steps {rollout:.4g}."
    )
    return Finding("exactness", verdict, words, numbers)


def _selection(system: LinearSystem, latent_dim: int, weights: Weights) -> Finding:
    """The smallest weight of reconstruction at which some observable is lost."""
    name = "reconstruction"
    rows = [row for row in system.C if np.any(row)]
    if not rows or weights.cur == 0:
        words = "There is no task for reconstruction to lose."
        return Finding(name, Verdict.DOES_NOT_APPLY, words, {})
    found = [find_threshold(system, row, latent_dim=latent_dim, cur=weights.cur) for row in rows]
    first = min(found, key=lambda threshold: (threshold.rec, threshold.kept_last))
    numbers = {
        "lambda_rec": first.rec,
        "kept_before": first.kept_before,
        "kept_last": first.kept_last,
        "searched": min(threshold.searched for threshold in found),
    }
    lost = (
        f"the best {latent_dim} latent coordinates determine less than half of the variance of an"
        " observable"
    )
    if first.rec == 0:
        words = f"Without reconstruction already, {lost}."
        return Finding(name, Verdict.NO_ROOM, words, numbers)
    if np.isfinite(first.rec):
        # Of several observables a larger weight may bring one back at the cost of another.
        where = (
            "From lambda_rec = {:.4g} on" if system.m == 1 else "Just above lambda_rec = {:.4g}"
        )
        words = f"{where.format(first.rec)}, {lost}."
        return Finding(name, Verdict.HARMFUL, words, numbers)
    up_to = f"up to lambda_rec = {numbers['searched']:.4g}"
    if first.kept_last < 0.5 - RANK_TOLERANCE:
        words = f"No loss was found {up_to}, but where lambda_rec is large enough {lost}."
        return Finding(name, Verdict.HARMFUL, words, numbers)
    words = (
        f"With {latent_dim} latent coordinates no weight of reconstruction loses the task,"
        f" searched {up_to} and in the limit of large ones."
    )
    return Finding(name, Verdict.HARMLESS, words, numbers)


def _joint_scale(system: LinearSystem, r: Realisation, weights: Weights) -> Finding:
    bound = float(shrinking_step_bound(system, r, weights))
    if bound == 0 or _is_stationary(system, r, weights):
        words = "No joint step has to shrink the encoder."
        return Finding("joint scale", Verdict.NOT_FORCED, words, {"step_bound": 0.0})
    words = f"Every joint step below {bound:.4g} shrinks the norm of the encoder."
    return Finding("joint scale", Verdict.SHRINKS, words, {"step_bound": bound})


def _is_stationary(system: LinearSystem, r: Realisation, weights: Weights) -> bool:
    """Whether the gradient of the encoder is roundoff of its terms; its direction is then too."""
    norm = np.linalg.norm
    current = weights.cur * norm(r.D) * (norm(r.D) * norm(r.B) + norm(system.C))
    transition = weights.tr * (norm(r.K) + norm(system.A)) ** 2 * norm(r.B)
    size = 2 * (current + transition) * norm(system.Sigma)
    return bool(norm(joint_gradient(system, r, weights).B) <= TOLERANCE * size)


def _about_incorrect(
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
        return [Finding(name, Verdict.DOES_NOT_APPLY, words, {}) for name in checks]
    findings = []
    for name, check in checks.items():
        try:
            findings.append(_finding(name, check()))
        except InputError as error:
            # The instability and its ordering are for Sigma = I and symmetric A only.
            findings.append(Finding(name, Verdict.DOES_NOT_APPLY, f"{error}.", {}))
    return findings


def _about_exact(
    system: LinearSystem, r: Realisation, weights: Weights, steps: Round | None
) -> list[Finding]:
    if steps is None:
        words = "It is about exact realisations: D B = C, K B = B A."
        return [Finding(name, Verdict.DOES_NOT_APPLY, words, {}) for name in ABOUT_EXACT]
    theorem, rounds = ABOUT_EXACT
    return [
        _convergence(theorem, system, r, weights, steps),
        _finding(rounds, certify_rounds(system, r, weights, steps)),
    ]


def _convergence(
    name: str, system: LinearSystem, r: Realisation, weights: Weights, steps: Round
) -> Finding:
    """The theorem where the round is one of its own, else what it says of those that are."""
    single = steps.encoder_steps == steps.transition_steps == 1
    if single and steps.mu_encoder == steps.mu_transition:
        return _finding(name, certify_convergence(system, r, weights, steps.mu_encoder))
    found = _finding(name, certify_convergence(system, r, weights))
    at_another_step = ("mu", "error_bound", "coarse_bound")
    numbers = {key: value for key, value in found.numbers.items() if key not in at_another_step}
    mu_max = numbers["mu_max"]
    others = f"it certifies common steps up to {mu_max:.4g}" if mu_max > 0 else "it certifies none"
    words = (
        "The theorem is about rounds of one step per block and a common step size, and the round"
        f" asked for is another; of its own kind {others}."
    )
    return Finding(name, Verdict.DOES_NOT_APPLY, words, numbers)


def _refuse(system: LinearSystem, r: Realisation) -> None:
    try:
        refuse_inexact(system, r)
    except InputError as error:
        hint = "with `partial` only the certificates that need no exact one are given"
        raise InputError(f"{error}; {hint}") from None


def _refuse_models(r: Realisation) -> None:
    for name in "BDK":
        if (shape := getattr(r, name).shape)[:-2]:
            raise InputError(f"`{name}` must be one matrix, not a batch; its shape is {shape}")


def _is_incorrect(system: LinearSystem, r: Realisation) -> bool:
    try:
        require_incorrect_point(system, r)
    except InputError:
        return False
    return True


def _finding(name: str, record: Any) -> Finding:  # noqa: ANN401
    """A certificate's record as a finding, with those of its fields that are single numbers."""
    numbers = {}
    for field in fields(record):
        value = np.asarray(getattr(record, field.name))
        if value.ndim == 0 and value.dtype.kind in "bif":
            numbers[field.name] = value.item()
    return Finding(name, Verdict(record.verdict), str(record.words), numbers)
