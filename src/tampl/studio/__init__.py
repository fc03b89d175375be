"""The studio: a web page on which one paints a microstate and watches the forecast.

    exhibits     the models that are shown, their system and test states
    families     patterns to draw microstates from, with their sliders
    answers      forecasts, latent trajectories and training logs as plain numbers
    live         exact simulations, piece by piece as they come
    wire         what requests and answers look like
    guard        which requests are let in
    app          the routes
    serve        the server
    page/        what the browser gets: plain modules, one style sheet, nothing from elsewhere

It needs the extra `tampl[studio]`, and nothing else of the package loads it.
"""

from .exhibits import Exhibit, find_models, open_exhibit

__all__ = ["Exhibit", "find_models", "open_exhibit"]
