"""A server in a thread, for tests that need a real connection."""

import threading
import time
from contextlib import contextmanager

import uvicorn

from tampl.studio import serve


@contextmanager
def served(app):
    """Serves an application on a free port of the loopback address; yields the port."""
    listener = serve._listen("127.0.0.1", 0)
    config = uvicorn.Config(app, log_level="warning", lifespan="on", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
