"""The experiment file's model. Every key a user may write stands here, with its bounds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from pgdyno.conninfo import holds_secret
from pgdyno.spec.datasets import Dataset
from pgdyno.spec.values import (
    PRIVATE,
    RESERVED,
    Distinct,
    Driver,
    Folder,
    MistakeError,
    Name,
    Protocol,
    Rate,
    RateOrClosed,
    Size,
    Some,
    SpaceName,
    Strict,
    Title,
    Value,
    Variable,
    Version,
)
from pgdyno.units import Quantity

#: What can be collected beside a trial.
Collected = Literal["machine", "server", "waits", "log", "plans", "statements", "buffers"]


class FileSystem(Strict):
    """A file system made for the run: in a file, mounted through a loop device. Only root may."""

    type: Literal["xfs", "ext4", "btrfs"]
    #: Of the file that holds it.
    size: Size = "4GB"
    #: For mkfs, e.g. ["-d", "agcount=4"].
    mkfs: list[str] = []
    #: For mount, e.g. "noatime".
    mount: str = "noatime"

    @model_validator(mode="after")
    def _no_paths(self) -> FileSystem:
        # mkfs would format what is named, and root may: a disk that is in use.
        for name, words in (("mkfs", self.mkfs), ("mount", [self.mount])):
            if any("/" in word for word in words):
                raise MistakeError("spec-no-paths", name=name)
        return self


class Target(Strict):
    """A database under test: a private server, or one that is there already."""

    title: str = ""
    #: Product of the private server.
    product: Literal["postgresql", "mariadb"] = "postgresql"
    #: Connection string of a running server, as libpq takes it; none: a private server is started for the run.
    conninfo: str | None = None
    #: Folder of a cluster that stays (pgdyno cluster create, or restore): started for the run, with `settings` over its
    #: own, and stopped again; what is loaded into it stays.
    cluster: Folder | None = None
    #: Of the private server; none: the embedded one. "17": an installed one, else one that is fetched.
    version: Version | None = None
    #: Server settings, over those that pgdyno chooses for the machine.
    settings: dict[str, Value] = {}
    #: Where its data directory is made: any folder, on the storage to be measured. None: the temporary folder.
    folder: Folder | None = None
    file_system: FileSystem | None = None
    #: Tablespaces: name, and the folder in which they are made.
    tablespaces: dict[SpaceName, Folder] = {}
    #: Servers that follow the private one, each with a base backup of it once it is loaded.
    standbys: Annotated[int, Field(ge=0, le=8)] = 0
    #: SQL that runs in the private server when its dataset is loaded, each statement by itself: an index, a fill
    #: factor.
    setup: list[str] = []
    #: As small as an instance: processors and memory that the server may use (a control group; only root may).
    cpus: Annotated[float, Field(gt=0, le=4096)] | None = None
    memory: Size | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Target:
        if self.conninfo is not None:
            ours = (
                "version",
                "settings",
                "folder",
                "file_system",
                "tablespaces",
                "standbys",
                "setup",
                "cpus",
                "memory",
            )
            for name in ours:
                if getattr(self, name):
                    raise MistakeError("spec-private-only", key=name)
            if holds_secret(self.conninfo):
                raise MistakeError("spec-password")
        if self.cluster is not None:
            for name in ("conninfo", "version", "folder", "file_system", "tablespaces", "standbys", "setup"):
                if getattr(self, name):
                    raise MistakeError("spec-cluster-or", name=name)
        if self.product != "postgresql":
            for name in ("conninfo", "cluster", "version", "file_system", "tablespaces", "standbys", "setup"):
                if getattr(self, name):
                    raise MistakeError("spec-only-postgresql", name=name)
        if self.folder is not None and self.file_system is not None:
            raise MistakeError("spec-either", one="folder", other="file_system")
        if self.standbys and self.tablespaces:
            raise MistakeError("spec-standbys-tablespaces")
        return self


class Script(Strict):
    """A script in pgbench's language, given here or in a file beside the experiment, or a built-in of pgbench."""

    text: str | None = None
    file: str | None = None
    builtin: Literal["tpcb-like", "simple-update", "select-only"] | None = None
    #: How reports call it; none: its file's name, or the workload's.
    name: Title = ""
    weight: Annotated[int, Field(ge=0, le=2**31 - 1)] = 1

    @model_validator(mode="after")
    def _one_of_them(self) -> Script:
        if sum(x is not None for x in (self.text, self.file, self.builtin)) != 1:
            raise MistakeError("spec-script-source")
        return self


