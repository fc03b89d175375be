"""The page in a browser: what a user does, and what is seen then.

Needs playwright (the extra `browser`) and a Chromium or Chrome on the machine.
"""

import base64
import json
import shutil
import time

import numpy as np
import pytest
from serving import served

from tampl.evaluation.metrics import rmse
from tampl.studio import app as studio_app
from tampl.studio import open_exhibit
from tampl.studio.app import make_app
from tampl.studio.exhibits import Exhibit, HeldOut, ShownModel
from tampl.studio.live import simulate_live

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
if BROWSER is None:
    pytest.skip(
        "no browser is installed: the studio's page is not tested", allow_module_level=True
    )
playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: the studio's page is not tested"
)

pytestmark = pytest.mark.slow

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
DESK, PHONE, SMALL = (1280, 900), (390, 844), (360, 740)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=BROWSER, args=list(FLAGS))
        yield found
        found.close()


@pytest.fixture(scope="module")
def address(exhibit):
    with served(make_app(exhibit)) as port:
        yield f"http://127.0.0.1:{port}/"


def read_sites(packed):
    return np.frombuffer(base64.b64decode(packed["data"]), np.uint8).reshape(packed["shape"])


class Visit:
    """A page with what it asked for and what went wrong."""

    def __init__(self, browser, address, size, **options):
        width, height = size
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, accept_downloads=True, **options
        )
        self.page = self.context.new_page()
        self.hosts, self.faults, self.forecasts, self.open = set(), [], [], set()
        self.page.on("request", self._begin)
        self.page.on("console", lambda m: self.faults.append(m.text) if m.type == "error" else 0)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("requestfinished", self._end)
        self.page.on("requestfailed", self._end)
        self.page.goto(address)
        self.page.wait_for_selector("body[data-ready]")
        self.settle()

    def _begin(self, request):
        self.hosts.add(request.url.split("/")[2])
        self.open.add(request)

    def _end(self, request):
        self.open.discard(request)
        if request.url.endswith("/forecast"):
            self.forecasts.append(request)

    def until(self, expression, argument=None):
        """Waits for an expression of the page; its policy lets no test evaluate text in it."""
        deadline = time.monotonic() + 20
        while not self.page.evaluate(expression, argument):
            assert time.monotonic() < deadline, expression
            self.page.wait_for_timeout(20)

    def settle(self):
        """Waits until nothing is asked for any more and everything is drawn."""
        deadline, quiet = time.monotonic() + 20, 0
        while quiet < 4:
            assert time.monotonic() < deadline
            self.page.wait_for_timeout(25)
            quiet = 0 if self.open else quiet + 1

    def picture(self, selector="#charts canvas >> nth=1"):
        return self.page.locator(selector).evaluate("canvas => canvas.toDataURL()")

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    def asked(self):
        """The state of the last question."""
        return json.loads(self.forecasts[-1].post_data)["state"]


@pytest.fixture
def visit(browser, address):
    """Opens the page; afterwards nothing may have gone wrong or elsewhere."""
    visits = []

    def open_page(size=DESK, at=None, **options):
        visits.append(Visit(browser, at or address, size, **options))
        return visits[-1]

    yield open_page
    for found in visits:
        found.context.close()
        assert found.faults == []
        assert len(found.hosts) == 1


def test_a_stroke_changes_the_curves_and_undo_takes_it_back(visit):
    seen = visit()
    before, state = seen.picture(), seen.asked()
    box = seen.page.locator("#editor").bounding_box()
    seen.page.mouse.move(box["x"] + 40, box["y"] + 150)
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + 200, box["y"] + 150, steps=8)
    seen.page.mouse.up()
    seen.settle()
    assert seen.text("#state-label") == "painted"
    assert seen.asked() != state and seen.picture() != before
    seen.page.click("#undo")
    seen.settle()
    assert seen.asked() == state
    assert seen.picture() == before  # the seed is fixed: curves do not jitter


