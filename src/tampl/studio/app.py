"""The routes of a studio: the page, and what the page and other programs ask for.

Nothing that a browser sends is used as a path: models and test states are asked for by number,
families by a name that is looked up, and the files of the page are in memory.
"""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from numpy.typing import NDArray
from starlette.exceptions import HTTPException

from ..errors import InputError
from ..microstates import Image, Lattice
from ..seeding import kernel_words
from ..version import __version__
from . import answers
from .answers import Asked, make_plain
from .exhibits import Exhibit, ShownModel
from .families import Family, find_families
from .guard import Gate, Guard
from .live import Excerpt, shorten, simulate_live
from .wire import (
    MOST_STEPS,
    ClosureAnswer,
    DrawAnswer,
    DrawRequest,
    ExhibitAnswer,
    FamilyAnswer,
    ForecastAnswer,
    ForecastRequest,
    HeldOutAnswer,
    LatentAnswer,
    ModelAnswer,
    Problem,
    SimulationRequest,
    SliderAnswer,
    StateAnswer,
    StateRequest,
    TrainingAnswer,
    pack_array,
    read_npy,
)
from .workers import Workers

__all__ = ["make_app"]

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_SHOWN_FRAMES = 240
"""Frames of a trajectory that are animated, of longer ones every k-th."""

STREAMS = 16
STREAM_S = 600.0

Number = Annotated[int, Path(ge=0, lt=1_000_000)]
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": text}
    for status, text in {
        401: "The token is missing or wrong.",
        403: "The request comes from another page or to another name.",
        404: "There is no such model, test state or file.",
        413: "The request is too large.",
        422: "The input is wrong; `detail` says what to do.",
        429: "There are too many requests or simulations.",
        503: "The studio is busy.",
    }.items()
}


def make_app(exhibit: Exhibit, *, gate: Gate | None = None) -> FastAPI:
    """The application of a studio.

    Arguments:
        exhibit: What is shown.
        gate: Which requests are let in; those to the loopback address by default.
    """
    room = _Room(exhibit)

    @asynccontextmanager
    async def live(app: FastAPI) -> AsyncIterator[None]:
        app.state.workers = room.workers = Workers()
        warm = asyncio.get_running_loop().run_in_executor(room.workers.simulations, room.warm_up)
        yield
        warm.cancel()
        room.workers.close()

    app = FastAPI(
        title="tampl studio",
        description="Forecasts of trained models from microstates, and simulations beside them.",
        version=__version__,
        lifespan=live,
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        responses=_REFUSALS,
    )
    app.add_middleware(Guard, gate=gate or Gate())
    for kind, handler in (
        (InputError, _refuse_input),
        (RequestValidationError, _refuse_fields),
        (HTTPException, _refuse),
    ):
        app.add_exception_handler(kind, handler)
    _add_page(app)
    _add_states(app, room)
    _add_models(app, room)
    _add_truth(app, room)
    return app