class Tpcc(Strict):
    """TPC-C's five transactions, in place of scripts. Keys but `mix` can be varied as variables are."""

    #: How statements travel. "statements": a round trip each, as sysbench-tpcc has it; "pipelined": those that do not
    #: depend on each other share one; "functions": one for the transaction, by a function in the server.
    round_trips: Literal["statements", "pipelined", "functions"] = "statements"
    #: Which warehouse a client works on. "random": any, drawn each time; "bound": its own; "terminal": its own, and its
    #: own district.
    home: Literal["random", "bound", "terminal"] = "random"
    #: Of each transaction; "default": the server's.
    isolation: Literal["default", "read committed", "repeatable read", "serializable"] = "default"
    #: The standard's keying and think times, times this; 0: none, as sysbench and HammerDB. With waits the mix is dealt
    #: from the standard's deck, and clients are terminals: ten a warehouse.
    waits: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.0
    #: How often each is chosen: new-order, payment, order-status, delivery, stock-level.
    mix: Annotated[list[Annotated[int, Field(ge=0, le=1_000_000)]], Field(min_length=5, max_length=5)] = [
        10,
        10,
        1,
        1,
        1,
    ]

    @model_validator(mode="after")
    def _standard_or_not(self) -> Tpcc:
        if not sum(self.mix):
            raise MistakeError("spec-mix-zero")
        if self.waits and self.mix != [10, 10, 1, 1, 1]:
            raise MistakeError("spec-mix-waits")
        return self


class StandbyReads(Strict):
    """Reads on the standbys while the workload runs on the primary: a script, over a number of connections."""

    script: Script
    #: Over all standbys.
    clients: Annotated[int, Field(ge=1, le=100_000)]
    #: Transactions per second over all of them; absent or 0: closed loop.
    rate: RateOrClosed = None


_MEAN = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ProducedScript(Strict):
    """Production figures of one call of a script.

    Figures that production did not count are absent.
    """

    #: Of all calls that the scripts stand for.
    share: Annotated[float, Field(ge=0, le=1)]
    #: Statements in it.
    statements: Annotated[int, Field(ge=1)] = 1
    ms: _MEAN | None = None
    rows: _MEAN | None = None
    blocks: _MEAN | None = None
    wal_bytes: _MEAN | None = None
    #: Its plan, in words.
    plan: Annotated[str, Field(max_length=10_000)] | None = None


class Production(Strict):
    """Production system from which a workload was captured.

    Reports compare the run with it.
    """

    #: Part of it that the scripts stand for, and of what: "production's time".
    covered: Annotated[float, Field(ge=0, le=1)]
    of: Title = ""
    #: Transactions a second (of pg_stat_statements: statements) that the scripts stand for.
    tps: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    #: By the scripts' names.
    scripts: dict[str, ProducedScript] = {}


class SampleOf(Strict):
    r"""Rows from which scripts draw with `\pick NAME [PREFIX]`.

    The rows are those of a table, or are given in the experiment. Each column is drawn into a variable of its own.
    """

    #: As SQL names it: schema.table.
    table: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    columns: Annotated[list[Annotated[str, Field(min_length=1, max_length=63)]], Some, Distinct]
    #: Of a table: how many at most.
    rows: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    #: Of a table: also rows with NULL in one of the columns.
    nulls: bool = True
    #: Rows that are given here, in place of a table's.
    values: Annotated[list[list[Annotated[str, Field(max_length=1_000_000)]]], Field(max_length=1_000_000)] = []
    #: A transaction's values are said by `replay`, and not drawn.
    scheduled: bool = False

    @model_validator(mode="after")
    def _check_datasets(self) -> SampleOf:
        if (self.table is not None) + bool(self.values) + self.scheduled != 1:
            raise MistakeError("spec-sample-source")
        if wrong := [n for n, row in enumerate(self.values) if len(row) != len(self.columns)]:
            raise MistakeError("spec-values-columns", number=wrong[0], n=Quantity(len(self.columns), "whole"))
        return self


