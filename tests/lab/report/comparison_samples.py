"""A comparison with all that may happen: ties, few seeds, failures, no distribution, collapse."""

from tampl.evaluation import Score
from tampl.evaluation.comparison import Trial, compare_trials

SEEDS = (42, 43, 44)
BASELINES = {
    "mean_field": Score(1.7, None),
    "mean_trajectory": Score(0.6, None),
    "floor": Score(0.05, 0.002),
}
SCORES = {
    "tampl": [Score(0.10, 0.010), Score(0.12, 0.012), Score(0.11, 0.011)],
    "jld": [Score(0.20, 0.030), Score(0.22, 0.032), Score(0.21, 0.031)],
    "jld-vic": [Score(0.11, 0.010), Score(0.11, 0.012), Score(0.11, 0.012)],
    "vamp": [Score(0.13, None), Score(0.14, None)],
    "macro_2": [Score(0.4, 0.1)],
}


def make_comparison():
    runs = [
        Trial(method, seed, score, latent_std=1.5, collapsed=method == "jld" and seed == 43)
        for method, scores in SCORES.items()
        for seed, score in zip(SEEDS, scores, strict=False)
    ]
    runs += [Trial("jld-sig", seed, failure="training diverged & stopped") for seed in SEEDS]
    methods = [*SCORES, "jld-sig", "next-macro"]
    return compare_trials(runs, BASELINES, choices=methods, seeds=SEEDS)
