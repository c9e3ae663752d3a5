"""Reads experiment files: ready-made ones by name, others by path."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pgdyno import files
from pgdyno.conninfo import looks_secret
from pgdyno.errors import SpecError, msg, reason
from pgdyno.format import one_line
from pgdyno.message import Message, Name, Text, listed
from pgdyno.spec import builtins, keys, places
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
        raise _invalid_toml(text, place, line, reason) from e
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


def _invalid_toml(text: str, place: str, line: str | None, reason: str) -> SpecError:
    if line and reason == "Cannot overwrite a value":
        lines = text.splitlines()[: int(line)]
        table = next((n for n in range(len(lines) - 1, -1, -1) if lines[n].lstrip().startswith("[")), -1) + 1
        key = lines[-1].partition("=")[0].strip()
        found = [n for n in range(table, len(lines)) if lines[n].partition("=")[0].strip() == key]
        # A value of several lines ends elsewhere than its key stands.
        if len(found) == 2 and found[1] == len(lines) - 1 and "=" in lines[-1]:
            twice = msg("error-toml-twice", file=place, key=key, first=str(found[0] + 1))
            return SpecError(twice, msg("remedy-delete-one"))
        return SpecError(msg("error-toml-again", file=place), msg("remedy-delete-one"))
    return SpecError(msg("error-not-valid-toml", file=place, reason=reason), msg("remedy-toml"))


#: Names that pydantic gives to alternatives of a value.
_KINDS = ("float", "int", "str", "bool")


def mistakes(e: ValidationError) -> list[Any]:
    """Return the mistakes, without those of alternatives that the user did not mean.

    For example, a key takes `"auto" or a number`, and its value is 0. Then only the complaint about the number is
    useful.
    """
    errors = e.errors()

    def meant(error: Any) -> bool:
        if not error["loc"]:
            return True
        prefix = error["loc"][:-1]
        others = [x for x in errors if x is not error and x["loc"][: len(prefix)] == prefix]
        if error["loc"][-1] in _KINDS and error["type"].endswith("_type"):
            # One of these was of the value's kind, and says more.
            return not any(x["loc"][-1] in _KINDS and not x["type"].endswith("_type") for x in others)
        return not others or not str(error["loc"][-1]).startswith("literal")

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


def wording(error: Any, known: Sequence[str] = ()) -> Text:
    """Return what is wrong with a value, and with which key if pydantic does not name it. See `_wording`."""
    mistake = error.get("ctx", {}).get("error")
    text = _wording(error, known)
    return msg("spec-key", key=mistake.key, mistake=text) if isinstance(mistake, MistakeError) and mistake.key else text


def _wording(error: Any, known: Sequence[str] = ()) -> Text:
    """Return what is wrong with a value, in pgdyno's words where pydantic has its own.

    `known` are the keys of the file's tables; by default those of experiments.
    """
    kind, context = error["type"], error.get("ctx", {})
    if isinstance(mistake := context.get("error"), MistakeError):
        return mistake.text
    if kind == "extra_forbidden":
        return _unknown_key(_written(error), known)
    if kind == "literal_error":
        return msg("spec-one-of", values=context["expected"])
    if kind == "string_pattern_mismatch":
        return msg("spec-pattern", pattern=context["pattern"])
    if kind in ("float_type", "float_parsing") and str(error["loc"][-1]).endswith("_s"):
        return _no_seconds(str(error.get("input")))
    if kind in ("model_type", "model_attributes_type") and "scripts" in error["loc"][-2:]:
        return msg("spec-script-table")
    if kind in _WORDING:
        id, limit = _WORDING[kind]
        return msg(id, limit=context[limit]) if limit else msg(id)
    message: str = error["msg"]
    return Name(message.removeprefix("Value error, ").replace("Input should be", "must be"))


def _no_seconds(text: str) -> Message:
    """Return what is wrong with a text in the place of seconds, such as the 10m of the command line."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|m|min|h)", text)
    if match is None:
        return msg("spec-seconds")
    return msg("spec-seconds-write", n=f"{float(match[1]) * {'s': 1, 'h': 3600}.get(match[2], 60):g}")