class Workload(Strict):
    """One or more weighted scripts, or TPC-C."""

    scripts: list[Script] = []
    tpcc: Tpcc | None = None
    #: A file beside the experiment: which session begins which script when, in place of weights.
    replay: str | None = None
    #: What its scripts draw from with `\\pick`.
    samples: dict[Variable, SampleOf] = {}
    #: How the table of results calls its figure.
    title: Title = ""
    title_zh: Title = ""
    #: Rows that each transaction writes: the report then tells rows per second.
    rows: Annotated[int, Field(ge=0)] = 0
    standby_reads: StandbyReads | None = None
    #: A trial fails if one of its statements finds or changes no row in most of its executions.
    expect_rows: bool = False
    #: Its sessions may not write (default_transaction_read_only).
    read_only: bool = False
    #: Of a captured workload, as `pgdyno capture` writes it.
    production: Production | None = None

    @model_validator(mode="after")
    def _some_script_is_chosen(self) -> Workload:
        if bool(self.scripts) == (self.tpcc is not None):
            raise MistakeError("spec-either", one="scripts", other="tpcc")
        if self.tpcc is None and not any(s.weight for s in self.scripts):
            raise MistakeError("spec-script-weights")
        return self


class Axes(Strict):
    """Axes that vary; each combination of their values is a trial.

    An axis that is left out has one value.
    """

    workload: Annotated[list[str], Distinct] = []
    #: Names of targets.
    target: Annotated[list[str], Distinct] = []
    #: Names of datasets.
    dataset: Annotated[list[str], Distinct] = []
    #: Versions of the private server.
    version: Annotated[list[Version], Distinct] = []
    #: In place of the dataset's own.
    scale: Annotated[list[Annotated[int, Field(ge=1, le=1_000_000)]], Distinct] = []
    #: Part of the rows that the workload touches.
    hot_set: Annotated[list[Annotated[float, Field(gt=0, le=1)]], Some, Distinct] = [1.0]
    #: Connections; "auto": 1, 4 and 16 a core.
    clients: Literal["auto"] | Annotated[list[Annotated[int, Field(ge=1, le=100_000)]], Some, Distinct] = "auto"
    protocol: Annotated[list[Protocol], Distinct] = []
    #: The client: the engine's own (auto), or a driver of Python (python:MODULE[:FACTORY]).
    driver: Annotated[list[Driver], Distinct] = []
    rate: Annotated[list[Rate], Distinct] = []
    #: Milliseconds that the network adds to a round trip between the primary and each of its standbys.
    round_trip_ms: Annotated[list[Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)]], Distinct] = []
    #: Server settings, of private servers: each with its values.
    settings: dict[str, Annotated[list[Value], Some, Distinct]] = {}
    #: Variables of scripts: each with its values.
    variables: dict[Variable, Annotated[list[Value], Some, Distinct]] = {}

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Axes:
        for name in self.variables:
            if name in RESERVED or name in self.settings:
                raise MistakeError("spec-variable-name", name=name)
        for name in self.settings:
            if name in RESERVED:
                raise MistakeError("spec-axis-name", name=name)
        return self


