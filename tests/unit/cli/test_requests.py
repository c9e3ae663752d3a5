"""Requests of the command line: each field is an option, reaches its verb, and is read by it."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from pgdyno.cli import requests
from pgdyno.cli.takes import takes
from pgdyno.load.dataset import Dataset
from typer.testing import CliRunner


@dataclass(frozen=True, kw_only=True)
class Inner:
    """Fields that another request shares."""

    loud: Annotated[bool, typer.Option("--loud", help="Shout.")] = False
    times: Annotated[int, typer.Option(help="How often.", min=1)] = 1


@dataclass(frozen=True, kw_only=True)
class Outer:
    """A request with an argument, an option that is required, a list, and another request."""

    name: Annotated[str, typer.Argument(metavar="NAME")]
    bound: Annotated[str, typer.Option("--bound")]
    files: Annotated[list[Path] | None, typer.Option("--file")] = None
    inner: Inner = field(default_factory=Inner)


def asked(*arguments: str) -> tuple[Outer | None, int]:
    seen: list[Outer] = []
    app = typer.Typer()

    @app.command()
    @takes(Outer)
    def greet(request: Outer) -> None:
        """Greet somebody."""
        seen.append(request)

    code = CliRunner().invoke(app, list(arguments)).exit_code
    return (seen[0] if seen else None), code


def test_options_become_one_request() -> None:
    assert asked("eve", "--bound", "p99<5ms") == (Outer(name="eve", bound="p99<5ms"), 0)
    everything, code = asked("eve", "--bound", "x", "--file", "a", "--file", "b", "--loud", "--times", "3")
    assert code == 0
    assert everything == Outer(name="eve", bound="x", files=[Path("a"), Path("b")], inner=Inner(loud=True, times=3))


@pytest.mark.parametrize("arguments", [(), ("eve",), ("--bound", "x"), ("eve", "--bound", "x", "--times", "0")])
def test_what_is_missing_or_out_of_range_is_refused(arguments: tuple[str, ...]) -> None:
    assert asked(*arguments) == (None, 2)


def flat(request: type[Any]) -> list[str]:
    made = {name: getattr(requests, name) for name in dir(requests)}
    names = []
    for f in dataclasses.fields(request):
        inner = made.get(f.type) if isinstance(f.type, str) else None
        names += flat(inner) if dataclasses.is_dataclass(inner) else [f.name]
    return names


REQUESTS = [r for name, r in vars(requests).items() if name.endswith("Request") and dataclasses.is_dataclass(r)]


@pytest.mark.parametrize("request_type", REQUESTS)
def test_every_option_is_read(request_type: type[Any]) -> None:
    names = flat(request_type)
    assert len(names) == len(set(names)), "one option, one field"
    folder = Path(requests.__file__).parent
    code = "\n".join(p.read_text() for p in folder.glob("*.py"))
    # Options that `run` takes over by name are listed there; a request may read its own.
    unread = [n for n in names if not re.search(rf'\b(?:request|r|output|server|self)\.{n}\b|"{n}"', code)]
    if request_type is requests.LoadRequest:
        # `Dataset.sized` takes them by their names.
        unread = [n for n in unread if n not in {f.name for f in dataclasses.fields(Dataset)}]
    assert unread == []
