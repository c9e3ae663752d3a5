"""An experiment, ready to be run: valid, and its scripts compiled, before anything is touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import ValidationError

from pgdyno import conninfo as conninfos
from pgdyno.collect import host
from pgdyno.dbms import Dialect
from pgdyno.engine import Sample
from pgdyno.errors import ReasonError, SpecError, UsageError, msg
from pgdyno.load.dataset import KINDS, Dataset
from pgdyno.load.own import touched
from pgdyno.load.own.dataset import OwnDataset
from pgdyno.load.planned import AnyDataset
from pgdyno.message import Name, message
from pgdyno.mysql import target as mysql
from pgdyno.mysql.target import names_mysql
from pgdyno.run.planning import replay
from pgdyno.run.planning.dialects import dialects_of
from pgdyno.run.planning.workloads import compiled, listing
from pgdyno.spec import load as specs
from pgdyno.spec.experiment import Axes, Experiment, SampleOf
from pgdyno.spec.values import variable_of
from pgdyno.store import manifest
from pgdyno.store.manifest import Change

#: Of a warehouse (clause 4.2.2).
_TERMINALS = 10


@dataclass(frozen=True)
class Prepared:
    """An experiment that may be run."""

    experiment: Experiment
    #: Its file's text.
    text: str
    #: For each workload its scripts: name, text, weight.
    scripts: dict[str, list[tuple[str, str, int]]]
    #: By which clients were chosen.
    cores: int
    #: Where run directories are made.
    runs: Path
    #: What --shrink changed.
    shrunk: Sequence[Change | str]
    #: The run directory that is continued.
    resumed: Path | None = None
    #: What was typed, for the record.
    command: str = ""
    #: What the user gives the run to find it again.
    tags: Sequence[str] = ()
    remark: str = ""
    #: For each workload that is a replay, its schedule.
    schedules: dict[str, str] = field(default_factory=dict)

    def replay(self, workload: str) -> replay.Replay | None:
        """Which session begins which script when; None: any, by weights. Raises SpecError."""
        if workload not in self.schedules:
            return None
        of = self.experiment.workloads[workload]
        return replay.parsed(self.schedules[workload], self.scripts[workload], of.samples, of.replay or "replay")


def variables_for(data: AnyDataset, hot_set: float, tables: Sequence[touched.Touched] = ()) -> dict[str, str]:
    """Return the variables that scripts may use.

    They are `scale` (of tpcb, tpcc and sql; otherwise 1), `range` (rows of the hot set), `hot_set`, and `tables` (the
    number of identical tables). For the user's own `tables`, their rows and keys are added.
    """
    rows = data.rows_of_key
    if isinstance(data, OwnDataset):
        rows = data.adopted * KINDS["tpcb"].rows_per_scale or max((t.rows for t in tables), default=1)
        return {
            "scale": str(data.adopted or data.size),
            "range": str(max(1, round(rows * hot_set))),
            "hot_set": f"{hot_set:g}",
            "tables": "1",
            **touched.variables(tables, hot_set),
        }
    found = {
        "scale": str(data.size if KINDS[data.kind].is_scale else 1),
        "range": str(max(1, round(rows * hot_set))),
        "hot_set": f"{hot_set:g}",
        "tables": str(data.tables_wanted),
    }
    if data.kind == "tpcc":
        found |= {"warehouses": str(data.size), "sets": str(data.tables_wanted), "data_seed": str(data.seed)}
    return found


def prepare(
    name_or_path: str,
    adjust: Callable[[Experiment], tuple[Experiment, list[Change]]],
    runs: Path,
    conninfo: str | None = None,
) -> Prepared:
    """Prepare an experiment, given by its name or its file.

    The path of a run directory continues that run. `conninfo` is the command line's.

    Raise SpecError if the experiment or a script is not valid. Raise UsageError if the run cannot be continued.
    """
    if (Path(name_or_path) / manifest.FILE).exists():
        prepared = _continued(Path(name_or_path))
        if adjust(prepared.experiment) != (prepared.experiment, []):
            raise UsageError(
                msg("error-run-continued-keeps-scale-durations"),
                msg("remedy-leave-those-options-out-or"),
            )
    else:
        experiment, text, folder = specs.read(name_or_path)
        experiment, shrunk = adjust(experiment)
        scripts = specs.script_texts(experiment, folder, name_or_path, text)
        scripts |= {name: listing(w.tpcc) for name, w in experiment.workloads.items() if w.tpcc is not None}
        schedules = specs.schedule_texts(experiment, folder)
        prepared = Prepared(experiment, text, scripts, host.cores(), runs, shrunk, schedules=schedules)
    _check_addresses(prepared.experiment, conninfo)
    for dialect in sorted(dialects_of(prepared.experiment, conninfo)):
        _check_scripts(prepared, dialect, name_or_path)
    return prepared


def _check_addresses(experiment: Experiment, conninfo: str | None) -> None:
    """Raise UsageError for a connection string that is not valid; nothing is connected to."""
    given = {"--target": conninfo} if conninfo is not None else {}
    given |= {
        f"targets.{name}.conninfo": t.conninfo for name, t in experiment.targets.items() if t.conninfo is not None
    }
    for named, text in given.items():
        if names_mysql(text):
            mysql.read(text, named=named)
        else:
            conninfos.read(text, named=named)


def _check_scripts(prepared: Prepared, dialect: Dialect, file: str) -> None:
    matrices = prepared.experiment.matrices
    datasets = prepared.experiment.all_datasets
    own = any(d.is_own for d in datasets.values())
    for d in datasets.values():
        if d.is_own:
            # Reads its files: a mistake is said before anything is touched.
            OwnDataset.planned(d)
    for name in prepared.schedules:
        if (found := prepared.replay(name)) is not None:
            replay.check(prepared.experiment, name, found.schedule)
    for number, axes in enumerate(matrices):
        _check_tpcc(prepared.experiment, axes)
        variables = variables_for(Dataset("tpcb", 1), 1.0) | dict.fromkeys(axes.variables, "1")
        for workload in _script_variables(prepared.experiment, axes):
            if own:
                # Known when the tables are there.
                texts = [text for _, text, _ in prepared.scripts[workload]]
                variables |= {f"{table}_{what}": "1" for table, what in touched.requested_properties(texts)}
            try:
                compiled(
                    prepared.scripts[workload],
                    variables,
                    samples=_samples(prepared.experiment, workload),
                    dialect=dialect,
                )
            except SpecError as e:
                at = specs.place_of(file, prepared.text, ["workloads", workload, "scripts"])
                place = message("prepare-in-workload", place=Name(at), workload=Name(workload), mistake=e.cause)
                matrix = message("prepare-in-matrix", number=number + 1, names=Name(", ".join(axes.variables)))
                raise SpecError(place, matrix if len(matrices) > 1 else e.advice) from e


def _columns_only(samples: Mapping[str, SampleOf]) -> list[Sample]:
    """Return samples without rows, against which scripts are compiled."""
    return [Sample(name, [variable_of(c) for c in s.columns], []) for name, s in samples.items()]


def _samples(experiment: Experiment, workload: str) -> list[Sample]:
    """Return the samples, without rows, for the scripts of a workload or of its reads on standbys."""
    of = experiment.workloads.get(workload.removesuffix(specs.standby_reads_of("")))
    return [] if of is None else _columns_only(of.samples)


def _script_variables(experiment: Experiment, axes: Axes) -> list[str]:
    """Return the names of the script sets to run: workloads that consist of scripts, and reads on standbys."""
    named = {name: experiment.workloads[name] for name in axes.workload or experiment.workloads}
    reads = [specs.standby_reads_of(name) for name, w in named.items() if w.standby_reads is not None]
    return [*(name for name, w in named.items() if w.tpcc is None), *reads]


def _check_tpcc(experiment: Experiment, axes: Axes) -> None:
    """TPC-C needs its tables, and is varied by what it knows."""
    for name in axes.workload or experiment.workloads:
        tpcc = experiment.workloads[name].tpcc
        if tpcc is None:
            continue
        for key in axes.dataset or experiment.all_datasets:
            if experiment.all_datasets[key].kind != "tpcc":
                raise SpecError(
                    msg("error-workloads-tpc-c-datasets", name=name, key=key, kind=experiment.all_datasets[key].kind),
                    msg("remedy-needs-own-tables-kind-tpcc"),
                )
        varied = {key: values for key, values in axes.variables.items() if key in type(tpcc).model_fields}
        for key, value in ((key, value) for key, values in varied.items() for value in values):
            try:
                type(tpcc).model_validate({**tpcc.model_dump(), key: value})
            except ValidationError as e:
                reason = e.errors()[0]["msg"].removeprefix("Value error, ")
                raise SpecError(msg("error-axes-variables", key=key, reason=reason, value=repr(value))) from e
        trips = {str(v) for v in varied.get("round_trips", [tpcc.round_trips])}
        if "pipelined" in trips and "simple" in (axes.protocol or [experiment.run.protocol]):
            raise SpecError(
                msg("error-round-trips-simple-protocol-no"),
                msg("remedy-use-protocol-prepared-or-leave"),
            )
        waits = [float(w) for w in varied.get("waits", [tpcc.waits])]
        if any(waits) and not all(waits):
            raise SpecError(msg("error-axes-variables-waits-waits-without"), msg("remedy-make-run-each-or-leave"))
        if any(waits) and experiment.run.is_duet:
            raise SpecError(msg("error-duet-no-waits-slices-shorter"), msg("remedy-use-order-interleaved"))
        for key in axes.dataset or experiment.all_datasets:
            data = experiment.all_datasets[key]
            scales = axes.scale or ([data.scale] if isinstance(data.scale, int) else [])
            most = max(axes.clients) if any(waits) and isinstance(axes.clients, list) else 0
            if scales and most > _TERMINALS * min(scales) * data.tables:
                raise SpecError(
                    msg(
                        "error-clients-waits-more-than-terminals",
                        most=most,
                        terminals=_TERMINALS,
                        value=min(scales) * data.tables,
                    ),
                    msg("remedy-give-fewer-clients-or-more"),
                )
        if any(waits) and experiment.run.rate is not None:
            raise SpecError(msg("error-waits-goes-closed-loop"), msg("remedy-leave-rate-out"))


def _continued(path: Path) -> Prepared:
    """Return the prepared experiment of the run in `path`, which is to be continued.

    Raise UsageError if the manifest does not state how the run was made. Raise UsageError also if the run is a search
    for a capacity.
    """
    m = manifest.read(path)
    prepared = recorded(path, m)
    if m.capacity is not None:
        raise UsageError(msg("error-search-for-capacity-which-cannot", path=path), msg("remedy-start-anew"))
    return replace(prepared, resumed=path)


def recorded(path: Path, m: manifest.Manifest) -> Prepared:
    """Return the experiment of the run in `path`, as the command line changed it, with its scripts.

    Raise UsageError if the manifest does not state how the run was made.
    """
    try:
        # Pydantic's ValidationError is one.
        experiment = Experiment.model_validate(m.experiment)
        text = (path / "experiment.toml").read_text(encoding="utf-8")
        if m.cores is None:
            raise ReasonError(msg("why-key-missing", key="cores"))
    except (OSError, ValueError) as e:
        raise UsageError(
            msg("error-cannot-be-continued-manifest-json", path=path, reason=e),
            msg("remedy-another-version-pgdyno-or-damaged"),
        ) from e
    return Prepared(experiment, text, m.scripts, m.cores, path.parent, m.shrunk, schedules=m.schedules)
