"""Reads experiment files: ready-made ones by name, others by path."""

from __future__ import annotations

import difflib
import functools
import re
import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pgdyno import files
from pgdyno.errors import SpecError, msg, reason
from pgdyno.format import one_line
from pgdyno.message import Name, Text, listed
from pgdyno.spec import builtins, places
from pgdyno.spec.datasets import Dataset
from pgdyno.spec.experiment import Experiment, Script
from pgdyno.spec.values import MistakeError

#: Types of values that an error shows.
_SHOWN = (str, int, float, bool)


def names() -> list[str]:
    """Return the names of the built-in experiments."""
    folder = resources.files("pgdyno") / "experiments"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def is_ready_made(text: str) -> bool:
    """Return True if an experiment's text is one of pgdyno's own."""
    folder = resources.files("pgdyno") / "experiments"
    return any((folder / f"{name}.toml").read_text(encoding="utf-8") == text for name in names())


def read(name_or_path: str) -> tuple[Experiment, str, Path | None]:
    """Return the experiment, the text of its file, and the folder of its scripts.

    Paths of scripts are relative to this folder, which is None for a built-in experiment.
    """
    if "/" not in name_or_path and not name_or_path.endswith(".toml"):
        if name_or_path not in names():
            raise SpecError(
                msg("error-there-no-experiment", name_or_path=name_or_path),
                msg("remedy-built-your-own-give-path", names=", ".join(names())),
            )
        text = (resources.files("pgdyno") / "experiments" / f"{name_or_path}.toml").read_text(encoding="utf-8")
        return parse(text, f"{name_or_path}.toml"), text, None
    path = Path(name_or_path)
    if path.is_dir():
        raise SpecError(
            msg("error-neither-experiment-nor-run-directory", path=path),
            msg("remedy-name-toml-file-run-directory", names=", ".join(names())),
        )
    try:
        text = files.read_text(path)
    except (OSError, ValueError) as e:
        raise SpecError(
            msg("error-cannot-read", path=path, reason=reason(e)),
            msg("remedy-built-experiments", names=", ".join(names())),
        ) from e
    return _with_paths(parse(text, str(path)), path.parent), text, path.parent


def _with_paths(experiment: Experiment, folder: Path) -> Experiment:
    """Return the experiment with absolute paths of the files from which its datasets are made.

    A run that is continued in another directory then uses the same files.
    """

    def whole(name: str) -> str:
        return str((folder / Path(name).expanduser()).resolve())

    def dataset(d: Dataset) -> Dataset:
        files = {key: [whole(name) for name in getattr(d, key)] for key in ("files", "after")}
        return d.model_copy(update={**files, "dump": whole(d.dump) if d.dump else ""})

    between = experiment.run.between
    if between.restore.endswith(".sql"):
        between = between.model_copy(update={"restore": whole(between.restore)})
    return experiment.model_copy(
        update={
            "dataset": experiment.dataset and dataset(experiment.dataset),
            "datasets": {name: dataset(d) for name, d in experiment.datasets.items()},
            "run": experiment.run.model_copy(update={"between": between}),
        }
    )


