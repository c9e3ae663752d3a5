"""Types of what experiment files hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from pgdyno import i18n
from pgdyno.driver import named
from pgdyno.errors import msg

#: Becomes part of a path.
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=60)]
#: What a server setting, or a script's variable, may be.
Value = bool | int | Annotated[float, Field(allow_inf_nan=False)] | str
#: As scripts write it after the colon.
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=60)]
#: Names of axes, and of variables that are set anyway.
RESERVED = {
    "workload", "target", "dataset", "version", "scale", "hot_set", "clients", "protocol", "rate", "range", "tables",
    "client_id", "random_seed", "default_seed", "round_trip_ms", "driver",
}  # fmt: skip
#: A major version of PostgreSQL, or a whole one.
Version = Annotated[str, Field(pattern=r"^\d{2}(\.\d+)?$")]
#: A size as PostgreSQL writes it.
Size = Annotated[str, Field(pattern=r"^\d+ ?(kB|MB|GB|TB)$")]
Protocol = Literal["simple", "extended", "prepared"]


def _driver(text: str) -> str:
    if text not in ("auto", "epoll", "uring", "polling") and named.parse(text) is None:
        raise MistakeError("spec-driver", text=text)
    return text


#: Network I/O of the engine's own client, or a driver of Python.
Driver = Annotated[str, AfterValidator(_driver)]
Rate = Annotated[float, Field(gt=0, le=10_000_000, allow_inf_nan=False)]


def _closed(rate: Any) -> Any:
    return None if isinstance(rate, int | float) and not isinstance(rate, bool) and rate == 0 else rate


#: As the option --rate has it: 0 is a closed loop.
RateOrClosed = Annotated[Rate | None, BeforeValidator(_closed)]
#: The target that an experiment has which names none.
PRIVATE = "private"


class MistakeError(ValueError):
    """A value that does not fit, as a message. Pydantic adds the key of what is checked.

    `key` is the key below it that is wrong, with dots, if a rule is about several of them.
    """

    def __init__(self, id: str, /, *, key: str = "", **args: object) -> None:
        self.text = msg(id, **args)
        self.key = key
        super().__init__(i18n.text(self.text))


def _on_one_line(text: str) -> str:
    if unfit := next((c for c in text if not c.isprintable()), None):
        raise MistakeError("spec-unprintable", code=f"U+{ord(unfit):04X}")
    return text


#: What heads a report, a table or a column.
Title = Annotated[str, Field(max_length=200), AfterValidator(_on_one_line)]


def _distinct(values: list[Any] | str) -> list[Any] | str:
    if isinstance(values, list) and len(set(values)) != len(values):
        raise MistakeError("spec-twice")
    return values


Distinct = AfterValidator(_distinct)


def _not_the_servers(name: str) -> str:
    if name.startswith("pg_"):
        raise MistakeError("spec-reserved")
    return name


SpaceName = Annotated[Name, AfterValidator(_not_the_servers)]


def _absolute(path: str) -> str:
    try:
        return str(Path(path).expanduser().resolve())
    except (RuntimeError, OSError) as e:
        raise MistakeError("spec-path", path=path, reason=e) from e


#: A folder on this machine; relative to where pgdyno runs. A run that is continued elsewhere has the same.
Folder = Annotated[str, Field(min_length=1), AfterValidator(_absolute)]


def _some(values: Any) -> Any:
    if isinstance(values, list) and not values:
        raise MistakeError("spec-empty-axis")
    return values


Some = BeforeValidator(_some)


_UNITS = {"kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


def size_bytes(text: str) -> int:
    """Bytes of a Size: "4GB"."""
    digits = text.rstrip("kMGTB ")
    return int(digits) * _UNITS[text[len(digits) :].strip()]


class Strict(BaseModel):
    """Unknown keys are mistakes."""

    #: A string is no number, and `true` is not 1.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def variable_of(column: str) -> str:
    """Return what a script's variable is called that takes a column's values, behind a prefix."""
    return re.sub(r"[^A-Za-z0-9_\x80-\U0010ffff]", "_", column)
