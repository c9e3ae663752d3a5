"""Commands that take one request: its fields are their options."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, get_type_hints

R = TypeVar("R")


def takes(request: type[R]) -> Callable[[Callable[[R], None]], Callable[..., None]]:
    """Make a command of a function of one request, whose options are the fields of the request.

    A field that is a request itself adds its own fields. The names of all fields differ.
    """

    def decorate(verb: Callable[[R], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            verb(_built(request, given))

        parameters = list(_parameters(request))
        command.__name__, command.__doc__, command.__module__ = verb.__name__, verb.__doc__, verb.__module__
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        return command

    return decorate


def _fields(request: type[Any]) -> Iterator[tuple[dataclasses.Field[Any], Any]]:
    hints = get_type_hints(request, include_extras=True)
    for field in dataclasses.fields(request):
        yield field, hints[field.name]


def _parameters(request: type[Any]) -> Iterator[inspect.Parameter]:
    for field, hint in _fields(request):
        if dataclasses.is_dataclass(hint):
            yield from _parameters(hint)  # type: ignore[arg-type]
            continue
        default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
        yield inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _built(request: type[R], given: dict[str, Any]) -> R:
    values = {
        field.name: _built(hint, given) if dataclasses.is_dataclass(hint) else given[field.name]  # type: ignore[arg-type]
        for field, hint in _fields(request)
    }
    return request(**values)