def test_clear_and_the_brush_paint_what_they_say(visit):
    seen = visit()
    seen.page.click("#clear")
    seen.settle()
    assert set(seen.asked()["data"]) <= {"A", "="}
    seen.page.click("#colours button:has-text('recovered')")
    seen.page.locator("#size").fill("1")
    seen.page.locator("#editor").click()
    seen.settle()
    sites = read_sites(seen.asked())
    assert sorted(sites.ravel())[-2:] == [0, 2]
    label = seen.page.locator("#editor").get_attribute("aria-label")
    assert "98 % susceptible" in label and "2 % recovered" in label


def test_a_simulation_starts_is_drawn_and_stops(visit):
    seen = visit()
    before = seen.picture()
    seen.page.click("#simulate")
    seen.until("document.querySelector('#progress').textContent.startsWith('64')")
    seen.until("!document.querySelector('#scores').hidden")
    assert seen.picture() != before
    assert seen.page.locator("#scores tbody tr").count() == 2
    seen.until("document.querySelector('#simulate').textContent.includes('again')")
    assert seen.page.locator("#frame").input_value() == "5"
    seen.page.click("#clear")  # another state: what was simulated is of no use
    seen.settle()
    assert seen.page.locator("#scores").is_hidden()
    assert seen.text("#simulate") == "Simulate"


def test_a_running_simulation_can_be_stopped(visit, monkeypatch):
    def slow(*arguments, **settings):
        for piece in simulate_live(*arguments, **settings):
            # Once the page counts a trajectory, there is time to stop the others.
            time.sleep(4 if piece.member else 0.15)
            yield piece

    monkeypatch.setattr(studio_app, "simulate_live", slow)
    seen = visit()
    seen.page.click("#simulate")
    seen.until("/^[1-9]/.test(document.querySelector('#progress').textContent)")
    assert seen.text("#simulate") == "Stop"
    seen.page.click("#simulate")
    said = seen.text("#progress")
    assert not said.startswith("64")
    seen.page.wait_for_timeout(500)
    assert seen.text("#progress") == said
    assert seen.text("#simulate") == "Simulate again"


def test_the_scores_on_the_page_are_those_of_python(visit, exhibit, client):
    seen = visit()
    # The page's own modules, with members that Python knows.
    start = client.get("/api/exhibit").json()["start"]
    ahead = client.post(
        "/api/models/0/forecast", json={"state": start["state"], "y0": start["y"]}
    ).json()
    state = read_sites(start["state"])
    y = exhibit.system.simulate_from(state, members=5, seed=1).macrostates
    normalization = exhibit.models[0].model.normalization
    found = seen.page.evaluate(
        """async ([answer, paths, scale]) => {
            const { Truth, score } = await import("/page/truth.js");
            const truth = new Truth();
            truth.add({ member: 0, first: 0, macrostates: paths, microstates: null, seconds: 0 });
            return score(answer, truth, scale);
        }""",
        [ahead, y.tolist(), normalization.std.tolist()],
    )
    standard = [normalization.standardize(v)[None, 1:] for v in (ahead["mean"], y.mean(axis=0))]
    assert found["rmse"] == pytest.approx(rmse(*standard))
    q = np.array(ahead["quantiles"])[:, 1:]
    for share, (low, high) in zip(found["shares"], ((2, 4), (1, 5), (0, 6)), strict=True):
        assert share == pytest.approx(np.mean((y[:, 1:] >= q[low]) & (y[:, 1:] <= q[high])))
    variance = (y[:, 1:] / normalization.std).var(axis=0, ddof=1).mean()
    assert found["floor"] == pytest.approx(np.sqrt(variance * (1 / 5 + 1 / 64)))


def test_models_are_switched_on_and_off(visit):
    seen = visit()
    chips = seen.page.locator("#models button")
    both = seen.picture()
    chips.nth(1).click()
    seen.settle()
    assert chips.nth(1).get_attribute("aria-pressed") == "false"
    assert seen.picture() != both
    assert "TAMPL" not in seen.text("#legend").split("\n")
    chips.nth(1).click()
    seen.settle()
    assert seen.picture() == both


