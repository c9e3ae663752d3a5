"""The servers of a run: each place (target, version, dataset) gets its own, made when it is first needed.

Only one private server runs at a time: others would take its processors and its memory. Those that wait are stopped,
their data stay on disk until the run ends.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from pgdyno.cluster import administration
from pgdyno.cluster.borrowed import BorrowedCluster
from pgdyno.cluster.managed import ManagedCluster
from pgdyno.errors import ClusterError, SpecError, msg
from pgdyno.load.claim import Claim
from pgdyno.message import Text, listed, message
from pgdyno.mysql.session import MySqlClaim
from pgdyno.mysql.target import MySqlTarget
from pgdyno.replication.private import ReplicatedServer
from pgdyno.run.planning.matrix import Configuration, Place
from pgdyno.run.planning.plan import Plan
from pgdyno.run.sites.addresses import Addresses
from pgdyno.run.sites.contradictions import Wish, refuse_contradictions
from pgdyno.run.sites.loading import SiteLoader
from pgdyno.run.sites.provision import Provision
from pgdyno.run.sites.site import Site
from pgdyno.run.sites.sizes import DatasetSizes
from pgdyno.stream.events import Noted
from pgdyno.stream.stream import RunStream


class Servers:
    """Use as a context manager: at its end every private server is stopped, and its data are gone unless kept."""

    def __init__(self, plan: Plan, stream: RunStream) -> None:
        self.experiment = experiment = plan.experiment
        self.options = options = plan.options
        self.stream = stream
        self._plan = plan
        self._sites: dict[Place, Site] = {}
        self._stack = ExitStack()
        self._provision = Provision(experiment, options, plan.most_clients, stream, self._stack)
        #: Clusters that stay, by folder.
        self._borrowed: dict[Path, BorrowedCluster] = {}
        self.addresses = Addresses(experiment, options)
        self.sizes = DatasetSizes(experiment, options, plan.configurations, self._borrowed)
        self.loader = SiteLoader(experiment, options, self._provision, stream)
        refuse_contradictions(Wish(experiment, options, plan.configurations))

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

        The server of `partner` is not suspended. The dataset is not loaded yet.
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
                raise ClusterError(died, msg("remedy-server-log"))
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

    def survey(self) -> None:
        """Inspect the settings and the existing data of the targets before anything is loaded.

        Raise SpecError for settings that a server would reject. See `DatasetSizes.survey`.
        """
        if refused := self.refused_settings(fetch=True):
            raise SpecError(refused[0], listed(refused[1:], "semicolon"))
        self.sizes.survey()

    def refused_settings(self, *, fetch: bool) -> list[Text]:
        """Return the reasons why pgdyno's own servers would reject their settings."""
        return self._provision.refused_settings(self._plan.configurations, fetch=fetch)

    def folder_of(self, name: str) -> Path | None:
        """Return the folder in which a target's data directories are created.

        None means the temporary folder.
        """
        return self._provision.folder_of(name)

    # ------------------------------------------------------------ making

    def _open(self, configuration: Configuration) -> Site:
        target = self.addresses.resolve(configuration.place.target)
        if target is None:
            return self._open_private(configuration)
        # The same database by another name or with other options is claimed already: by us.
        where = (target.host, target.port, target.dbname)
        previous = next((s for s in self.sites if (s.claim or s.lock) and (*s.reached.values(),) == where), None)
        claim, lock = (None, None) if previous is None else (previous.claim, previous.lock)
        if previous is None:
            self.stream.emit(Noted(message("progress-target", where=target.where)))
            if isinstance(target, MySqlTarget):
                lock = self._stack.enter_context(MySqlClaim(target, force=self.options.force))
            else:
                claim = self._stack.enter_context(Claim(target, force=self.options.force))
        wanted = self.sizes.dataset_of(configuration.place, folder=None)
        reached = {"host": target.host, "port": target.port, "dbname": target.dbname}
        return Site(configuration.place, target, wanted, claim=claim, lock=lock, reached=reached)

    def _open_private(self, configuration: Configuration) -> Site:
        """Open a place whose server pgdyno starts and stops."""
        place = configuration.place
        base = self.experiment.all_targets[place.target].cluster
        if base is None:
            folder = self._provision.folder_of(place.target) or Path(tempfile.gettempdir())
            wanted = self.sizes.dataset_of(place, folder=folder)
            if self.experiment.all_targets[place.target].product == "mariadb":
                mariadb = self._provision.private_mariadb(configuration)
                return Site(place, mariadb.target, wanted, cluster=mariadb)
            private = self._provision.private(configuration, wanted)
            return Site(place, private.target, wanted, cluster=private)
        # Raises where there is none.
        ManagedCluster(Path(base)).programs()
        wanted = self.sizes.dataset_of(place, folder=Path(base))
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
