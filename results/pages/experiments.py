"""The paper's experiments at its sizes: what a page says of each that no record holds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper.

    Attributes:
        recipe: Name of the recipe, of the folder of its kept runs, and of its figures.
        title: Title of its section.
        name: What a table calls it beside other experiments.
        subject: The same with its size.
        shown: The two test microstates of the figures.
        colours: What the colours of their pictures mean.
        watched: Observables whose spread is told seed by seed.
        trials: Where a page shows what was tried: the anchor of a heading.
        aside: Title before the headings of its parts; its own section needs none where empty.
        claim: What the paper says of the spread; empty where it says nothing.
        peaking: Observables whose mean trajectory has a peak of interest.
        ledger: The ledger of the runs, where one was kept.
        lender: Recipe whose weights of penalties its own began with, where it began with others'.
    """

    recipe: str
    title: str
    name: str
    subject: str
    shown: str
    colours: str
    watched: tuple[str, ...]
    trials: str
    aside: str = ""
    claim: str = ""
    peaking: tuple[str, ...] = ()
    ledger: str | None = None
    lender: str | None = None

    @property
    def runs(self) -> tuple[str, ...]:
        """The folders of kept runs that its scores are read from or compared with."""
        return (self.recipe,) if self.lender is None else (self.recipe, self.lender)

    def heading(self, text: str) -> str:
        """The heading of a part of its section."""
        return f"### {self.aside}: {text}" if self.aside else f"### {text[0].upper()}{text[1:]}"


SIRS = Experiment(
    recipe="sirs",
    title="SIRS at the paper's size",
    name="SIRS",
    subject="the SIRS epidemic of 100 x 100 sites",
    shown="one cluster of infected sites and four",
    colours="infected sites are red, recovered ones blue",
    watched=("I",),
    trials="what-was-tried",
    peaking=("I", "R"),
    ledger="plan.json",
)
MIXING = Experiment(
    recipe="mixing",
    title="Binary mixing at the paper's size",
    name="mixing",
    subject="the binary mixture of 512 particles",
    shown="a half-plane and four bands",
    colours="particles of type 1 are blue, those of type 2 orange",
    watched=("S", "K"),
    trials="binary-mixing-at-the-papers-size-trials",
    aside="Binary mixing at the paper's size",
    claim="The paper says that TAMPL underestimates the variability of the mixture.",
    lender="sirs-mini",
)
EXPERIMENTS = (SIRS, MIXING)
