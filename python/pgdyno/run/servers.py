"""The servers of a run: each place (target, version, dataset) gets its own, made when it is first needed.

Only one private server runs at a time: others would take its processors and its memory. Those that wait are stopped,
their data stay on disk until the run ends.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg

from pgdyno.cluster import datadir, limits, templates, versions
from pgdyno.cluster import target as targets
from pgdyno.cluster.account import server_account
from pgdyno.cluster.binaries import Binaries
from pgdyno.cluster.borrowed import BorrowedCluster
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.filesystem import LoopFileSystem
from pgdyno.cluster.limits import Limits
from pgdyno.cluster.scratch import Scratch
from pgdyno.cluster.settings import Setting, sized
from pgdyno.cluster.target import Target
from pgdyno.collect import host
from pgdyno.errors import ClusterError, LocalError, PgdynoError, RefusedError, SpecError
from pgdyno.load import find
from pgdyno.load.dataset import KINDS, Dataset
from pgdyno.model import spelled
from pgdyno.run import dataset
from pgdyno.run.listener import Listener
from pgdyno.run.plan import Configuration, Pairs, Place
from pgdyno.spec import experiment as spec
from pgdyno.spec.experiment import Experiment, size_bytes

#: Settings of ours that the note at the start tells.
_TOLD = ("shared_buffers", "effective_cache_size", "maintenance_work_mem", "max_connections", "max_wal_size")
#: How we reach the server, and where its files are.
_OURS = {
    "port",
    "unix_socket_directories",
    "data_directory",
    "hba_file",
    "ident_file",
    "config_file",
    "external_pid_file",
}
_SETTING_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$")


@dataclass(frozen=True)
class Options:
    """What the command line says about servers."""

    #: libpq connection string; None: private servers, unless the environment names one.
    target: str | None = None
    embedded: bool = False
    keep: bool = False
    force: bool = False
    pg_bin: Path | None = None
    #: What is done about templates: "use" one that holds the dataset, also "keep" what was loaded as one, "off".
    templates: str = "use"


@dataclass
class Site:
    """A place that is in use: its server, and what lies in it."""

    place: Place
    target: Target
    dataset: Dataset
    #: Where we start and stop it.
    cluster: EmbeddedCluster | BorrowedCluster | None = None
    #: Holds the claim on a database that is not ours alone.
    claim: psycopg.Connection[tuple[Any, ...]] | None = None
    settings: Pairs | None = None
    loaded: dict[str, Any] = field(default_factory=dict)

    @property
    def database(self) -> object:
        """What it shares with others: the database that is claimed, or the cluster's folder."""
        return self.claim if self.cluster is None else self.cluster.base

    @property
    def reached(self) -> dict[str, Any]:
        """Where a server that is not ours is; of ours nothing, its folder is another each time."""
        t = self.target
        return {} if self.cluster is not None else {"host": t.host, "port": t.port, "dbname": t.dbname}

    def died(self) -> str | None:
        """Why the server is gone, if it is ours and is gone."""
        if self.cluster is None or self.cluster.is_alive():
            return None
        return f"the server has died: {self.cluster.last_words(2)}"