class _Room:
    """An exhibit with what is computed of it once."""

    workers: Workers

    def __init__(self, exhibit: Exhibit) -> None:
        self.exhibit = exhibit
        self.families = find_families(exhibit.system)
        self.streams = 0
        self.answer = self._describe()

    def find_model(self, number: int) -> ShownModel:
        if number >= len(self.exhibit.models):
            raise HTTPException(404, f"there is no model {number}")
        return self.exhibit.models[number]

    def find_family(self, name: str) -> Family:
        if name not in self.families:
            known = ", ".join(self.families) or "none"
            raise InputError(f"`family` is {name[:50]!r}; there are: {known}")
        return self.families[name]

    def ask(self, asked: ForecastRequest) -> Asked:
        frames = self.exhibit.description.frames
        horizon = frames - 1 if asked.horizon is None else asked.horizon
        if horizon > max(4 * frames, 1) or horizon * asked.members > max(MOST_STEPS, 64 * frames):
            raise InputError(
                f"`horizon` is {horizon} and `members` is {asked.members}; at most {4 * frames} "
                f"frames are forecast here, and {max(MOST_STEPS, 64 * frames)} frames of all "
                "members together: ask for fewer, or use `model.forecast` in Python"
            )
        state = self.exhibit.check_state(asked.state.to_array(), "`state`")
        y0 = self.exhibit.observe(state, asked.y0)
        return Asked(state, y0, horizon, asked.members, asked.seed, asked.samples)

    def answer_state(
        self, state: NDArray[Any], label: str = "", y: NDArray[Any] | None = None
    ) -> dict[str, Any]:
        known = self.exhibit.observe(state) if y is None else y
        return {
            "state": pack_array(state),
            "y": None if known is None else make_plain(known),
            "label": label,
        }

    def warm_up(self) -> None:
        """Compiles kernels and draws first forecasts, so that no user waits for it."""
        start, system = self.answer.start, self.exhibit.system
        if start is None:
            return
        state = start.state.to_array()
        asked = Asked(state, self.exhibit.observe(state, start.y), 1, 2)
        for shown in self.exhibit.models:
            answers.forecast(shown, asked)
        if system is not None and shorten(system, 2) is not system:
            words = kernel_words(0, "studio", "warm-up")
            short = shorten(system, 2)
            short.simulate(state[None], words[None])
            short.ensemble(state[None], words[None, None])

    def _describe(self) -> ExhibitAnswer:
        exhibit, description = self.exhibit, self.exhibit.description
        held_out = exhibit.held_out
        return ExhibitAnswer(
            version=__version__,
            system=description.system,
            microstate=description.microstate.model_dump(mode="json"),
            microstate_in_words=description.microstate.in_words,
            state_names=list(getattr(exhibit.system, "state_names", ())),
            observables=[o.model_dump(mode="json") for o in description.observables],
            interval=description.interval,
            frames=description.frames,
            time_unit=description.time_unit,
            models=[
                ModelAnswer(
                    number=number,
                    name=shown.name,
                    summary=repr(shown.model),
                    scale=shown.model.normalization.std.tolist(),
                )
                for number, shown in enumerate(exhibit.models)
            ],
            families=[
                FamilyAnswer(
                    name=family.name,
                    sliders=[SliderAnswer(**vars(slider)) for slider in family.sliders],
                    random=family.random,
                )
                for family in self.families.values()
            ],
            simulates=exhibit.system is not None,
            closures=[name.replace("_", " ") for name in exhibit.closures],
            held_out=0 if held_out is None else len(held_out),
            held_out_members=0 if held_out is None else held_out.y.shape[1],
            start=self._find_start(),
        )

    def _find_start(self) -> StateAnswer | None:
        """A first state: of the first family, else of the test set, else an empty grid."""
        exhibit, kind = self.exhibit, self.exhibit.description.microstate
        if self.families:
            family = next(iter(self.families.values()))
            return StateAnswer(**self.answer_state(family.draw({}, 1), family.name))
        if exhibit.held_out is not None:
            held = exhibit.held_out
            y, label = held.y[0, 0, 0], str(held.labels[0]) or "test state 0"
            return StateAnswer(**self.answer_state(held.x[0], label, y))
        if isinstance(kind, Lattice | Image):
            return StateAnswer(**self.answer_state(np.zeros(kind.shape, kind.dtype), "empty"))
        return None


