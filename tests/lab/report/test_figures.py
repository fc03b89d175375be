import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.figure import Figure

from tampl.errors import InputError
from tampl.evaluation import Case, Cases, Curve, Score
from tampl.evaluation.comparison import Trial, compare_trials
from tampl.lab.report import figures
from tampl.lab.report.figures import drawing
from tampl.lab.report.outputs import choose_case, choose_labels
from tampl.lab.snapshots import Snapshots
from tampl.methods import METHODS

SCHEMATIC = Path(__file__).parents[3] / "docs" / "images" / "schematic.py"
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


def make_curve(generator, frames, spread=True):
    mean = generator.random((frames, 3))
    return Curve(mean, np.full_like(mean, 0.05) if spread else None)


def make_cases(labels=("K=1", "K=4", "K=4"), frames=6, shape=(12, 12)):
    generator = np.random.default_rng(0)
    same = make_curve(generator, frames, spread=False)
    cases = tuple(
        Case(
            index=index,
            label=label,
            microstate=generator.integers(0, 3, shape, dtype=np.uint8),
            reference=make_curve(generator, frames),
            predictions={
                "tampl": make_curve(generator, frames),
                "mean_field": same,
                "pair": make_curve(generator, frames, spread=False),
            },
        )
        for index, label in enumerate(labels)
    )
    return Cases(0.5 * np.arange(frames), ("S", "I", "R"), cases, (0, 1))


def make_predictions(methods, astray=0.0, **options):
    """Cases of several methods' runs on the same data."""
    cases = make_cases(**options)
    return {
        method: replace(
            cases,
            cases=tuple(
                replace(
                    case,
                    predictions={
                        method: Curve(
                            case.reference.mean + astray * number,
                            None if number % 2 else case.reference.std,
                        )
                    },
                )
                for case in cases.cases
            ),
        )
        for number, method in enumerate(methods)
    }


def make_snapshots(count=6, shape=(12, 12)):
    return Snapshots(np.arange(count) * 0.5, np.zeros((count, *shape), np.uint8))


def make_history(epochs=8):
    return [
        {
            "epoch": epoch,
            "losses": {
                "representation": {"total": 1.1 / epoch, "cur": 1 / epoch, "tr": 0.1 / epoch},
                "transition": {"total": 0.5 / epoch, "tr": 0.5 / epoch},
            },
            "latent": {"std_mean": 1.0, "std_min": 0.1 * epoch, "effective_rank": 3.0},
            "validation": 0.3 - 0.01 * epoch if epoch % 2 else None,
            "seconds": 1.0,
        }
        for epoch in range(1, epochs + 1)
    ]