def _unknown_key(path: Sequence[str | int], known: Sequence[str]) -> Text:
    """Return what is wrong with a key that its table cannot have; `known` are the keys of other files' tables."""
    key, here = str(path[-1]), known or keys.keys_of(path[:-1])
    if near := difflib.get_close_matches(key, here, 1):
        return msg("spec-unknown-near", near=near[0])
    if not known:
        everywhere = sorted({k for table in keys.tables().values() for k in table})
        near = difflib.get_close_matches(key, everywhere, 1)
        tables = sorted(keys.tables_with(near[0]), key=len)[:3] if near else []
        if tables:
            places = [Name(t) if t else msg("spec-top") for t in tables]
            return msg("spec-unknown-belongs", near=near[0], tables=listed(places, "comma"))
        if here:
            return msg("spec-unknown-known", keys=", ".join(here))
    return msg("spec-unknown")


def _written(error: Any) -> list[str | int]:
    """Return the path of a mistake as the file has it, without the names of alternatives that pydantic adds."""
    tags = ("literal", "constrained", "list[", "function-", "alternative-")
    path = [p for p in error["loc"] if isinstance(p, int) or not str(p).startswith(tags)]
    if isinstance(mistake := error.get("ctx", {}).get("error"), MistakeError) and mistake.key:
        return [*path, *(int(p) if p.isdigit() else p for p in mistake.key.split("."))]
    is_tagged = len(path) > 1 and isinstance(path[-2], int) and path[-1] in _KINDS
    return path[:-1] if is_tagged else path


def _shown_key(path: Sequence[str | int]) -> Text:
    """Return a key as people read it: names with dots, items of lists by their number from 1."""
    if not path:
        return msg("spec-file")
    parts: list[Text] = []
    names: list[str] = []
    for p in [*path, None]:
        if isinstance(p, str):
            names.append(p)
            continue
        if names:
            parts.append(Name(".".join(names)))
            names = []
        if p is not None:
            parts.append(msg("spec-item", n=str(p + 1)))
    return listed(parts, "list")


def describe(text: str, file: str, error: Any, known: Sequence[str] = (), *, shows_value: bool = True) -> Text:
    """Return a mistake with its file, line and key. See `wording`."""
    path = _written(error)
    value = error.get("input")
    # Of a key that is not known, the value may be a password.
    is_shown = shows_value and isinstance(value, _SHOWN) and error["type"] != "extra_forbidden"
    is_shown = is_shown and not looks_secret(str(value))
    shown = msg("spec-shown", value=repr(value)) if is_shown else Name("")
    return msg(
        "spec-at", place=place_of(file, text, path), key=_shown_key(path), mistake=_wording(error, known), shown=shown
    )


def _line_of(text: str, path: list[str]) -> int | None:
    """Return the line of a key; of one that the text lacks, of the nearest table that it has; else None."""
    try:
        known = places.lines(text)
    except (ValueError, IndexError, RecursionError):
        # The text is not the file's own: options have changed the experiment.
        return None
    return next((known[found] for n in range(len(path), 0, -1) if (found := tuple(path[:n])) in known), None)


def place_of(file: str, text: str, path: Sequence[str | int]) -> str:
    """Return a file and, if it has the key or its table, the line."""
    line = _line_of(text, [str(p) for p in path])
    return f"{file}:{line}" if line else file


def script_texts(
    experiment: Experiment, folder: Path | None, file: str = "", text: str = ""
) -> dict[str, list[tuple[str, str, int]]]:
    """For each workload its scripts: name, text, weight. `file` and `text` are the experiment's, for mistakes."""

    def read(script: Script, label: str, key: list[str | int]) -> tuple[str, str, int]:
        return _script_text(script, label, folder, key, place_of(file, text, [*key, "file"]))

    out: dict[str, list[tuple[str, str, int]]] = {}
    for name, workload in experiment.workloads.items():
        out[name] = []
        for i, script in enumerate(workload.scripts):
            label = name if len(workload.scripts) == 1 else f"{name}-{i + 1}"
            out[name].append(read(script, label, ["workloads", name, "scripts", i]))
        if workload.standby_reads is not None:
            label = standby_reads_of(name)
            out[label] = [read(workload.standby_reads.script, label, ["workloads", name, "standby_reads", "script"])]
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


def _script_text(
    script: Script, label: str, folder: Path | None, key: Sequence[str | int], place: str
) -> tuple[str, str, int]:
    if script.builtin is not None:
        return script.name or script.builtin, builtins.named(script.builtin).text, script.weight
    if script.text is not None:
        return script.name or f"{label}.sql", script.text, script.weight
    path = (folder or Path()) / str(script.file)
    try:
        return script.name or str(path), files.read_text(path), script.weight
    except (OSError, ValueError) as e:
        raise SpecError(
            msg("error-file-cannot-read", place=place, where=_shown_key([*key, "file"]), path=path, reason=reason(e)),
            msg("remedy-relative-path"),
        ) from e
