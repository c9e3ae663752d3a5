"""Sizes of a run's datasets: as the experiment says, as data on the targets have them, or as they fit."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.borrowed import BorrowedCluster
from pgdyno.cluster.target import Target
from pgdyno.errors import RefusedError, msg
from pgdyno.load import find, mysql
from pgdyno.load.dataset import KINDS
from pgdyno.load.own.dataset import OwnDataset
from pgdyno.load.planned import AnyDataset, plan_dataset
from pgdyno.message import Name, Text
from pgdyno.mysql.target import MySqlTarget
from pgdyno.run.planning.matrix import Configuration, Place
from pgdyno.run.planning.options import Options
from pgdyno.run.sites import dataset
from pgdyno.run.sites.addresses import Addresses
from pgdyno.search_path import qualified
from pgdyno.spec import datasets as spec
from pgdyno.spec.experiment import Experiment


class DatasetSizes:
    """Datasets of a run's places."""

    def __init__(
        self,
        experiment: Experiment,
        options: Options,
        configurations: Sequence[Configuration],
        borrowed: Mapping[Path, BorrowedCluster],
    ) -> None:
        """`borrowed`: clusters that the run has started already, by their folders."""
        self.experiment = experiment
        self.options = options
        self._addresses = Addresses(experiment, options)
        self._configurations = configurations
        self._borrowed = borrowed
        #: By dataset whose size is left open and by target, the size that is there.
        self._found: dict[str, dict[str, int]] = {}
        self._chosen: dict[tuple[str, int | None], AnyDataset] = {}
        #: By target, why it only reads.
        self.reads_only: dict[str, Text] = {}

    def survey(self) -> None:
        """Inspect the existing data of the targets before anything is loaded.

        Data that the run itself creates would give no information. Sizes that were left open are taken from the
        existing data, and stopped clusters are started for this purpose. A dataset that would have to be removed is
        refused at once, not after the first trials.
        """
        datasets = self.experiment.all_datasets
        open_ = dict.fromkeys(c.place.dataset for c in self._configurations if c.place.scale is None)
        self._found = {
            name: self._sizes_there(name) for name in open_ if datasets[name].left_open or datasets[name].adopt
        }
        for name in open_:
            if datasets[name].adopt and not self._found[name]:
                raise RefusedError(
                    msg("error-dataset-adopt-no-target-pgbench"),
                    msg("remedy-name-server-them-target-or"),
                )
        for place in dict.fromkeys(c.place for c in self._configurations):
            target = self._addresses.resolve(place.target)
            if isinstance(target, MySqlTarget):
                _look(target, self.dataset_of(place, folder=None), replace=self.options.replace)
            elif target is None and self.experiment.all_targets[place.target].product == "mariadb":
                definition = self.experiment.dataset_at(place.dataset, place.scale)
                wanted = plan_dataset(definition, folder=Path(tempfile.gettempdir()))
                _refuse_misfit(Name(f"targets.{place.target}"), wanted)
            elif target is not None:
                options = self.options
                with administration.connect(target) as conn:
                    if why := find.reads_only(conn, target):
                        self.reads_only[place.target] = why
                    wanted = self.dataset_of(place, folder=None)
                    dataset.look(conn, target, wanted, force=options.force, replace=options.replace)

    def dataset_of(self, place: Place, *, folder: Path | None) -> AnyDataset:
        """Return the dataset of a place.

        If its size is left open, the size is that of a dataset that `survey` found on a target. That dataset may have
        taken hours to load. If there is none, the size is one that fits. All places must have equal datasets to be
        comparable. Raise RefusedError if targets have different ones.
        """
        key = (place.dataset, place.scale)
        if key in self._chosen:
            return self._chosen[key]
        definition = self.experiment.dataset_at(place.dataset, place.scale)
        planned = plan_dataset(definition, folder=folder)
        sizes = self._found.get(place.dataset, {}) if definition.left_open or definition.adopt else {}
        if len(set(sizes.values())) > 1:
            listed = ", ".join(f"targets.{name} has {size:,}" for name, size in sizes.items())
            size = KINDS[definition.kind].unit
            raise RefusedError(
                msg("error-which-size-was-left-open", kind=definition.kind, size=size, listed=listed),
                msg("remedy-say-dataset-what-there-another", size=size),
            )
        found = next(iter(sizes.values()), planned.size)
        wanted: AnyDataset = planned
        if isinstance(planned, OwnDataset):
            wanted = replace(planned, adopted=found if definition.adopt and sizes else 0)
        elif found != planned.size:
            wanted = replace(planned, size=found)
        self._chosen[key] = wanted
        return wanted

    def _sizes_there(self, name: str) -> dict[str, int]:
        """Return the size of an existing complete dataset of this kind, by target.

        Only targets that the run will use are inspected.
        """
        found = {}
        definition = self.experiment.all_datasets[name]
        places = dict.fromkeys(c.place.target for c in self._configurations if c.place.dataset == name)
        for target in places:
            base = self.experiment.all_targets[target].cluster
            if base is not None:
                with ExitStack() as stack:
                    cluster = self._borrowed.get(Path(base).resolve())
                    if cluster is None:
                        cluster = stack.enter_context(BorrowedCluster(Path(base), []))
                    elif not cluster.is_alive():
                        cluster.start()
                        stack.callback(cluster.put_aside)
                    size = _size_there(stack.enter_context(administration.connect(cluster.target)), definition)
            elif isinstance(address := self._addresses.resolve(target), Target):
                with administration.connect(address) as conn:
                    size = _size_there(conn, definition)
            else:
                continue
            if size is not None:
                found[target] = size
        return found


def _refuse_misfit(where: Text, wanted: AnyDataset) -> None:
    """Raise RefusedError for a dataset that cannot be made on a server of MySQL or MariaDB."""
    if not isinstance(wanted, OwnDataset):
        mysql.refuse_unfit(where, wanted)
    elif wanted.kind != "none" or wanted.adopted:
        raise RefusedError(
            msg("error-no-loading-into-mysql", kind=wanted.kind, where=where),
            msg("remedy-kind-none-of-mysql"),
        )


def _look(target: MySqlTarget, wanted: AnyDataset, *, replace: bool) -> None:
    """Raise RefusedError for a dataset that cannot be made there, or in whose place other tables stand."""
    _refuse_misfit(target.where, wanted)
    if not isinstance(wanted, OwnDataset):
        mysql.look(target, wanted, replace=replace)


def _size_there(conn: psycopg.Connection[tuple[Any, ...]], definition: spec.Dataset) -> int | None:
    """Return the size of a complete dataset that equals the definition except for its size, or None.

    For adopted pgbench tables it does not matter which tool created them. Their size is determined as pgbench does it:
    the number of rows of pgbench_branches.
    """
    guess = plan_dataset(definition, folder=None)
    if isinstance(guess, OwnDataset):
        name = qualified(conn, "pgbench_branches")
        try:
            row = conn.execute(f"select count(*) from {name}".encode()).fetchone()
        except psycopg.errors.UndefinedTable:
            return None
        return int(row[0]) or None if row is not None else None
    named = find.find(conn, guess).name or ""
    match = re.fullmatch(rf"({guess.kind} {KINDS[guess.kind].unit}=)(\d+)(.*)", named)
    if match is None:
        return None
    wanted = replace(guess, size=int(match[2]))
    # Complete for its own size, not for the one that we would have chosen.
    found = find.find(conn, wanted)
    return wanted.size if found.holds(wanted) else None