class Between(Strict):
    """Actions before each trial, so that all trials begin in the same state."""

    checkpoint: bool = False
    #: Of private servers; "if_possible": of others nothing.
    restart: bool | Literal["if_possible"] = False
    #: The kernel's page cache, with private servers; only root may. "if_possible": else nothing.
    drop_caches: bool | Literal["if_possible"] = False
    #: The data as they were loaded: "template", from a copy of the private server's data directory (shared blocks
    #: where the file system can); "truncate", the tables of the dataset that began empty are emptied; or a file of SQL.
    restore: str = "none"
    pause_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 0.0

    @model_validator(mode="after")
    def _known_restore(self) -> Between:
        if self.restore not in ("none", "template", "truncate") and not self.restore.endswith(".sql"):
            raise MistakeError("spec-restore", restore=self.restore)
        return self


class Run(Strict):
    """Parameters of each trial."""

    protocol: Protocol = "prepared"
    duration_s: Annotated[float, Field(ge=0.1, le=10_000_000, allow_inf_nan=False)] = 60.0
    #: Longest measurement of a trial that continues until its throughput is steady; absent: it ends after duration_s.
    duration_limit_s: Annotated[float, Field(ge=0.1, le=10_000_000, allow_inf_nan=False)] | None = None
    #: Seconds before the measurement; "steady": until the throughput has no trend any more.
    warmup_s: Literal["steady"] | Annotated[float, Field(ge=0, le=10_000_000, allow_inf_nan=False)] = 5.0
    #: With "steady": at most so long.
    warmup_limit_s: Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)] = 300.0
    interval_s: Annotated[float, Field(ge=0.01, le=10_000_000, allow_inf_nan=False)] = 1.0
    repetitions: Annotated[int, Field(ge=1, le=10_000)] = 3
    #: How often the private servers are started anew, each with all repetitions: what a server's start makes
    #: of a figure (memory, files, plans) is part of its noise then.
    restarts: Annotated[int, Field(ge=1, le=1_000)] = 1
    #: Of the trials: "random" within each repetition, "interleaved" (A B A B), or "written" (A A B B). "duet": of two
    #: values of one axis, each on a server of its own; both are up, and the load goes to them in turn, a slice each.
    #: "auto": a duet where two values are compared on private servers and it fits, else random.
    #: "simultaneous": a duet under load on both sides at once, each on half of what the machine has.
    order: Literal["auto", "random", "interleaved", "written", "duet", "simultaneous"] = "auto"
    #: Seconds of a duet's slices; absent: by the duration, from 0.25 to 2.
    slice_s: Annotated[float, Field(ge=0.05, le=3600, allow_inf_nan=False)] | None = None
    between: Between = Between()
    #: Transactions per second over all clients (open loop, Poisson arrivals); absent or 0: closed loop.
    rate: RateOrClosed = None
    #: How often a transaction is tried that meets a serialization failure or a deadlock; 1: it has failed then.
    max_tries: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    #: After each trial of TPC-C its consistency conditions are checked.
    check: bool = True
    #: Worker threads; absent: one, and one more for each 64 clients, at most one a core.
    workers: Annotated[int, Field(ge=1)] | None = None
    driver: Driver = "auto"
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 20180901
    connect_timeout_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 10.0
    #: What is recorded of the server beside the client's figures: before and after each trial.
    record: list[Literal["tables", "wal", "checkpoints", "database"]] = ["tables", "wal", "checkpoints", "database"]
    #: What is collected while a trial runs, so that `pgdyno explain` can say why; empty: nothing.
    collect: list[Collected] = ["machine", "server", "waits", "log", "plans", "statements"]
    #: How often pg_stat_activity is looked at.
    waits_per_s: Annotated[float, Field(gt=0, le=100)] = 10.0

    @model_validator(mode="after")
    def _limit_is_longer(self) -> Run:
        if self.duration_limit_s is not None and self.duration_limit_s < self.duration_s:
            raise MistakeError("spec-limit-shorter", limit=self.duration_limit_s, duration=self.duration_s)
        if self.duration_limit_s is not None and self.is_duet:
            raise MistakeError("spec-limit-duet", order=self.order)
        return self

    @property
    def is_duet(self) -> bool:
        """Return True if one run of the engine drives two configurations."""
        return self.order in ("duet", "simultaneous")

    @property
    def longest_s(self) -> float:
        """The most seconds that a trial is measured for."""
        return self.duration_s if self.duration_limit_s is None else self.duration_limit_s