def _add_page(app: FastAPI) -> None:
    page = {}
    for file in (files("tampl") / "studio" / "page").iterdir():
        content, kind = file.read_bytes(), _TYPES.get(file.name.rpartition(".")[2])
        if kind is not None:
            page[file.name] = (content, kind, f'"{hashlib.sha256(content).hexdigest()[:16]}"')

    def give(request: Request, name: str) -> Response:
        if name not in page:
            raise HTTPException(404, "there is no such file")
        content, kind, tag = page[name]
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    @app.get("/", include_in_schema=False)
    async def index(request: Request) -> Response:
        return give(request, "index.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def asset(request: Request, name: str) -> Response:
        return give(request, name)


def _add_states(app: FastAPI, room: _Room) -> None:
    exhibit = room.exhibit

    @app.get("/api/exhibit")
    async def describe() -> ExhibitAnswer:
        """What there is to see: models, observables, families, test states."""
        return room.answer

    @app.post("/api/states/draw")
    async def draw(request: Request, asked: DrawRequest) -> DrawAnswer:
        """Draws microstates of a family; several have seeds one after another."""
        family = room.find_family(asked.family)

        def job() -> list[dict[str, Any]]:
            seeds = range(asked.seed, asked.seed + asked.count)
            return [room.answer_state(family.draw(asked.values, s), family.name) for s in seeds]

        return DrawAnswer(states=await room.workers.run(request, job))

    @app.post(
        "/api/states/npy",
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {
                    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
                },
            }
        },
    )
    async def upload(request: Request) -> StateAnswer:
        """Checks the microstate in a file of `numpy.save` and returns it in stored form."""
        array = read_npy(await request.body())
        # An array of several microstates that holds one is meant as that one.
        axes = len(exhibit.description.microstate.shape)
        if array.ndim == axes + 1 and len(array) == 1:
            array = array[0]
        state = exhibit.check_state(array, "the file")
        return StateAnswer(**room.answer_state(state, "uploaded"))

    @app.get("/api/states/test/{number}")
    async def give_test_state(number: Number) -> StateAnswer:
        """A test state."""
        held = exhibit.held_out
        if held is None or number >= len(held):
            raise HTTPException(404, f"there is no test state {number}")
        label = str(held.labels[number])
        name = f"test state {number}" + (f", {label}" if label else "")
        return StateAnswer(**room.answer_state(held.x[number], name, held.y[number, 0, 0]))

    @app.get("/api/states/test/{number}/future")
    async def give_future(number: Number) -> HeldOutAnswer:
        """What followed a test state: macrostates, and microstates where the store has them."""
        held = exhibit.held_out
        if held is None or number >= len(held):
            raise HTTPException(404, f"there is no test state {number}")
        every = -(-held.y.shape[2] // _SHOWN_FRAMES)
        paths = None if held.paths is None else pack_array(held.paths[number, ::every])
        return HeldOutAnswer(
            macrostates=make_plain(held.y[number]), microstates=paths, every=every
        )


def _add_models(app: FastAPI, room: _Room) -> None:
    @app.post("/api/models/{number}/forecast")
    async def forecast(request: Request, number: Number, asked: ForecastRequest) -> ForecastAnswer:
        """Forecasts the observables with their spread."""
        job = partial(answers.forecast, room.find_model(number), room.ask(asked))
        return ForecastAnswer(**await room.workers.run(request, job))

    @app.post("/api/models/{number}/latents")
    async def trace(request: Request, number: Number, asked: ForecastRequest) -> LatentAnswer:
        """Latent trajectories of a forecast, in two principal components of the training set."""
        job = partial(answers.trace_latents, room.find_model(number), room.ask(asked))
        return LatentAnswer(**await room.workers.run(request, job))

    @app.get("/api/models/{number}/training")
    async def training(number: Number) -> TrainingAnswer:
        """The cloud of training states and the log of the training."""
        return TrainingAnswer(**answers.show_training(room.find_model(number)))


def _add_truth(app: FastAPI, room: _Room) -> None:
    exhibit = room.exhibit

    @app.post("/api/closures")
    async def close(request: Request, asked: StateRequest) -> list[ClosureAnswer]:
        """Trajectories of the system's textbook closures."""
        state = exhibit.check_state(asked.state.to_array(), "`state`")
        found = await room.workers.run(request, partial(answers.run_closures, exhibit, state))
        return [ClosureAnswer(**closure) for closure in found]

    @app.post(
        "/api/simulation",
        response_class=StreamingResponse,
        responses={200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}},
    )
    async def simulate(request: Request, asked: SimulationRequest) -> StreamingResponse:
        """Simulates the system exactly: one line of JSON for each piece, as they come."""
        system = exhibit.system
        if system is None:
            raise InputError(
                f"{exhibit.description.system!r} has no simulator; see the test states instead"
            )
        state = exhibit.check_state(asked.state.to_array(), "`state`")
        if room.streams >= STREAMS:
            raise HTTPException(429, f"{STREAMS} simulations are running; wait for one to end")
        pieces = simulate_live(system, state, members=asked.members, seed=asked.seed)
        room.streams += 1
        try:  # what is wrong with the state is said before anything is sent
            first = await room.workers.run(
                request, partial(next, pieces), room.workers.simulations
            )
        except BaseException:
            room.streams -= 1
            raise
        return StreamingResponse(
            _stream(room, pieces, first, asked.members), media_type="application/x-ndjson"
        )


async def _stream(
    room: _Room, pieces: Iterator[Excerpt], first: Excerpt, members: int
) -> AsyncIterator[str]:
    """Lines of JSON for the pieces of a simulation; cancelled when the client goes."""
    loop, frames = asyncio.get_running_loop(), room.exhibit.description.frames
    every, deadline = -(-frames // _SHOWN_FRAMES), loop.time() + STREAM_S
    piece: Excerpt | None = first
    try:
        yield _line(kind="begin", frames=frames, members=members, every=every)
        while piece is not None and loop.time() < deadline:
            yield _line(kind="piece", **_describe_piece(piece, every))
            step = partial(next, pieces, None)
            piece = await loop.run_in_executor(room.workers.simulations, step)
        yield _line(kind="end", complete=piece is None)
    finally:
        room.streams -= 1


def _describe_piece(piece: Excerpt, every: int) -> dict[str, Any]:
    shown = None
    if piece.microstates is not None:
        start = -piece.first % every
        kept = piece.microstates[start::every]
        shown = {"first": piece.first + start, **pack_array(kept)} if len(kept) else None
    return {
        "member": piece.member,
        "first": piece.first,
        "macrostates": make_plain(piece.macrostates),
        "microstates": shown,
        "seconds": piece.seconds,
    }


def _line(**event: Any) -> str:  # noqa: ANN401
    return json.dumps(event, separators=(",", ":")) + "\n"


async def _refuse_input(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": " ".join(str(error).split())}, 422)


async def _refuse_fields(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(key) for key in first["loc"] if key != "body")
    return JSONResponse({"detail": f"`{where or 'body'}`: {first['msg']}"}, 422)


async def _refuse(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)
