"""What draws an item, from the name of its module."""

import inspect
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any


class Drawing:
    """A drawing with its parameters: `table(results, published)`; `draw(table)` or `tex(table)`.

    Each function gets the parameters that it names.
    """

    def __init__(self, module: str, parameters: Mapping[str, Any]):
        for name in ("table", "draw", "tex"):
            if (function := getattr(import_module(module), name, None)) is not None:
                own = parameters.keys() & inspect.signature(function).parameters
                setattr(self, name, partial(function, **{key: parameters[key] for key in own}))