def test_a_state_outside_of_the_training_data_is_warned_of(browser, visit, trained):
    exhibit = open_exhibit([trained.runs / "tampl+-0"], device="cpu")
    model = exhibit.models[0].model
    model.envelope.radius.mul_(0.5)
    with served(make_app(exhibit)) as port:
        seen = visit(at=f"http://127.0.0.1:{port}/")
        seen.page.click("#clear")
        seen.page.click("#colours button:has-text('recovered')")
        seen.page.locator("#size").fill("12")
        box = seen.page.locator("#editor").bounding_box()
        for k in (0.1, 0.5, 0.9):
            for j in (0.1, 0.5, 0.9):
                seen.page.mouse.click(box["x"] + k * box["width"], box["y"] + j * box["height"])
        seen.settle()
        answer = seen.forecasts[-1].response().json()
        assert answer["warnings"]
        for line in answer["warnings"]:
            assert line in seen.text("#warnings")
        seen.context.close()
    seen.context = browser.new_context()


def test_a_file_that_is_no_microstate_is_said_to_be_none(visit, tmp_path):
    seen = visit()
    (tmp_path / "bad.npy").write_bytes(b"no array at all")
    np.save(tmp_path / "wrong.npy", np.zeros((3, 3), np.uint8))
    np.save(tmp_path / "good.npy", np.eye(8, dtype=np.uint8))
    before = seen.asked()
    for name, words in (("bad", "numpy.save"), ("wrong", "shape (3, 3)")):
        seen.page.set_input_files("#upload", tmp_path / f"{name}.npy")
        seen.until(
            "words => document.querySelector('#problem').textContent.includes(words)", words
        )
    assert seen.asked() == before
    seen.page.set_input_files("#upload", tmp_path / "good.npy")
    seen.until("document.querySelector('#problem').textContent === ''")
    seen.settle()
    assert seen.text("#state-label") == "good.npy"
    with seen.page.expect_download() as download:
        seen.page.click("#download")
    assert np.array_equal(np.load(download.value.path()), np.eye(8))
    # A refused upload is an answer of the server that the browser notes too.
    seen.faults[:] = [fault for fault in seen.faults if "422" not in fault]


def test_curves_are_downloaded_as_numbers_and_as_a_picture(visit):
    seen = visit()
    with seen.page.expect_download() as download:
        seen.page.click("#csv")
    head, *rows = download.value.path().read_text().splitlines()
    names = [name.strip('"') for name in head.split(",")]
    assert names[0] == "time" and "I TAMPL+ mean" in names and "R pair" in names
    table = np.array([[float(v) for v in row.split(",")] for row in rows])
    answers = [f.response().json() for f in seen.forecasts if "/models/0/" in f.url]
    mean = np.array(answers[-1]["mean"])
    assert np.allclose(table[:, names.index("I TAMPL+ mean")], mean[:, 1])
    with seen.page.expect_download() as download:
        seen.page.click("#png")
    assert download.value.path().read_bytes().startswith(b"\x89PNG")


def test_values_are_read_under_the_pointer_and_the_axis_can_be_logarithmic(visit):
    seen = visit()
    linear = seen.picture()
    seen.page.check("#log")
    seen.settle()
    assert seen.picture() != linear
    seen.page.locator("#charts canvas").nth(1).hover()
    seen.settle()
    chart = seen.page.locator("#charts canvas").nth(1)
    chart.press("Home")  # t = 0, where all models start from what was observed
    said = seen.text("#charts .chart >> nth=1 >> .title")
    infected = np.mean(read_sites(seen.asked()) == 1)
    assert "t = 0" in said and said.count(f"{infected:.3g} (") == 2


@pytest.mark.parametrize(("size", "theme"), [(PHONE, "light"), (SMALL, "dark")])
def test_a_phone_shows_everything_without_scrolling_sideways(visit, size, theme):
    seen = visit(size, color_scheme=theme, has_touch=True)
    width = seen.page.evaluate("document.documentElement.scrollWidth")
    assert width == size[0]
    for name in ("state", "forecast", "truth", "inside"):
        box = seen.page.locator(f"#{name}").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= size[0]
    buttons = seen.page.locator("button:visible").all()
    boxes = [button.bounding_box() for button in buttons]
    assert min(box["height"] for box in boxes) >= 24
    before = seen.asked()
    seen.page.locator("#editor").tap()
    seen.settle()
    assert seen.asked() != before
    assert seen.page.evaluate("document.documentElement.dataset.theme") == theme
    seen.page.click("#theme")
    assert seen.page.evaluate("document.documentElement.dataset.theme") != theme