def legend_texts(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_predictions_have_one_row_for_each_label():
    figure = figures.predictions(make_cases())
    assert len(figure.axes) == 2 * (1 + 3)
    assert [axis.get_title() for axis in figure.axes[:4]] == ["initial state", "S", "I", "R"]
    assert [figure.axes[n].get_ylabel() for n in (0, 4)] == ["K=1", "K=4"]
    assert legend_texts(figure) == ["Simulation", "TAMPL", "Mean field", "Pair approximation"]
    panel = figure.axes[1]
    assert len(panel.lines) == 4
    assert len(panel.collections) == 2


def test_predictions_of_chosen_labels():
    assert len(figures.predictions(make_cases(), labels=["K=4"]).axes) == 4
    with pytest.raises(InputError, match="K=7"):
        figures.predictions(make_cases(), labels=["K=7"])
    with pytest.raises(InputError, match="`labels`"):
        figures.predictions(make_cases(), labels=[])


@pytest.mark.parametrize(
    ("labels", "shown", "compared"),
    [
        (("K=1", "K=2", "K=4"), ("K=1", "K=4"), "K=4"),
        (("checkerboard", "four-bands", "half-plane"), ("half-plane", "four-bands"), "four-bands"),
        (("cold", "hot"), None, "cold"),
    ],
)
def test_families_that_differ_much_are_shown_where_they_are_known(labels, shown, compared):
    cases = make_cases(labels=labels)
    assert choose_labels(cases) == shown
    assert choose_case(cases).label == compared


def test_no_picture_is_cut_by_the_range_of_another():
    cases = make_cases(labels=("a", "b"))
    chains = [scale * np.random.default_rng(0).normal(size=(9, 3)) for scale in (9.0, 1.0)]
    shown = [replace(c, microstate=x) for c, x in zip(cases.cases, chains, strict=True)]
    figure = figures.predictions(replace(cases, cases=tuple(shown)), "chain")
    ranges = [np.ptp(figure.axes[place].get_xlim()) for place in (0, 4)]
    assert ranges[0] > 3 * ranges[1]
    assert figure.axes[1].get_ylim() == figure.axes[5].get_ylim()


def test_units_are_on_every_axis():
    cases = replace(make_cases(), units=("", "nm", "$a$"), time_unit="ps")
    drawn = [figures.predictions(cases), figures.twins(cases)]
    runs = {"tampl": replace(make_predictions(["tampl"])["tampl"], units=("", "nm", "$a$"))}
    runs = {"tampl": replace(runs["tampl"], time_unit="ps")}
    drawn.append(figures.comparison(runs, make_snapshots(), index=1))
    for figure in drawn:
        titles = [axis.get_title() for axis in figure.axes]
        assert {"S", "I / nm", "R / $a$"} <= set(titles)
        assert [axis.get_xlabel() for axis in figure.axes].count("time / ps") == 3
        assert figures.png_bytes(figure).startswith(PNG_MAGIC)
    assert "t = 0.5 ps" in [axis.get_title() for axis in drawn[-1].axes]
    strip = figures.strip({"K=1": make_snapshots()}, time_unit="ps")
    assert strip.axes[1].get_title() == "t = 0.5 ps"


def test_single_trajectories_have_no_band():
    cases = make_cases()
    lonely = tuple(
        replace(case, reference=Curve(case.reference.mean, None)) for case in cases.cases
    )
    panel = figures.predictions(replace(cases, cases=lonely)).axes[1]
    assert len(panel.collections) == 1  # that of TAMPL
    figures.twins(replace(cases, cases=lonely))


def test_microstates_without_families_have_a_row_each():
    figure = figures.predictions(make_cases(labels=("", "", "", "")))
    assert [figure.axes[4 * row].get_ylabel() for row in range(3)] == [
        "test 0",
        "test 1",
        "test 2",
    ]
    figure = figures.predictions(make_cases(labels=("coil", "coil")))
    assert figure.axes[4].get_ylabel() == "coil, test 1"
    twins = figures.twins(make_cases(labels=("", "")))
    assert "A" in [axis.get_ylabel() for axis in twins.axes]


def test_a_single_microstate_has_no_twins():
    with pytest.raises(InputError, match="no twins"):
        figures.twins(replace(make_cases(), twins=()))


def test_lattice_colours_follow_the_states():
    image = figures.predictions(make_cases()).axes[0].images[0]
    red, green, blue, _ = image.to_rgba(np.array([[1]]))[0, 0]
    assert red > 2 * max(green, blue)
    red, green, blue, _ = image.to_rgba(np.array([[2]]))[0, 0]
    assert blue > red
    assert len(set(image.to_rgba(np.array([[0]]))[0, 0][:3].round(1))) == 1


def test_particles_are_circles_in_the_colours_of_their_types():
    microstate = np.array([[0, 0, 1], [65535, 32768, 2], [9, 9, 0], [40000, 9, 1]], np.uint16)
    cases = make_cases()
    own = replace(cases.cases[0], microstate=microstate)
    cases = replace(cases, cases=(own,), twins=(own.index, own.index))
    panel = figures.predictions(cases, "particles").axes[0]
    [circles] = panel.collections
    # The particle that is absent is not drawn, and panels show the whole box.
    assert circles.get_offsets().tolist() == [[0.5, 0.5], [65535.5, 32768.5], [40000.5, 9.5]]
    one, other, same = circles.get_facecolors()
    assert (one == same).all() and (one != other).any()
    assert panel.get_xlim() == panel.get_ylim() == (0, 65536) and panel.get_aspect() == 1


@pytest.mark.parametrize("kind", ["vector", "somebody's spectrum"])
def test_vectors_and_unknown_kinds_with_one_axis_are_drawn_as_lines(kind):
    figure = figures.predictions(make_cases(shape=(12,)), kind)
    assert len(figure.axes[0].lines) == 1


@pytest.mark.parametrize("shape", [(12, 5), (4, 3, 2)])
def test_unknown_kinds_with_more_axes_are_drawn_as_pictures(shape):
    figure = figures.predictions(make_cases(shape=shape), "somebody's field")
    assert figure.axes[0].images[0].get_array().shape == (shape[0], np.prod(shape[1:]))


def test_twins_draw_what_is_the_same_for_both_once():
    figure = figures.twins(make_cases())
    assert len(figure.axes) == 2 + 3
    panel = next(axis for axis in figure.axes if axis.get_title() == "S")
    # Two simulations, two of TAMPL, two of the pair approximation, one mean field.
    assert len(panel.lines) == 7
    assert "Mean field (both)" in legend_texts(figure)
    assert sum(line.get_color() == drawing.MUTED for line in panel.lines) == 1


def test_training_curves_have_a_panel_for_each_stage_and_validation():
    figure = figures.training_curves(make_history())
    assert len(figure.axes) == 3
    assert [len(axis.lines) for axis in figure.axes] == [3, 1, 1]
    assert [axis.get_yscale() for axis in figure.axes] == ["log", "log", "linear"]
    assert list(figure.axes[2].lines[0].get_xdata()) == [1, 3, 5, 7]


def test_latent_scale():
    figure = figures.latent_scale(make_history())
    assert [len(axis.lines) for axis in figure.axes] == [2, 1]
    assert figure.axes[0].get_yscale() == "log"


@pytest.mark.parametrize(
    "history",
    [
        [],
        [{"epoch": 1, "losses": {}, "latent": None, "validation": None}],
        [{"epoch": 1, "losses": {"joint": {"total": float("nan")}}, "validation": float("nan")}],
        [{"epoch": 1, "losses": {"joint": {"total": 0.0}}, "latent": {"std_mean": 0.0}}],
        make_history(1),
    ],
)
def test_histories_with_gaps_can_be_drawn(history, tmp_path):
    figures.save_figure(figures.training_curves(history), tmp_path / "training")
    figures.save_figure(figures.latent_scale(history), tmp_path / "latent")


def test_comparison_has_one_row_for_each_method():
    figure = figures.comparison(make_predictions(METHODS), make_snapshots(), index=1)
    above, below = figure.subfigs
    assert [axis.get_title() for axis in above.axes[:2]] == ["$t = 0$", "$t = 0.5$"]
    assert len(below.axes) == 3 * len(METHODS)
    names = [axis.get_ylabel() for axis in below.axes[::3]]
    assert names[:3] == ["TAMPL", "TAMPL+", "JLD"]
    assert len(set(names)) == len(METHODS)
    assert [axis.get_title() for axis in below.axes[:3]] == ["S", "I", "R"]
    assert below.axes[-1].get_xlabel() == "time"
    assert figures.png_bytes(figure).startswith(PNG_MAGIC)


def test_comparison_draws_simulation_and_method_with_their_bands():
    cases = make_predictions(["tampl", "vamp"])
    figure = figures.comparison(cases, make_snapshots(), index=1)
    stochastic, deterministic = figure.subfigs[1].axes[0], figure.subfigs[1].axes[3]
    assert [len(axis.lines) for axis in (stochastic, deterministic)] == [2, 2]
    assert [len(axis.collections) for axis in (stochastic, deterministic)] == [2, 1]
    reference = cases["tampl"].case(1).reference.mean[:, 0]
    np.testing.assert_array_equal(stochastic.lines[0].get_ydata(), reference)
    assert stochastic.lines[1].get_color() == drawing.stroke_of("tampl").color


def test_a_method_that_goes_astray_does_not_flatten_the_others():
    calm = figures.comparison(make_predictions(["tampl", "jld"]), make_snapshots(), index=1)
    wild = make_predictions(["tampl", "jld"], astray=1e6)
    wild["jld"].case(1).predictions["jld"].mean[3] = np.nan
    astray = figures.comparison(wild, make_snapshots(), index=1)
    assert calm.subfigs[1].axes[0].get_ylim() == astray.subfigs[1].axes[0].get_ylim()
    assert figures.png_bytes(astray).startswith(PNG_MAGIC)


def test_comparison_where_the_system_is_unknown_or_microstates_are_vectors():
    cases = make_predictions(["tampl"], shape=(12,))
    figure = figures.comparison(cases, make_snapshots(1, shape=(12,)), index=1, kind="vector")
    assert [axis.get_visible() for axis in figure.subfigs[0].axes] == [True] + [False] * 5
    with pytest.raises(InputError, match="`predictions` is empty"):
        figures.comparison({}, make_snapshots(), index=0)


def test_a_strip_has_one_row_for_each_trajectory():
    figure = figures.strip({"K=1": make_snapshots(), "K=4": make_snapshots()})
    assert [row.axes[0].get_ylabel() for row in figure.subfigs] == ["K=1", "K=4"]
    assert all(row.axes[1].get_title() == "$t = 0.5$" for row in figure.subfigs)
    with pytest.raises(InputError, match="`rows` is empty"):
        figures.strip({})


def test_latent_scales_of_all_methods_are_in_one_panel():
    histories = {"tampl": [make_history(), make_history()], "jld": [make_history(4)], "vamp": [[]]}
    figure = figures.latent_scales(histories)
    (axis,) = figure.axes
    assert len(axis.lines) == 4
    assert axis.get_yscale() == "log"
    assert legend_texts(figure) == ["TAMPL", "JLD", "VAMP"]


KEY = "methods.jld.lambda_tr"


def draw_sweep(values, test=True):
    trials = [
        Trial(
            choice=str(value),
            seed=seed,
            score=Score(0.3, None) if test else None,
            validation=0.2 + 0.1 * seed,
            latent_std=0.5,
            collapsed=place == 0,
        )
        for place, value in enumerate(values)
        for seed in (0, 1)
    ]
    found = compare_trials(trials, choices=list(map(str, values)), seeds=(0, 1))
    return figures.sensitivity(found, values, key=KEY)


def test_sensitivity_shows_errors_and_latent_scale():
    errors, scale = draw_sweep([0.01, 0.1, 1.0]).axes
    assert errors.get_xscale() == "log"
    assert [len(axis.containers) for axis in (errors, scale)] == [2, 1]
    line = errors.containers[0].lines[0]
    assert list(line.get_xdata()) == [0.01, 0.1, 1.0]
    assert list(line.get_ydata()) == [0.25] * 3
    assert [text.get_text() for text in errors.get_xticklabels()] == ["0.01", "0.1", "1"]
    assert [text.get_text() for text in errors.get_legend().get_texts()] == ["validation", "test"]
    assert errors.get_xlabel() == KEY
    assert len(draw_sweep([1, 2], test=False).axes[0].containers) == 1


@pytest.mark.parametrize("values", [["a", "b"], [[8, 8], [16]], [True, False], [-1, 0, 2], [3]])
def test_any_value_of_a_recipe_has_a_place_on_the_axis(values):
    assert figures.png_bytes(draw_sweep(values)).startswith(PNG_MAGIC)


def test_a_sweep_without_runs_can_be_drawn():
    nothing = compare_trials([], choices=["4", "8"], seeds=[1])
    figure = figures.sensitivity(nothing, [4, 8], key="latent_dim")
    assert figures.png_bytes(figure).startswith(PNG_MAGIC)


def test_figures_are_saved_twice_and_reproducibly(tmp_path):
    png, pdf = figures.save_figure(figures.predictions(make_cases()), tmp_path / "one.v2")
    assert (png.name, pdf.name) == ("one.v2.png", "one.v2.pdf")
    assert png.read_bytes().startswith(PNG_MAGIC)
    assert pdf.read_bytes().startswith(b"%PDF")
    again = figures.save_figure(figures.predictions(make_cases()), tmp_path / "two")
    assert png.read_bytes() == again[0].read_bytes()
    assert pdf.read_bytes() == again[1].read_bytes()


def test_labels_and_names_are_text_and_not_formulas():
    cases = make_cases()
    cases.cases[0].predictions[r"$\frac{$"] = cases.cases[0].reference
    assert figures.png_bytes(figures.predictions(cases)).startswith(PNG_MAGIC)
    figure = figures.predictions(make_cases(labels=(r"$\frac{", "$a$", "c")))
    assert figures.png_bytes(figure).startswith(PNG_MAGIC)
    figure = figures.twins(make_cases(labels=(r"$\frac{$", "$a$", "c")))
    assert figures.png_bytes(figure).startswith(PNG_MAGIC)


def test_the_schematic_is_a_vector_drawing(tmp_path):
    spec = importlib.util.spec_from_file_location("schematic", SCHEMATIC)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    figure = module.schematic()
    assert isinstance(figure, Figure)
    _, pdf = figures.save_figure(figure, tmp_path / "schematic")
    assert b"/Subtype /Image" not in pdf.read_bytes()


def test_global_settings_are_left_alone():
    before = dict(rcParams)
    figures.png_bytes(figures.twins(make_cases()))
    assert dict(rcParams) == before


def test_every_method_has_a_line_of_its_own():
    lines = [drawing.stroke_of(method) for method in METHODS]
    assert len({line.color for line in lines}) == len(METHODS)
    assert drawing.stroke_of("reference").color not in {line.color for line in lines}


def test_unknown_predictions_share_spare_lines():
    line = drawing.stroke_of("mine")
    assert line == drawing.stroke_of("mine")
    assert line not in (drawing.stroke_of("tampl"), drawing.stroke_of("reference"))