def parse(text: str, file: str) -> Experiment:
    """Return the experiment that `text` describes.

    Raise SpecError if it is not valid. Each mistake names file, key and value.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        # Python 3.14 has the place as data; before, it stands in the message alone.
        found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(e))
        reason, line, column = found.groups() if found else (str(e), None, None)
        place = f"{file}:{line}:{column}" if line else file
        raise SpecError(msg("error-not-valid-toml", file=place, reason=reason)) from e
    except RecursionError as e:
        raise SpecError(msg("error-arrays-or-tables-nested-too", file=file)) from e
    except ValueError as e:
        # An integer of thousands of digits.
        raise SpecError(msg("error-not-valid-toml", file=file, reason=one_line(e))) from e
    try:
        return Experiment.model_validate(data)
    except ValidationError as e:
        lines = [describe(text, file, error) for error in mistakes(e)]
        raise SpecError(listed(lines, "line"), msg("remedy-pgdyno-new-file-writes-experiment")) from e


def mistakes(e: ValidationError) -> list[Any]:
    """Return the mistakes, without those of alternatives that the user did not mean.

    For example, a key takes `"auto" or a number`, and its value is 0. Then only the complaint about the number is
    useful.
    """
    errors = e.errors()

    def meant(error: Any) -> bool:
        if not error["loc"] or not str(error["loc"][-1]).startswith("literal"):
            return True
        prefix = error["loc"][:-1]
        others = [x for x in errors if x is not error and x["loc"][: len(prefix)] == prefix]
        return not others

    return [x for x in errors if meant(x)]


#: Messages for pydantic's types of errors, and the argument that holds a limit.
_WORDING = {
    "missing": ("spec-missing", ""),
    "greater_than": ("spec-greater-than", "gt"),
    "greater_than_equal": ("spec-at-least", "ge"),
    "less_than": ("spec-less-than", "lt"),
    "less_than_equal": ("spec-at-most", "le"),
    "int_type": ("spec-integer", ""),
    "int_parsing": ("spec-integer", ""),
    "int_from_float": ("spec-integer", ""),
    "float_type": ("spec-number", ""),
    "float_parsing": ("spec-number", ""),
    "finite_number": ("spec-finite", ""),
    "bool_type": ("spec-boolean", ""),
    "string_type": ("spec-string", ""),
    "list_type": ("spec-list", ""),
    "dict_type": ("spec-table", ""),
    "model_type": ("spec-table", ""),
    "model_attributes_type": ("spec-table", ""),
    "string_too_long": ("spec-too-long", "max_length"),
    "string_too_short": ("spec-too-short", ""),
    "too_short": ("spec-more-items", "min_length"),
    "too_long": ("spec-fewer-items", "max_length"),
}


def wording(error: Any, keys: Sequence[str] = ()) -> Text:
    """Return what is wrong with a value, in pgdyno's words where pydantic has its own.

    `keys` are the known keys; by default those of experiments.
    """
    kind, context = error["type"], error.get("ctx", {})
    if isinstance(mistake := context.get("error"), MistakeError):
        return mistake.text
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(str(error["loc"][-1]), keys or _keys(), 1)
        return msg("spec-unknown-near", near=near[0]) if near else msg("spec-unknown")
    if kind == "literal_error":
        return msg("spec-one-of", values=context["expected"])
    if kind == "string_pattern_mismatch":
        return msg("spec-pattern", pattern=context["pattern"])
    if kind in _WORDING:
        id, limit = _WORDING[kind]
        return msg(id, limit=context[limit]) if limit else msg(id)
    message: str = error["msg"]
    return Name(message.removeprefix("Value error, ").replace("Input should be", "must be"))


@functools.cache
def _keys() -> list[str]:
    """Return the keys of all tables of an experiment file."""
    schema = Experiment.model_json_schema()
    return sorted({key for part in (schema, *schema.get("$defs", {}).values()) for key in part.get("properties", {})})


def describe(text: str, file: str, error: Any, keys: Sequence[str] = (), *, shows_value: bool = True) -> Text:
    """Return a mistake with its file, line and key. See `wording`."""
    # Pydantic puts the alternatives of a union into the path; only what the user wrote is of use to them.
    path = [
        str(p)
        for p in error["loc"]
        if isinstance(p, int) or not str(p).startswith(("literal", "constrained", "list[", "function-", "alternative-"))
    ]
    key = Name(".".join(path)) if path else msg("spec-file")
    value = error.get("input")
    shown = msg("spec-shown", value=repr(value)) if shows_value and isinstance(value, _SHOWN) else Name("")
    line = _line_of(text, path)
    place = f"{file}:{line}" if line else file
    return msg("spec-at", place=place, key=key, mistake=wording(error, keys), shown=shown)


def _line_of(text: str, path: list[str]) -> int | None:
    """Return the line of a key; of one that the text lacks, of the nearest table that it has; else None."""
    try:
        known = places.lines(text)
    except (ValueError, IndexError, RecursionError):
        # The text is not the file's own: options have changed the experiment.
        return None
    return next((known[found] for n in range(len(path), 0, -1) if (found := tuple(path[:n])) in known), None)


def script_texts(experiment: Experiment, folder: Path | None) -> dict[str, list[tuple[str, str, int]]]:
    """For each workload its scripts: name, text, weight."""
    out: dict[str, list[tuple[str, str, int]]] = {}
    for name, workload in experiment.workloads.items():
        out[name] = []
        for i, script in enumerate(workload.scripts):
            label = name if len(workload.scripts) == 1 else f"{name}-{i + 1}"
            out[name].append(_script_text(script, label, folder, f"workloads.{name}.scripts.{i}"))
        if workload.standby_reads is not None:
            label = standby_reads_of(name)
            where = f"workloads.{name}.standby_reads.script"
            out[label] = [_script_text(workload.standby_reads.script, label, folder, where)]
    return out


def schedule_texts(experiment: Experiment, folder: Path | None) -> dict[str, str]:
    """For each workload that is a replay, the text of its schedule. Raises SpecError."""
    out = {}
    for name, workload in experiment.workloads.items():
        if workload.replay is not None:
            path = (folder or Path()) / workload.replay
            try:
                out[name] = files.read_text(path)
            except (OSError, ValueError) as e:
                where = f"workloads.{name}.replay"
                raise SpecError(msg("error-cannot-read-for-key", where=where, path=path, reason=reason(e))) from e
    return out


def standby_reads_of(workload: str) -> str:
    """Return the name that a workload's standby reads have among the scripts of workloads."""
    return f"{workload} on standbys"


def _script_text(script: Script, label: str, folder: Path | None, where: str) -> tuple[str, str, int]:
    if script.builtin is not None:
        return script.name or script.builtin, builtins.named(script.builtin).text, script.weight
    if script.text is not None:
        return script.name or f"{label}.sql", script.text, script.weight
    path = (folder or Path()) / str(script.file)
    try:
        return script.name or str(path), files.read_text(path), script.weight
    except (OSError, ValueError) as e:
        raise SpecError(msg("error-file-cannot-read", where=where, path=path, reason=reason(e))) from e