def test_everything_is_done_with_the_keyboard_alone(visit):
    seen = visit()
    press = seen.page.keyboard.press
    focus = "document.activeElement.id || document.activeElement.textContent"

    def tab_to(name):
        for _ in range(60):
            press("Tab")
            if name in seen.page.evaluate(focus):
                return
        raise AssertionError(f"{name} is not reached by the tab key")

    tab_to("Skip to the forecast")
    tab_to("TAMPL+")
    press("Tab")
    press("Enter")
    assert seen.page.locator("#models button").nth(1).get_attribute("aria-pressed") == "false"
    tab_to("editor")
    before = seen.asked()
    for key in ("2", "ArrowRight", "ArrowDown", "Space"):
        press(key)
    seen.settle()
    painted = seen.asked()
    assert painted != before
    assert seen.page.locator("#colours button[aria-checked=true]").inner_text() == "recovered"
    press("z")
    seen.settle()
    assert seen.asked() == before
    tab_to("recovered")
    press("ArrowRight")
    assert seen.page.locator("#colours button[aria-checked=true]").inner_text() == "susceptible"
    tab_to("log")
    press("Space")
    assert seen.page.locator("#log").is_checked()
    tab_to("png")
    press("Tab")  # the first chart
    press("End")
    said = seen.page.locator("#readout").inner_text()
    assert "t = 2.5" in said and "infected" in said
    press("Escape")
    tab_to("simulate")
    press("Enter")
    seen.until("document.querySelector('#progress').textContent.startsWith('64')")
    tab_to("inside-model")
    press("ArrowDown")


def test_every_control_has_a_name(visit):
    seen = visit()
    bare = seen.page.evaluate(
        """[...document.querySelectorAll("button, input, select, canvas[tabindex], [role=img]")]
            .filter((e) => e.checkVisibility())
            .filter((e) => !e.ariaLabel && !e.textContent.trim())
            .filter((e) => !e.labels?.[0]?.textContent.trim())
            .filter((e) => !e.closest("button"))
            .map((e) => e.outerHTML)"""
    )
    assert bare == []


def test_the_inside_of_a_model_is_shown_when_it_is_seen(visit):
    seen = visit()
    seen.page.locator("#inside").scroll_into_view_if_needed()
    seen.until("document.querySelector('#health').textContent !== ''")
    seen.settle()
    first = seen.picture("#latent canvas")
    assert "collapse" in seen.text("#health")
    seen.page.select_option("#inside-model", "1")
    seen.settle()
    assert seen.picture("#latent canvas") != first
    assert "representation" in seen.text("#losses .title")


def test_own_data_plays_what_was_held_out(browser, visit, make_model, lattices):
    model = make_model()
    model.description = model.description.model_copy(
        update={"system": "own data", "parameters": {}}
    )
    paths = np.stack([lattices, 2 - lattices, lattices, lattices], axis=1)
    y = np.random.default_rng(0).random((5, 2, 4, 3))
    held = HeldOut(lattices, y, np.array(["a", "b", "c", "d", "e"]), paths)
    with served(make_app(Exhibit([ShownModel("own", model)], held_out=held))) as port:
        seen = visit(at=f"http://127.0.0.1:{port}/")
        seen.until("document.querySelector('#progress').textContent.startsWith('2 of 2')")
        for unknown in ("#follow", "#families"):
            assert seen.page.locator(unknown).is_hidden()
        seen.page.locator("#test-gallery button").nth(3).click()
        seen.settle()
        assert "test state 3, d" in seen.text("#state-label")
        assert seen.page.locator("#scores tbody tr").count() == 1
        seen.page.click("#clear")
        seen.settle()
        assert "no simulator" in seen.text("#progress")
        assert seen.page.locator("#simulate").is_disabled()
        seen.context.close()
    seen.context = browser.new_context()
