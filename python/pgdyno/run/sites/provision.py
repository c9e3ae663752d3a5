"""Provision of a run's servers: private ones and existing clusters, with folders, settings and limits."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from pgdyno.cluster import administration, binaries, datadir, limits, templates, versions
from pgdyno.cluster.account import server_account
from pgdyno.cluster.binaries import Binaries
from pgdyno.cluster.borrowed import BorrowedCluster
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.cluster.filesystem import LoopFileSystem
from pgdyno.cluster.held import HeldServer
from pgdyno.cluster.limits import Limits
from pgdyno.cluster.managed import ManagedCluster
from pgdyno.cluster.scratch import Scratch
from pgdyno.cluster.settings import OURS, Setting, counting_statements, sized
from pgdyno.collect import host
from pgdyno.errors import LocalError, PgdynoError, RefusedError, SpecError, msg
from pgdyno.format import one_line
from pgdyno.load.planned import AnyDataset
from pgdyno.message import Name, Text, message
from pgdyno.model import spelled
from pgdyno.mysql import server as mariadb
from pgdyno.mysql import settings as mysql_settings
from pgdyno.mysql.server import PrivateMariaDb
from pgdyno.mysql.settings import PROMISES, equal_promises
from pgdyno.replication.private import ReplicatedServer
from pgdyno.run.planning.matrix import Configuration, Pairs, Place
from pgdyno.run.planning.options import Options
from pgdyno.spec import experiment as spec
from pgdyno.spec.experiment import Experiment
from pgdyno.spec.values import size_bytes
from pgdyno.stream.events import Noted
from pgdyno.stream.stream import RunStream

#: Settings of ours that the note at the start tells.
_SHOWN = ("shared_buffers", "effective_cache_size", "maintenance_work_mem", "max_connections", "max_wal_size")
_SETTING_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$")


def _nearest(folder: Path, named: Mapping[str, str]) -> str:
    """Return the setting of the server that an unknown name comes nearest to; empty if there is none."""
    known = binaries.known_settings(folder)
    for name in named:
        if known and name not in known and "." not in name:
            near = difflib.get_close_matches(name, known, 1)
            return near[0] if near else ""
    return ""


class Provision:
    """Makes servers; `stack` is where what was made is undone. `clients`: the most that any trial has."""

    def __init__(
        self, experiment: Experiment, options: Options, clients: int, stream: RunStream, stack: ExitStack
    ) -> None:
        self.experiment = experiment
        self.options = options
        self.stream = stream
        self._clients = clients
        self._stack = stack
        self._folders: dict[str, Path | None] = {}
        self._limits: dict[str, Limits | None] = {}

    def refused_settings(self, configurations: Sequence[Configuration], *, fetch: bool) -> list[Text]:
        """Return the reasons why servers would reject their settings, before any server is created.

        Versions that are not on this machine are searched for only if `fetch` is True.
        """
        found: list[Text] = []
        asked = dict.fromkeys((c.place.target, c.place.version, c.settings) for c in configurations)
        for name, version, settings in asked:
            target = self.experiment.all_targets[name]
            if target.conninfo is not None or self.options.conninfo(self.experiment) is not None:
                continue
            if target.product == "mariadb":
                # It has no check of settings without a start.
                mariadb.programs()
                continue
            folder = self._programs_of(name, version, fetch=fetch)
            named = {s.name: s.value for s in self._named_settings(target, settings)}
            if folder is not None and named and (why := binaries.refusal(folder, named)):
                near = _nearest(folder, named)
                text = message(
                    "error-settings-rejected",
                    server=Name(f"PostgreSQL {version}") if version else message("the-server"),
                    target=message("of-target", target=Name(name)) if self.experiment.targets else None,
                    reason=Name(why),
                    near=message("did-you-mean", name=Name(near)) if near else None,
                )
                found += [] if text in found else [text]
        return found

    def _programs_of(self, name: str, version: str | None, *, fetch: bool) -> Path | None:
        """Return the folder with the server programs of a target.

        `fetch` also fetches a version that is not on this machine. Otherwise the programs of the embedded server take
        its place. Return None if the folder is not known, or not on this machine.
        """
        target = self.experiment.all_targets[name]
        if target.cluster is not None:
            try:
                return ManagedCluster(Path(target.cluster)).programs()
            except RefusedError:
                return None
        if version is not None:
            return (versions.programs(version) if fetch else versions.here(version)) or binaries.wheel_folder()
        return self.options.pg_bin or binaries.wheel_folder()

    def folder_of(self, name: str) -> Path | None:
        """Return the folder in which a target's data directories are created.

        None means the temporary folder.
        """
        if name in self._folders:
            return self._folders[name]
        target = self.experiment.all_targets[name]
        folder = None
        if target.file_system is not None:
            f = target.file_system
            self.stream.emit(
                Noted(message("progress-making-file-system", name=Name(name), type=Name(f.type), size=Name(f.size)))
            )
            made = LoopFileSystem(f.type, size_bytes(f.size), mkfs=f.mkfs, mount=f.mount)
            folder = self._stack.enter_context(made).path
        elif target.cluster is not None:
            folder = Path(target.cluster)
        elif target.folder is not None:
            folder = Path(target.folder)
            if not folder.is_dir():
                raise LocalError(
                    msg("error-targets-folder-not-folder", name=name, folder=folder), msg("remedy-make-or-name-another")
                )
        self._folders[name] = folder
        return folder

    def borrowed(self, configuration: Configuration, base: Path) -> BorrowedCluster:
        """Start an existing cluster, which remains after the run, and return it."""
        settings = self._named_settings_of(configuration)
        cluster = BorrowedCluster(base, settings, self._limits_of(configuration.place.target))
        self._stack.enter_context(cluster)
        self.stream.emit(
            Noted(message("progress-started", version=Name(cluster.binaries.version), folder=Name(str(base))))
        )
        return cluster

    def private(self, configuration: Configuration, wanted: AnyDataset) -> EmbeddedCluster:
        """Create a private server and return it.

        The server is created from a template if there is one that holds the dataset.
        """
        place = configuration.place
        pg_bin = self.options.pg_bin
        if place.version is not None:
            self.stream.emit(Noted(message("progress-looking", version=Name(str(place.version)))))
            pg_bin = versions.programs(place.version)
        # Some settings are by what the programs come with.
        settings = self._settings(configuration)
        spaces = self._tablespaces(place.target)
        self.stream.emit(Noted(message("progress-starting")))
        standbys = self.experiment.all_targets[place.target].standbys
        make = partial(ReplicatedServer, standbys=standbys) if standbys else EmbeddedCluster
        cluster = make(
            settings,
            keep=self.options.keep,
            pg_bin=pg_bin,
            template=lambda programs: self._template(place, wanted, programs),
            parent=self.folder_of(place.target),
            limits=self._limits_of(place.target),
        )
        self._stack.enter_context(cluster)
        if self.options.keep:
            self._stack.callback(
                lambda: self.stream.emit(Noted(message("progress-kept", folder=Name(str(cluster.data)))))
            )
        assert cluster.binaries is not None
        version, origin = Name(cluster.binaries.version), Name(str(cluster.binaries.origin))
        self.stream.emit(
            Noted(message("progress-server", version=version, origin=origin, folder=Name(str(cluster.base))))
        )
        shown = ", ".join(f"{s.name}={s.value}" for s in settings if s.name in _SHOWN)
        self.stream.emit(Noted(message("progress-settings", settings=Name(shown))))
        self._create_tablespaces(place.target, cluster, spaces)
        return cluster

    def private_mariadb(self, configuration: Configuration) -> PrivateMariaDb:
        """Create a private MariaDB server and return it."""
        name = configuration.place.target
        settings = self._mariadb_settings(configuration)
        self.stream.emit(Noted(message("progress-starting-mariadb")))
        limits = self._limits_of(name)
        server = PrivateMariaDb(settings, keep=self.options.keep, parent=self.folder_of(name), limits=limits)
        self._stack.enter_context(server)
        if self.options.keep:
            self._stack.callback(
                lambda: self.stream.emit(Noted(message("progress-kept", folder=Name(str(server.data)))))
            )
        return server

    def attach_standbys(self, server: ReplicatedServer) -> dict[str, float]:
        """Standbys for a server that is loaded, unless it has them; returns the seconds that each base backup took."""
        done = server.attach()
        for b in done:
            rate = b.bytes_per_s / 1e6
            self.stream.emit(
                Noted(
                    message(
                        "progress-backup",
                        member=Name(b.member),
                        size=Name(f"{b.bytes / 1e6:,.0f} MB"),
                        speed=Name(f"{rate:,.0f} MB/s"),
                    )
                )
            )
        return {f"base backup for {b.member}": b.seconds for b in done}

    def run_with_settings(self, cluster: HeldServer, configuration: Configuration) -> None:
        """Start the server with the configuration's settings.

        If the server ran with other settings, it is restarted.
        """
        if isinstance(cluster, PrivateMariaDb):
            settings = self._mariadb_settings(configuration)
        elif isinstance(cluster, BorrowedCluster):
            settings = self._named_settings_of(configuration)
        else:
            settings = self._settings(configuration)
        if cluster.settings == settings:
            cluster.start()
        else:
            cluster.configure(settings)

    def _mariadb_settings(self, configuration: Configuration) -> list[Setting]:
        """Return the system variables of a private MariaDB: pgdyno's, with the experiment's over them.

        PostgreSQL's settings of the axes become the variables with the same promise.
        """
        target = self.experiment.all_targets[configuration.place.target]
        axes = dict(configuration.settings)
        named = {
            **target.settings,
            **{n: v for n, v in axes.items() if n.lower() not in PROMISES},
            **equal_promises(axes),
        }
        for name in named:
            if not _SETTING_NAME.match(name) or "." in name or mysql_settings.is_ours(name):
                raise SpecError(
                    msg("error-settings-no-server-setting-experiment", name=name),
                    msg("remedy-where-server-listens-where-files"),
                )
        memory = size_bytes(target.memory) if target.memory else host.memory_bytes()
        memory //= 2 if self.experiment.run.is_duet else 1
        ours = [s for s in mysql_settings.sized(memory, self._clients) if s.name not in named]
        return ours + [Setting(n, _text(v), "experiment") for n, v in named.items()]

    def _settings(self, configuration: Configuration) -> list[Setting]:
        target = self.experiment.all_targets[configuration.place.target]
        memory = size_bytes(target.memory) if target.memory else host.memory_bytes()
        cores = max(1, int(target.cpus)) if target.cpus else host.cores()
        named = self._named_settings_of(configuration)
        names = {s.name for s in named}
        # The two servers of a duet share the machine, and so do a primary and its standbys.
        memory //= 2 if self.experiment.run.is_duet else 1 + target.standbys
        ours = sized(memory, cores, self._clients)
        programs = self._programs_of(configuration.place.target, configuration.place.version, fetch=False)
        if programs is not None and "statements" in self.experiment.run.collect:
            ours += counting_statements(programs)
        return [s for s in ours if s.name not in names] + named

    def _named_settings_of(self, configuration: Configuration) -> list[Setting]:
        return self._named_settings(self.experiment.all_targets[configuration.place.target], configuration.settings)

    def _named_settings(self, target: spec.Target, settings: Pairs) -> list[Setting]:
        """Return the server settings that the experiment defines."""
        named = {**target.settings, **dict(settings)}
        if target.file_system is not None:
            # WAL lies on it as well, and must not fill it.
            part = size_bytes(target.file_system.size) >> 20
            named = {"max_wal_size": f"{part // 4}MB", "min_wal_size": f"{part // 8}MB", **named}
        for name in named:
            if not _SETTING_NAME.match(name) or name.lower() in OURS:
                raise SpecError(
                    msg("error-settings-no-server-setting-experiment", name=name),
                    msg("remedy-where-server-listens-where-files"),
                )
        return [Setting(n, _text(v), "experiment") for n, v in named.items()]

    def _limits_of(self, name: str) -> Limits | None:
        if name not in self._limits:
            target = self.experiment.all_targets[name]
            self._limits[name] = None
            if target.cpus is not None or target.memory is not None:
                limits.sweep()
                memory = size_bytes(target.memory) if target.memory else None
                if (target.cpus or 0) > host.cores() or (memory or 0) > host.memory_bytes():
                    raise RefusedError(
                        msg(
                            "error-targets-cpus-this-machine-smaller",
                            name=name,
                            value=f"{target.cpus or 0:g}",
                            value2=target.memory or "all memory",
                            cores=host.cores(),
                            value3=host.memory_bytes() >> 20,
                        ),
                        msg("remedy-use-larger-machine-or-shrink"),
                    )
                self._limits[name] = self._stack.enter_context(Limits(target.cpus, memory))
        return self._limits[name]

    def _tablespaces(self, name: str) -> dict[str, Path]:
        """Folders for them. Made before the server, so that they are removed after it has stopped."""
        made = {}
        account = server_account()
        for space, parent in self.experiment.all_targets[name].tablespaces.items():
            folder = Path(parent)
            if not folder.is_dir():
                raise LocalError(
                    msg("error-targets-tablespaces-not-folder", name=name, space=space, folder=folder),
                    msg("remedy-make-it"),
                )
            # Swept by the next pgdyno when this one is killed.
            scratch = Scratch(folder)
            self._stack.callback(scratch.keep if self.options.keep else scratch.remove)
            made[space] = scratch.path / "tablespace"
            made[space].mkdir(mode=0o700)
            account.own(made[space])
        return made

    def _create_tablespaces(self, name: str, cluster: EmbeddedCluster, spaces: dict[str, Path]) -> None:
        with administration.connect(cluster.target) as conn:
            for space, folder in spaces.items():
                location = str(folder).replace("'", "''")
                try:
                    conn.execute(f"create tablespace \"{space}\" location '{location}'".encode())
                except psycopg.Error as e:
                    raise LocalError(
                        msg("error-targets-tablespaces", name=name, space=space, reason=one_line(e)),
                        msg("remedy-can-account-which-runs-server", name=cluster.account.name, folder=folder),
                    ) from e

    def _template(self, place: Place, wanted: AnyDataset, programs: Binaries) -> Path | None:
        """Return the data directory of a template that holds the dataset, or None."""
        if self.options.templates == "off":
            return None
        store = templates.Store(templates.store_folder())
        named = templates.name_of([wanted.name], programs.version, templates.bytes_by_default(programs))
        found = store.find(named)
        if found is None:
            return None
        self.stream.emit(
            Noted(message("progress-from-template", name=Name(found.name), size=Name(f"{found.bytes / 1e6:,.0f} MB")))
        )
        return store.data_of(found.name)

    def keep_as_template(self, cluster: EmbeddedCluster, loaded: AnyDataset) -> None:
        """Keep the loaded data as a template.

        The server is stopped meanwhile.
        """
        assert cluster.binaries is not None
        store = templates.Store(templates.store_folder())
        cluster.stop()
        directory = datadir.DataDirectory(cluster.data, cluster.binaries.major, cluster.account)
        settings = templates.bytes_by_default(cluster.binaries)
        try:
            template, _ = store.add(directory, [loaded.name], cluster.binaries.version, settings)
            self.stream.emit(
                Noted(message("progress-kept-template", name=Name(template.name), folder=Name(str(store.folder))))
            )
        except PgdynoError as e:
            self.stream.emit(Noted(message("progress-not-kept", reason=Name(e.message))))
        finally:
            cluster.start()


def _text(value: Any) -> str:
    """Return a setting's value in the notation of the server."""
    if isinstance(value, str) and any(c in value for c in "\n\r\0"):
        raise RefusedError(msg("error-server-setting-line-break"), msg("remedy-write-one-line"))
    return spelled(value) if isinstance(value, bool) else str(value)