class Storage(Strict):
    """A probe of the storage that the private servers' data lie on, before anything is loaded."""

    #: Of each job.
    seconds: Annotated[float, Field(ge=1, le=86_400, allow_inf_nan=False)] = 10.0
    size: Size | None = None
    threads: Annotated[int, Field(ge=1, le=4096)] | None = None


class Experiment(Strict):
    """A whole experiment."""

    name: Name
    title: Title
    title_zh: Title = ""
    #: A sentence under the table of results.
    note: str = ""
    note_zh: str = ""
    #: Where the matrix comes from: what was published, and where.
    source: str = ""
    targets: dict[Name, Target] = {}
    #: Of one dataset, or of several that have names.
    dataset: Dataset | None = None
    datasets: dict[Name, Dataset] = {}
    workloads: Annotated[dict[Name, Workload], Field(min_length=1)]
    #: One matrix, or several that run together.
    axes: Annotated[
        Annotated[Axes, Tag("alternative-one")]
        | Annotated[list[Axes], Field(min_length=1), Tag("alternative-several")],
        Discriminator(lambda given: "alternative-several" if isinstance(given, list) else "alternative-one"),
    ] = Axes()
    run: Run = Run()
    storage: Storage | None = None

    @model_validator(mode="after")
    def _names_are_known(self) -> Experiment:
        if self.dataset is not None and self.datasets:
            raise MistakeError("spec-either", one="dataset", other="datasets")
        limits: dict[str, Any] = {}
        for name, t in self.targets.items():
            if t.cluster and limits.setdefault(t.cluster, (t.cpus, t.memory)) != (t.cpus, t.memory):
                raise MistakeError("spec-same-cluster", name=name)
        known: dict[str, list[str]] = {
            "workload": list(self.workloads),
            "target": list(self.all_targets),
            "dataset": list(self.all_datasets),
        }
        for i, axes in enumerate(self.matrices):
            where = f"axes.{i}" if isinstance(self.axes, list) else "axes"
            for axis, names in known.items():
                for name in getattr(axes, axis):
                    if name not in names:
                        raise MistakeError("spec-not-among", key=f"{where}.{axis}", name=name, names=", ".join(names))
            used = {n: self.all_targets[n] for n in axes.target or self.all_targets}
            replicated = [n for n, t in used.items() if t.standbys]
            if axes.round_trip_ms and not replicated:
                raise MistakeError("spec-round-trip", where=where)
            for name in axes.workload or self.workloads:
                if self.workloads[name].standby_reads and len(replicated) < len(used):
                    raise MistakeError("spec-standby-reads", name=name, where=where)
            if replicated and (self.run.is_duet or self.run.between.restore == "template"):
                what = f'order = "{self.run.order}"' if self.run.is_duet else 'between.restore = "template"'
                raise MistakeError("spec-not-with-standbys", what=what, name=replicated[0])
            if any(t.conninfo is not None for t in used.values()):
                for axis in ("version", "settings"):
                    if getattr(axes, axis):
                        raise MistakeError("spec-private-only", key=f"{where}.{axis}")
        return self

    @property
    def matrices(self) -> list[Axes]:
        """The axes, of one matrix or of several."""
        return self.axes if isinstance(self.axes, list) else [self.axes]

    @property
    def all_targets(self) -> dict[str, Target]:
        """The targets by name; one private server where none is named."""
        return self.targets or {PRIVATE: Target()}

    @property
    def all_datasets(self) -> dict[str, Dataset]:
        """The datasets by name; "dataset" where there is one."""
        return self.datasets or {"dataset": self.dataset or Dataset()}

    def dataset_at(self, name: str, scale: int | None) -> Dataset:
        """Return a dataset's definition, with the scale that an axis gives it; None: with its own."""
        definition = self.all_datasets[name]
        return definition if scale is None else definition.model_copy(update={"scale": scale})
