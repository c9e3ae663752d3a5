"""Typed contents of manifest.json: all that a run was made of.

This module alone defines how the file is written and read. Files of older versions are converted to the present form.

Schema 1 is written by this version. Files without a `schema` have schema 0: the same keys, some of which may be
missing. Sizes are in bytes, times in RFC 3339 UTC, durations in seconds.
"""

from __future__ import annotations

import json
import os
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pgdyno.errors import ReasonError, UsageError, msg
from pgdyno.message import Message, Name, Text, message
from pgdyno.store import texts
from pgdyno.store.probe import Probe

#: Of what this version writes.
SCHEMA = 1
FILE = "manifest.json"
#: The largest file that is read: beyond it is no manifest.
_MOST_BYTES = 256 << 20


class Part(BaseModel):
    """A part of the record. What a newer version wrote besides is left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


class FileSystem(Part):
    """File system on which files are stored."""

    mount: str = ""
    type: str = ""
    device: str = ""
    options: str = ""


class Change(Part):
    """Change that --shrink made to an experiment."""

    #: Id of the message, without `shrunk-`.
    what: str
    #: Dataset, table, target or axis that was changed.
    of: str = ""
    before: str = ""
    after: str = ""

    @property
    def message(self) -> Message:
        """Sentence about the change."""
        return message(f"shrunk-{self.what}", of=Name(self.of), before=Name(self.before), after=Name(self.after))


class Host(Part):
    """The client's machine."""

    cpu: str = "?"
    cores: int | None = None
    memory_bytes: int = 0
    kernel: str = "?"
    machine: str = ""
    python: str = ""
    #: Of the data, where they are on this machine.
    storage: FileSystem | None = None


class Setting(Part):
    """A server setting, and where its value comes from."""

    value: str | None = None
    source: str | None = ""


class Server(Part):
    """Facts that a server reports about itself.

    A fact that could not be read is absent.
    """

    version: str | None = ""
    #: MariaDB, MySQL; empty: PostgreSQL.
    product: str = ""
    #: As libpq numbers it: 180006.
    protocol_version: int = 0
    settings: dict[str, Setting] = {}
    in_recovery: bool | None = None
    same_machine: bool | None = None
    database_bytes: int | None = None
    #: What is between client and server, in words; empty: nothing that can be seen.
    pooler: str = ""

    def setting(self, name: str) -> str | None:
        """Return the value of a setting, or None if it is not recorded."""
        return self.settings[name].value if name in self.settings else None


class Address(Part):
    """A database, as libpq names it."""

    host: str = ""
    port: int | None = None
    user: str = ""
    dbname: str = ""


class Reached(Part):
    """Way in which the run reached its server, without anything that leads to a password."""

    pg_bin: str | None = None
    options: dict[str, Any] = {}


class ChosenSetting(Part):
    """A setting that pgdyno chose, and why."""

    name: str
    value: str
    #: In English, for readers of the file.
    reason: str = ""
    #: Of the message without `reason-`. Records of earlier versions have none.
    reason_id: str = ""


class Relation(Part):
    """A table or an index, as loaded."""

    name: str
    table: str = ""
    kind: str = "table"
    method: str = ""
    rows: int = 0
    bytes: int = 0
    #: Of a B-tree's root; absent: not known.
    level: int | None = None
    #: Pages that a search for one key touches.
    buffers: int | None = None


class LoadedDataset(Part):
    """A dataset, and how it came to be there."""

    name: str = ""
    kind: str = "tpcb"
    #: By this run; else it was found.
    loaded: bool = False
    method: str = ""
    rows: int = 0
    bytes_sent: int = 0
    phases_s: dict[str, float] = {}
    #: Of each phase and device what iostat -x shows, with `phase` and `seconds`; empty: not seen.
    devices: list[dict[str, Any]] = []
    #: By table, with its indexes.
    bytes: dict[str, int] = {}
    relations: list[Relation] = []

    @property
    def loading_s(self) -> float:
        """Seconds of loading. Checks of what was loaded are no part of it."""
        return sum(seconds for phase, seconds in self.phases_s.items() if phase != "check")


class Place(Part):
    """Place where trials ran: a server, and a dataset in it."""

    target: str = ""
    title: str = ""
    cpus: float | None = None
    memory_bytes: int | None = None
    rows: int = 0
    server: Server = Server()
    #: host, port and dbname of a running server; cluster and system_identifier of one that stays.
    reached: dict[str, Any] = {}
    storage: FileSystem | None = None
    dataset: LoadedDataset = LoadedDataset()


