"""The server of a studio: one process on the loopback address, unless told otherwise."""

import logging
import secrets
import socket
import warnings
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from threading import Timer

import uvicorn

from ..errors import ForecastWarning, InputError
from ..progress import say
from .app import make_app
from .exhibits import Exhibit, open_exhibit
from .guard import Gate, is_loopback

__all__ = ["PORT", "open_studio", "serve"]

PORT = 8420

_ALL = ("0.0.0.0", "::", "")


def open_studio(
    models: Sequence[str | Path],
    *,
    data: str | Path | None = None,
    host: str = "127.0.0.1",
    port: int = PORT,
    browser: bool = True,
    device: str = "auto",
) -> None:
    """Loads models and serves their studio until it is interrupted.

    Arguments:
        models: Folders of runs, files of models, folders of ensembles or of comparisons.
        data: The folder of a store whose test states are shown, or None.
        host: The address to listen at. Beyond the loopback address a token is needed, which the
            printed address has.
        port: The port; 0 for any that is free.
        browser: Whether to open the page in a browser.
        device: Where forecasts are made.
    """
    with _listen(host, port) as listener:  # a taken port is refused before models are loaded
        serve(open_exhibit(models, data=data, device=device), listener, host, browser=browser)


def serve(exhibit: Exhibit, listener: socket.socket, host: str, *, browser: bool = False) -> None:
    """Serves a studio on a socket that listens, until it is interrupted.

    Arguments:
        exhibit: What is shown.
        listener: The socket.
        host: The address as the user knows it.
        browser: Whether to open the page in a browser.
    """
    port = listener.getsockname()[1]
    gate, address = _make_gate(host, port)
    # The page shows the warnings of a forecast beside its curves.
    warnings.simplefilter("ignore", ForecastWarning)
    config = uvicorn.Config(
        make_app(exhibit, gate=gate),
        log_level=logging.WARNING,
        access_log=False,
        server_header=False,
        lifespan="on",
        limit_concurrency=512,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
    )
    say(f"the studio is at {address} (Ctrl-C ends it)")
    if browser:
        opening = Timer(0.3, webbrowser.open, [address])
        opening.daemon = True
        opening.start()
    uvicorn.Server(config).run([listener])


def _make_gate(host: str, port: int) -> tuple[Gate, str]:
    """What is let in, and the address to print."""
    if is_loopback(host):
        names = {"127.0.0.1", "localhost", "::1", host}
        return Gate(hosts=names), f"http://{_bracket(host)}:{port}/"
    token = secrets.token_urlsafe(24)
    # Who listens everywhere is called by addresses that this machine does not know of.
    everywhere, name = host in _ALL, socket.gethostname().lower()
    shown = name if everywhere else _bracket(host)
    names = {"localhost", "127.0.0.1", name} if everywhere else {host.lower()}
    gate = Gate(hosts=names, digits=everywhere, token=token)
    return gate, f"http://{shown}:{port}/?token={token}"


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(256)
        except BaseException:
            listener.close()
            raise
    except (OSError, OverflowError) as error:
        raise InputError(
            f"`host` is {host!r} and `port` is {port}; nothing can listen there ({error}): take "
            "another --port, or 0 for any that is free"
        ) from error
    return listener