class Servers:
    """Use as a context manager: at its end every private server is stopped, and its data are gone unless kept."""

    def __init__(
        self, experiment: Experiment, configurations: list[Configuration], options: Options, listener: Listener
    ) -> None:
        self.experiment = experiment
        self.options = options
        self.listener = listener
        self._configurations = configurations
        self._clients = max(c.clients for c in configurations)
        self._sites: dict[Place, Site] = {}
        self._stack = ExitStack()
        self._folders: dict[str, Path | None] = {}
        self._limits: dict[str, Limits | None] = {}
        self._chosen: dict[tuple[str, int | None], Dataset] = {}
        self._refuse_contradictions()

    def __enter__(self) -> Servers:
        self._stack.__enter__()
        return self

    def __exit__(self, *about: Any) -> None:
        self._stack.__exit__(*about)

    @property
    def sites(self) -> list[Site]:
        """Those that are in use."""
        return list(self._sites.values())

    def logs(self, folder: Path) -> None:
        """Copies the logs of private servers to `folder`."""
        ours = [s for s in self.sites if s.cluster is not None]
        for n, site in enumerate(ours):
            name = "server.log" if n == 0 else f"server-{n + 1}.log"
            assert site.cluster is not None
            with suppress(OSError):
                shutil.copyfile(site.cluster.log, folder / name)

    # ------------------------------------------------------------ use

    def reach(self, configuration: Configuration) -> Site:
        """The configuration's server runs, with its settings, and no other private one does. Not yet loaded."""
        site = self._sites.get(configuration.place)
        for other in self.sites:
            if other is not site and other.cluster is not None:
                other.cluster.stop()
        if site is None:
            site = self._open(configuration)
            self._sites[configuration.place] = site
        elif site.cluster is not None:
            if site.settings != configuration.settings:
                borrowed = isinstance(site.cluster, BorrowedCluster)
                site.cluster.configure((self._named_settings if borrowed else self._settings)(configuration))
                site.settings = configuration.settings
            elif (died := site.died()) and site.cluster.process_id is not None:
                raise ClusterError(died, "The server's log is in the run directory: server.log.")
            else:
                site.cluster.start()
        return site

    def load(self, site: Site) -> None:
        """The dataset is there, and what it asks for besides."""
        alone = sum(s.database == site.database for s in self.sites) == 1
        if site.loaded and (alone or self._still_there(site)):
            return
        run, wanted = self.experiment.run, site.dataset
        if site.cluster is not None:
            with targets.administrative(site.target) as conn:
                by_files = _takes_files(conn, site.cluster)
                if not by_files:
                    site.loaded = self._over_connections(conn, site, run)
            if by_files:
                force = self.options.force
                site.loaded = dataset.ensure_in(site.cluster, wanted, force=force, listener=self.listener)
            if site.loaded["loaded"] and self.options.templates == "keep":
                self._keep_as_template(site)
        else:
            assert site.claim is not None
            site.loaded = self._over_connections(site.claim, site, run)
        self._set_up(site)

    def dataset_of(self, place: Place, *, folder: Path | None) -> Dataset:
        """The dataset of a place. What fits depends on the disk, which fills meanwhile, and all places must have equal
        ones to be compared: so it is asked once.
        """
        key = (place.dataset, place.scale)
        if key not in self._chosen:
            wish = self.experiment.all_datasets[place.dataset]
            if place.scale is not None:
                wish = wish.model_copy(update={"scale": place.scale})
            self._chosen[key] = dataset.chosen(wish, local_data=folder)
        return self._chosen[key]

    def is_private(self, name: str) -> bool:
        """Whether a target is a server of our own."""
        return self._conninfo(name) is None

    def folder_of(self, name: str) -> Path | None:
        """Where a target's data directories are made; None: the temporary folder."""
        if name in self._folders:
            return self._folders[name]
        wish = self.experiment.all_targets[name]
        folder = None
        if wish.file_system is not None:
            f = wish.file_system
            self.listener.note(f"{name}: making {f.type} in a file of {f.size} ...")
            made = LoopFileSystem(f.type, size_bytes(f.size), mkfs=f.mkfs, mount=f.mount)
            folder = self._stack.enter_context(made).path
        elif wish.cluster is not None:
            folder = Path(wish.cluster)
        elif wish.folder is not None:
            folder = Path(wish.folder)
            if not folder.is_dir():
                raise LocalError(f"targets.{name}.folder: {folder} is no folder", "Make it, or name another.")
        self._folders[name] = folder
        return folder

    # ------------------------------------------------------------ making

    def _refuse_contradictions(self) -> None:
        options = self.options
        if options.target is not None and self.experiment.targets:
            raise SpecError(
                "--target, but the experiment names its own targets",
                "Change its [targets], or use an experiment without.",
            )
        if options.pg_bin is not None and any(c.place.version for c in self._configurations):
            raise SpecError("--pg-bin, but the experiment names versions", "Leave one of them out.")
        running = [c for c in self._configurations if not self.is_private(c.place.target)]
        clusters = {name for name, t in self.experiment.all_targets.items() if t.cluster is not None}
        if any(c.place.version and c.place.target in clusters for c in self._configurations):
            raise SpecError("axes.version goes with private servers: a cluster is of its own version", "Leave it out.")
        between = self.experiment.run.between
        for what, wrong in (
            ("axes.version", any(c.place.version for c in running)),
            ("axes.settings", any(c.settings for c in running)),
            ("run.between.restart", bool(running) and between.restart),
            ("run.between.drop_caches", bool(running) and between.drop_caches),
        ):
            if wrong:
                raise SpecError(
                    f"{what} goes with private servers, and this run has one that is running already",
                    "Leave it out, or let pgdyno start the server: --embedded.",
                )
        if options.keep:
            for name, target in self.experiment.all_targets.items():
                if target.file_system is not None:
                    raise SpecError(
                        f"--keep, but targets.{name} has a file system that goes with the run", "Use folder."
                    )

    def _conninfo(self, name: str) -> str | None:
        wish = self.experiment.all_targets[name]
        if wish.conninfo is not None:
            return wish.conninfo
        if self.experiment.targets:
            return None
        wanted = self.options.target
        if wanted is None and not self.options.embedded and targets.named_by_environment():
            return ""
        return wanted

    def _open(self, configuration: Configuration) -> Site:
        conninfo = self._conninfo(configuration.place.target)
        if (base := self.experiment.all_targets[configuration.place.target].cluster) is not None:
            return self._borrowed(configuration, Path(base))
        if conninfo is None:
            return self._private(configuration)
        named = f"targets.{configuration.place.target}.conninfo" if self.experiment.targets else "--target"
        target = targets.resolve(conninfo, self.experiment.run.connect_timeout_s, named=named)
        # The same database by another name or with other options is claimed already: by us.
        where = (target.host, target.port, target.dbname)
        previous = next((s for s in self.sites if s.claim and (*s.reached.values(),) == where), None)
        if previous is not None:
            claim = previous.claim
        else:
            claim = self._stack.enter_context(targets.administrative(target))
            self.listener.note(f"target: {target.where}")
            find.claim(claim, target)
            find.refuse_if_busy(claim, target, self.options.force)
        wanted = self._there(claim, configuration.place) or self.dataset_of(configuration.place, folder=None)
        return Site(configuration.place, target, wanted, claim=claim, settings=configuration.settings)

    def _there(self, claim: psycopg.Connection[tuple[Any, ...]] | None, place: Place) -> Dataset | None:
        """Where the size is left to us, a dataset of ours that is there already: it may have taken hours to load."""
        wish = self.experiment.all_datasets[place.dataset]
        if claim is None or place.scale is not None or wish.scale != "auto" or wish.rows is not None:
            return None
        guess = self.dataset_of(place, folder=None)
        found = find.find(claim, guess)
        match = re.fullmatch(rf"{guess.kind} (?:scale|rows)=(\d+)", found.name or "")
        if not found.complete and match:
            # Complete for its own size, not for the one that we would have chosen.
            found = find.find(claim, replace(guess, size=int(match[1])))
        if not match or not found.complete or guess.name != f"{guess.kind} {KINDS[guess.kind][0]}={guess.size}":
            return None
        self._chosen[place.dataset, None] = replace(guess, size=int(match[1]))
        return self._chosen[place.dataset, None]

    def _borrowed(self, configuration: Configuration, base: Path) -> Site:
        place = configuration.place
        settings = self._named_settings(configuration)
        cluster = BorrowedCluster(base, settings, self._limits_of(place.target))
        self._stack.enter_context(cluster)
        self.listener.note(f"started PostgreSQL {cluster.binaries.version} in {base}, for this run")
        with targets.administrative(cluster.target) as conn:
            wanted = self._there(conn, place) or self.dataset_of(place, folder=cluster.data)
        return Site(place, cluster.target, wanted, cluster=cluster, settings=configuration.settings)

    def _private(self, configuration: Configuration) -> Site:
        place = configuration.place
        folder = self.folder_of(place.target)
        wanted = self.dataset_of(place, folder=folder or Path(tempfile.gettempdir()))
        settings = self._settings(configuration)
        pg_bin = self.options.pg_bin
        if place.version is not None:
            self.listener.note(f"looking for PostgreSQL {place.version} ...")
            pg_bin = versions.programs(place.version)
        spaces = self._tablespaces(place.target)
        self.listener.note("starting a private PostgreSQL ...")
        cluster = EmbeddedCluster(
            settings,
            keep=self.options.keep,
            pg_bin=pg_bin,
            template=lambda programs: self._template(place, wanted, programs),
            parent=folder,
            limits=self._limits_of(place.target),
        )
        self._stack.enter_context(cluster)
        if self.options.keep:
            self._stack.callback(lambda: self.listener.note(f"kept (stopped): {cluster.data}"))
        assert cluster.binaries is not None
        self.listener.note(f"PostgreSQL {cluster.binaries.version} ({cluster.binaries.origin}) in {cluster.base}")
        told = ", ".join(f"{s.name}={s.value}" for s in settings if s.name in _TOLD)
        self.listener.note(f"settings for this machine: {told}")
        self._create_tablespaces(place.target, cluster, spaces)
        return Site(place, cluster.target, wanted, cluster=cluster, settings=configuration.settings)

    def _settings(self, configuration: Configuration) -> list[Setting]:
        wish = self.experiment.all_targets[configuration.place.target]
        memory = size_bytes(wish.memory) if wish.memory else host.memory_bytes()
        cores = max(1, int(wish.cpus)) if wish.cpus else host.cores()
        named = self._named_settings(configuration)
        names = {s.name for s in named}
        return [s for s in sized(memory, cores, self._clients) if s.name not in names] + named

    def _named_settings(self, configuration: Configuration) -> list[Setting]:
        """Those of the experiment."""
        wish = self.experiment.all_targets[configuration.place.target]
        named = {**wish.settings, **dict(configuration.settings)}
        if wish.file_system is not None:
            # WAL lies on it as well, and must not fill it.
            part = size_bytes(wish.file_system.size) >> 20
            named = {"max_wal_size": f"{part // 4}MB", "min_wal_size": f"{part // 8}MB", **named}
        for name in named:
            if not _SETTING_NAME.match(name) or name.lower() in _OURS:
                raise SpecError(
                    f'settings: "{name}" is no server setting that an experiment may choose',
                    "Where the server listens and where its files are is pgdyno's.",
                )
        return [Setting(n, _text(v), "of the experiment") for n, v in named.items()]

    def _limits_of(self, name: str) -> Limits | None:
        if name not in self._limits:
            wish = self.experiment.all_targets[name]
            self._limits[name] = None
            if wish.cpus is not None or wish.memory is not None:
                limits.sweep()
                memory = size_bytes(wish.memory) if wish.memory else None
                if (wish.cpus or 0) > host.cores() or (memory or 0) > host.memory_bytes():
                    raise RefusedError(
                        f"targets.{name} has {wish.cpus or 0:g} cpus and {wish.memory or 'all memory'}: this machine "
                        f"is "
                        f"smaller ({host.cores()} cores, {host.memory_bytes() >> 20} MB)",
                        "Use a larger machine, or --shrink, which fits the instances to this one.",
                    )
                self._limits[name] = self._stack.enter_context(Limits(wish.cpus, memory))
        return self._limits[name]

    def _tablespaces(self, name: str) -> dict[str, Path]:
        """Folders for them. Made before the server, so that they are removed after it has stopped."""
        made = {}
        account = server_account()
        for space, parent in self.experiment.all_targets[name].tablespaces.items():
            folder = Path(parent)
            if not folder.is_dir():
                raise LocalError(f"targets.{name}.tablespaces.{space}: {folder} is no folder", "Make it.")
            # Swept by the next pgdyno when this one is killed.
            scratch = Scratch(folder)
            self._stack.callback(scratch.keep if self.options.keep else scratch.remove)
            made[space] = scratch.path / "tablespace"
            made[space].mkdir(mode=0o700)
            account.own(made[space])
        return made

    def _create_tablespaces(self, name: str, cluster: EmbeddedCluster, spaces: dict[str, Path]) -> None:
        with targets.administrative(cluster.target) as conn:
            for space, folder in spaces.items():
                location = str(folder).replace("'", "''")
                try:
                    conn.execute(f"create tablespace \"{space}\" location '{location}'".encode())
                except psycopg.Error as e:
                    raise LocalError(
                        f"targets.{name}.tablespaces.{space}: {' '.join(str(e).split())}",
                        f'Can the account "{cluster.account.name}", which runs the server, reach {folder}?',
                    ) from e

    # ------------------------------------------------------------ loading

    def _still_there(self, site: Site) -> bool:
        """Another place of the same database may have replaced it."""
        if site.claim is not None:
            found = find.find(site.claim, site.dataset)
        else:
            with targets.administrative(site.target) as conn:
                found = find.find(conn, site.dataset)
        return found.complete and found.name == site.dataset.name

    def _over_connections(self, conn: psycopg.Connection[tuple[Any, ...]], site: Site, run: spec.Run) -> dict[str, Any]:
        return dataset.ensure(
            conn,
            site.target,
            site.dataset,
            force=self.options.force,
            connect_timeout_s=run.connect_timeout_s,
            listener=self.listener,
        )

    def _set_up(self, site: Site) -> None:
        statements = self.experiment.all_datasets[site.place.dataset].setup
        if not statements:
            return
        with targets.administrative(site.target) as conn:
            for n, statement in enumerate(statements):
                try:
                    conn.execute(statement.encode())
                except psycopg.Error as e:
                    reason = " ".join(str(e).split())
                    raise SpecError(f"datasets.{site.place.dataset}.setup.{n}: {reason}", "") from e

    # ------------------------------------------------------------ templates

    def _template(self, place: Place, wanted: Dataset, programs: Binaries) -> Path | None:
        """The data directory of a template that holds the dataset."""
        if self.options.templates == "off":
            return None
        store = templates.Store(templates.store_folder())
        named = templates.name_of([wanted.name], programs.version, templates.bytes_by_default(programs))
        found = store.find(named)
        if found is None:
            return None
        self.listener.note(f"from the template {found.name}: {found.bytes / 1e6:,.0f} MB")
        return store.data_of(found.name)

    def _keep_as_template(self, site: Site) -> None:
        cluster = site.cluster
        if not isinstance(cluster, EmbeddedCluster):
            # It stays by itself.
            return
        assert cluster.binaries is not None
        store = templates.Store(templates.store_folder())
        cluster.stop()
        directory = datadir.DataDirectory(cluster.data, cluster.binaries.major, cluster.account)
        settings = templates.bytes_by_default(cluster.binaries)
        try:
            template, _ = store.add(directory, [site.dataset.name], cluster.binaries.version, settings)
            self.listener.note(f"kept as the template {template.name} in {store.folder}")
        except PgdynoError as e:
            self.listener.note(f"not kept as a template: {e.message}")
        finally:
            cluster.start()


def _takes_files(conn: psycopg.Connection[tuple[Any, ...]], cluster: EmbeddedCluster | BorrowedCluster) -> bool:
    """Whether its files may be written, the server being stopped meanwhile: not those of a version that we do not know,
    nor past an archive or a standby, which would never hear of it.
    """
    assert cluster.binaries is not None
    row = conn.execute(
        "select current_setting('archive_mode') = 'off' and not exists (select from pg_replication_slots)"
    ).fetchone()
    return cluster.binaries.major in datadir.VERSIONS and row == (True,)


def _text(value: Any) -> str:
    """As the server takes it."""
    if isinstance(value, str) and any(c in value for c in "\n\r\0"):
        raise RefusedError("a server setting has a line break in it", "Write it in one line.")
    return spelled(value) if isinstance(value, bool) else str(value)