class RunParameters(Part):
    """Parameters of each trial of a run."""

    protocol: str | None = None
    duration_s: float | None = None
    duration_limit_s: float | None = None
    warmup_s: float | Literal["steady"] | None = None
    warmup_limit_s: float | None = None
    interval_s: float | None = None
    #: Of each start of the servers.
    repetitions: int = 0
    restarts: int = 1
    order: str = "random"
    slice_s: float | None = None
    rate: float | None = None
    workers: int | None = None
    driver: str | None = None
    seed: int | None = None
    connect_timeout_s: float | None = None
    record: list[str] | None = None
    between: dict[str, Any] | None = None

    @property
    def is_duet(self) -> bool:
        """Return True if one run of the engine drove two configurations."""
        return self.order in ("duet", "simultaneous")

    @property
    def seconds_of_a_trial(self) -> float:
        """Warm-up and measurement; of trials whose length is open, the shortest one."""
        warmup = self.warmup_limit_s if self.warmup_s == "steady" else self.warmup_s
        return (self.duration_s or 0.0) + (warmup or 0.0)


class CapacityProbe(Part):
    """Result of a trial at one rate."""

    rate: float
    done: float = 0.0
    latency_ns: float | None = None
    kept_up: bool = True
    holds: bool = False


class CapacityRate(Part):
    """A rate with its interval."""

    rate: float = 0.0
    low: float = 0.0
    high: float = 0.0


class Capacity(Part):
    """A search for the highest rate under an objective."""

    objective: str = ""
    figure: str = ""
    below_ns: float = 0.0
    #: That half of the trials hold; 0: none did. Of files of old: the highest that held.
    rate: float = 0.0
    #: Its interval.
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    #: The rate that 95% of the trials hold; None: it is in files of old.
    most: CapacityRate | None = None
    #: Standard deviation of the logarithm of the rate at which a trial just holds.
    spread: float | None = None
    #: The interval is as narrow as was asked for.
    narrow: bool = False
    #: A rate that failed and a higher one that held.
    contradiction: tuple[float, float] | None = None
    #: The highest that held, and the lowest that did not; 0: none.
    held: float = 0.0
    failed: float = 0.0
    #: The lowest that did not hold; of files of old.
    above: float | None = None
    closed_tps: float = 0.0
    probes: list[CapacityProbe] = []


class Manifest(Part):
    """A run, but for its trials."""

    schema_version: int = Field(SCHEMA, alias="schema")
    pgdyno: str = "?"
    name: str = ""
    title: str = ""
    title_zh: str = ""
    note: str = ""
    note_zh: str = ""
    source: str = ""
    started_at: str = ""
    resumed_at: str | None = None
    #: None: it is under way, or was killed.
    ended_at: str | None = None
    #: Why it ended early, in English; empty: it did not. And as data.
    error: str = ""
    error_message: Any = None
    #: Of the process; None: it has not ended.
    exit_code: int | None = None
    host: Host = Host()
    target: Address = Address()
    same_machine: bool = True
    #: The server is one of pgdyno's.
    managed: bool = False
    #: It was observed at its own work: the load is not pgdyno's.
    observed: bool = False
    reached: Reached = Reached()
    #: Places came one after the other.
    batched: bool = False
    chosen_settings: list[ChosenSetting] = []
    server: Server = Server()
    #: What could not be read, with the reason.
    not_recorded: list[str] = []
    #: The same as data; None: it is the same in every language.
    not_recorded_messages: list[Any] = []
    scale: int | None = None
    rows: int = 0
    #: By name, what the tables call their figures.
    workloads: dict[str, str] = {}
    workloads_zh: dict[str, str] = {}
    run: RunParameters = RunParameters()
    #: What was typed, without what is secret.
    command: str = ""
    #: What the user gives the run: --tag, --note.
    tags: list[str] = []
    remark: str = ""
    #: First sentence of the answer, in English and as data; empty: there is none.
    verdict: str = ""
    verdict_message: Any = None
    #: How many were planned.
    trials: int | None = None
    #: The values of the axes that vary, as written.
    varied: dict[str, list[Any]] = {}
    #: What --shrink changed.
    #: Changes by --shrink; sentences in runs of older versions.
    shrunk: list[Change | str] = []
    #: The experiment as it was carried out, and its scripts: what a run that was cut off is continued by.
    experiment: dict[str, Any] | None = None
    scripts: dict[str, list[tuple[str, str, int]]] = {}
    #: Of replays, by workload.
    schedules: dict[str, str] = {}
    cores: int | None = None
    #: By label.
    places: dict[str, Place] = {}
    #: Of the first place.
    dataset: LoadedDataset | None = None
    #: By target.
    storage_probes: dict[str, Probe] | None = None
    capacity: Capacity | None = None

    @field_validator("schema_version")
    @classmethod
    def _is_known(cls, value: int) -> int:
        check_schema(value)
        return value

    @property
    def error_text(self) -> Text | None:
        """Reason for which the run ended early, or None."""
        return texts.restored(self.error, self.error_message)

    @property
    def gaps(self) -> list[Text]:
        """Gaps of the record, with their reasons."""
        written = zip_longest(self.not_recorded, self.not_recorded_messages[: len(self.not_recorded)])
        return [texts.restored(text, data) or Name("") for text, data in written]

    def changed(self, **facts: Any) -> Manifest:
        """Return a copy with these facts replaced and validated."""
        return Manifest.model_validate({**self.model_dump(by_alias=True), **facts})

    def as_json(self) -> dict[str, Any]:
        """Return the manifest as it is stored in the file."""
        return self.model_dump(mode="json", by_alias=True)


