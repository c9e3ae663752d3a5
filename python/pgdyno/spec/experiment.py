"""The experiment file's model. Every key a user may write stands here, with its bounds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

#: Becomes part of a path.
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=60)]


def _distinct(values: list[Any] | str) -> list[Any] | str:
    if isinstance(values, list) and len(set(values)) != len(values):
        raise ValueError("a value stands twice; for more trials of one configuration use repetitions")
    return values


Distinct = AfterValidator(_distinct)


class Strict(BaseModel):
    """Unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Dataset(Strict):
    """What the tables hold."""

    kind: Literal["tpcb", "pk", "feed"] = "tpcb"
    #: tpcb: pgbench's scale, 100,000 rows of pgbench_accounts each; of the others 1,000,000 rows in all tables. "auto":
    #: what fits this machine.
    scale: Literal["auto"] | Annotated[int, Field(ge=1, le=1_000_000)] = "auto"
    #: Instead of a scale: rows of each table. Not for tpcb.
    rows: Annotated[int, Field(ge=0, le=10**12)] | None = None
    #: How many tables of feed.
    tables: Annotated[int, Field(ge=1, le=10_000)] = 1
    #: Partitions of pgbench_accounts, by range; 0: none.
    partitions: Annotated[int, Field(ge=0, le=10_000)] = 0
    fillfactor: Annotated[int, Field(ge=10, le=100)] = 100
    unlogged: bool = False

    @model_validator(mode="after")
    def _one_size(self) -> Dataset:
        if self.rows is not None and (self.kind == "tpcb" or self.scale != "auto"):
            raise ValueError("rows goes with pk and feed, instead of scale")
        if self.tables != 1 and self.kind != "feed":
            raise ValueError("tables goes with feed")
        if self.partitions and self.kind != "tpcb":
            raise ValueError("partitions goes with tpcb")
        return self


class Script(Strict):
    """A script in pgbench's language, given here or in a file beside the experiment."""

    text: str | None = None
    file: str | None = None
    weight: Annotated[int, Field(ge=0)] = 1

    @model_validator(mode="after")
    def _one_of_both(self) -> Script:
        if (self.text is None) == (self.file is None):
            raise ValueError('give either "text" or "file"')
        return self


class Workload(Strict):
    """One or more weighted scripts."""

    scripts: Annotated[list[Script], Field(min_length=1)]
    #: How the table of results calls its figure.
    title: str = ""


class Axes(Strict):
    """What is varied; each combination is a trial."""

    workload: Annotated[list[str], Distinct] = []
    #: Part of the rows that the workload touches.
    hot_set: Annotated[list[Annotated[float, Field(gt=0, le=1)]], Field(min_length=1), Distinct] = [1.0]
    #: Connections; "auto": 1, 4 and 16 a core.
    clients: (
        Literal["auto"] | Annotated[list[Annotated[int, Field(ge=1, le=100_000)]], Field(min_length=1), Distinct]
    ) = "auto"


class Run(Strict):
    """How each trial is run."""

    protocol: Literal["simple", "extended", "prepared"] = "prepared"
    duration_s: Annotated[float, Field(ge=0.1, le=10_000_000, allow_inf_nan=False)] = 60.0
    warmup_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 5.0
    interval_s: Annotated[float, Field(ge=0.01, allow_inf_nan=False)] = 1.0
    repetitions: Annotated[int, Field(ge=1, le=1000)] = 3
    #: Transactions per second over all clients (open loop, Poisson arrivals); absent: closed loop.
    rate: Annotated[float, Field(gt=0, le=10_000_000, allow_inf_nan=False)] | None = None
    #: Worker threads; absent: one, and one more for each 64 clients, at most one a core.
    workers: Annotated[int, Field(ge=1)] | None = None
    driver: Literal["auto", "epoll", "uring", "polling"] = "auto"
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 20180901
    connect_timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 10.0


class Experiment(Strict):
    """A whole experiment."""

    name: Name
    title: str
    #: A sentence under the table of results.
    note: str = ""
    dataset: Dataset = Dataset()
    workloads: Annotated[dict[Name, Workload], Field(min_length=1)]
    axes: Axes = Axes()
    run: Run = Run()

    @model_validator(mode="after")
    def _axes_name_workloads(self) -> Experiment:
        for name in self.axes.workload:
            if name not in self.workloads:
                raise ValueError(f'axes.workload: "{name}" is not among the workloads ({", ".join(self.workloads)})')
        return self

    @property
    def workload_names(self) -> list[str]:
        """The workloads to run, in order."""
        return self.axes.workload or list(self.workloads)