def check_schema(schema: object) -> None:
    """Raise ReasonError if a file has a newer schema than this version of pgdyno supports."""
    if isinstance(schema, int) and schema > SCHEMA:
        raise ReasonError(msg("why-newer-schema", schema=schema, known=SCHEMA))


def _from_0(old: dict[str, Any]) -> dict[str, Any]:
    """Files without a schema: facts that were not there are null there, or had another form."""
    new = {k: v for k, v in old.items() if v is not None or k in ("ended_at", "exit_code", "scale", "capacity")}
    if not new.get("dataset") and new.get("scale"):
        new["dataset"] = {"name": f"tpcb scale={new['scale']}"}
    return {**new, "schema": 1}


#: By the schema that they begin from.
_MIGRATIONS = {0: _from_0}


#: Parts that lists of runs do not show: most of a manifest.
_DETAILS = ("experiment", "scripts", "schedules", "places", "storage_probes", "chosen_settings", "host")


def parse(text: str, *, brief: bool = False) -> Manifest:
    """Parse the text of a manifest file; with `brief`, without the parts that a list of runs does not show.

    Raise ValueError, which names the key and the mistake, if the text is not valid.
    """
    try:
        found = json.loads(text)
    except RecursionError:
        raise ReasonError(msg("why-too-deep")) from None
    if not isinstance(found, dict):
        raise ReasonError(msg("why-not-written-by-us"))
    schema = found.get("schema", 0)
    while isinstance(schema, int) and schema in _MIGRATIONS:
        found = _MIGRATIONS[schema](found)
        schema = found["schema"]
    if brief:
        found = {key: value for key, value in found.items() if key not in _DETAILS}
    try:
        return Manifest.model_validate(found)
    except ValidationError as e:
        raise ReasonError(explained(e)) from e


def explained(e: ValidationError) -> Message:
    """Return the first mistake: its key and the reason."""
    first = e.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    own = first.get("ctx", {}).get("error")
    why = own.cause if isinstance(own, ReasonError) else Name(first["msg"])
    if e.error_count() > 1:
        return msg("why-key-and-more", key=key, reason=why, n=e.error_count() - 1)
    return msg("why-key", key=key, reason=why)


def text_of(path: Path | str) -> str:
    """Return the text of a file that pgdyno has written.

    Raise ValueError if the file is too large or not UTF-8, and so is not one of pgdyno's. Raise OSError if the file
    cannot be read.
    """
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a path may be a string
        if os.fstat(file.fileno()).st_size > _MOST_BYTES:
            raise ReasonError(msg("why-too-large"))
        raw = file.readall()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as e:
        raise ReasonError(msg("why-not-utf8-byte", byte=e.start)) from e


def read(folder: Path, *, brief: bool = False) -> Manifest:
    """Read the manifest of a run directory. See `parse`.

    Raise UsageError if the manifest does not exist or cannot be read. The error states what is wrong with it.
    """
    path = folder / FILE
    try:
        return parse(text_of(path), brief=brief)
    except FileNotFoundError as e:
        if not folder.exists():
            raise UsageError(msg("error-there-no-run-directory", folder=folder), msg("remedy-runs-runs-default")) from e
        raise UsageError(
            msg("error-not-run-directory-no", folder=folder, file=FILE), msg("remedy-runs-runs-default")
        ) from e
    except NotADirectoryError as e:
        raise UsageError(msg("error-not-run-directory-file", folder=folder), msg("remedy-runs-runs-default")) from e
    except OSError as e:
        raise UsageError(
            msg("error-cannot-be-read", path=path, reason=e.strerror or e), msg("remedy-check-permissions")
        ) from e
    except ValueError as e:
        raise UsageError(
            msg("error-cannot-be-read", path=path, reason=e), msg("remedy-was-damaged-or-another-version")
        ) from e
