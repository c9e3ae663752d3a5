"""Rules that an experiment and the options of the command line must keep together, checked before anything is made.

A rule returns the error that it finds, or None. A new one is a function and a line in `RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from pgdyno.cluster import network as networks
from pgdyno.errors import LocalError, PgdynoError, SpecError, msg
from pgdyno.message import Name, sentences
from pgdyno.mysql.settings import PROMISES
from pgdyno.run.planning.dialects import dialects_of
from pgdyno.run.planning.matrix import Configuration
from pgdyno.run.planning.options import Options
from pgdyno.run.sites.addresses import Addresses
from pgdyno.spec.experiment import Experiment


@dataclass(frozen=True)
class Wish:
    """Experiment with the options for its servers."""

    experiment: Experiment
    options: Options
    configurations: Sequence[Configuration]

    @cached_property
    def clusters(self) -> set[str]:
        """Targets that are clusters in folders."""
        return {name for name, t in self.experiment.all_targets.items() if t.cluster is not None}

    @cached_property
    def running(self) -> list[Configuration]:
        """Configurations whose server runs already."""
        addresses = Addresses(self.experiment, self.options)
        return [c for c in self.configurations if not addresses.is_private(c.place.target)]


def refuse_contradictions(wish: Wish) -> None:
    """Raise the error of the first rule that is broken."""
    for rule in RULES:
        if (error := rule(wish)) is not None:
            raise error


def _two_servers(w: Wish) -> PgdynoError | None:
    if w.options.target is not None and w.options.embedded:
        return SpecError(
            msg("error-embedded-target-contradict-each-other"),
            msg("remedy-give-one-them"),
        )
    return None


def _kept_elsewhere(w: Wish) -> PgdynoError | None:
    if w.options.keep and w.options.target is not None:
        return SpecError(msg("error-keep-keeps-private-server-target"), msg("remedy-leave-keep-out"))
    return None


def _target_twice(w: Wish) -> PgdynoError | None:
    if w.options.target is not None and w.experiment.targets:
        return SpecError(
            msg("error-target-but-experiment-names-own"),
            msg("remedy-change-targets-or-use-experiment"),
        )
    return None


def _embedded_but_named(w: Wish) -> PgdynoError | None:
    there = w.clusters | {name for name, t in w.experiment.all_targets.items() if t.conninfo is not None}
    if w.options.embedded and there:
        return SpecError(
            msg("error-embedded-but-targets-there-already", min=min(there)),
            msg("remedy-leave-out-or-change-experiment"),
        )
    return None


def _no_programs(w: Wish) -> PgdynoError | None:
    folder = w.options.pg_bin
    if folder is not None and not (folder / "postgres").exists():
        return SpecError(
            msg("error-pg-bin-there-no-program", folder=folder),
            msg("remedy-name-folder-holds-postgres-initdb"),
        )
    return None


def _programs_of_a_cluster(w: Wish) -> PgdynoError | None:
    if w.options.pg_bin is not None and w.clusters:
        return SpecError(msg("error-pg-bin-but-targets-programs", min=min(w.clusters)), msg("remedy-leave-out"))
    return None


def _programs_and_versions(w: Wish) -> PgdynoError | None:
    if w.options.pg_bin is not None and any(c.place.version for c in w.configurations):
        return SpecError(msg("error-pg-bin-but-experiment-names"), msg("remedy-leave-one-them-out"))
    return None


def _version_of_a_cluster(w: Wish) -> PgdynoError | None:
    if any(c.place.version and c.place.target in w.clusters for c in w.configurations):
        return SpecError(msg("error-axes-version-goes-private-servers"), msg("remedy-leave-out"))
    return None


def _change_of_a_database_used_as_it_is(w: Wish) -> PgdynoError | None:
    untouched = {name for name, d in w.experiment.all_datasets.items() if d.kind == "none" or d.adopt}
    theirs = [c for c in w.running if c.place.dataset in untouched]
    if not theirs or w.options.force:
        return None
    # Of a database that is used as it is the workload is all that may change anything.
    named = w.experiment.all_datasets[theirs[0].place.dataset]
    setup = any(
        named.setup if named.setup_mysql is None or dialect == "postgresql" else named.setup_mysql
        for dialect in dialects_of(w.experiment, w.options.conninfo(w.experiment))
    )
    restores = w.experiment.run.between.restore != "none"
    for what, given in (("setup", setup), ("run.between.restore", restores)):
        if given:
            return SpecError(
                msg("error-would-change-database-used", what=what),
                msg("remedy-leave-out-or-say-force"),
            )
    return None


def _private_only(w: Wish) -> PgdynoError | None:
    between, running = w.experiment.run.between, w.running
    for what, wrong in (
        ("axes.version", any(c.place.version for c in running)),
        ("axes.settings", any(c.settings for c in running)),
        ("run.between.restart", bool(running) and between.restart is True),
        ("run.restarts", bool(running) and w.experiment.run.restarts > 1),
        ("run.between.drop_caches", bool(running) and between.drop_caches is True),
        ('run.between.restore = "template"', bool(running or w.clusters) and between.restore == "template"),
    ):
        if wrong:
            names = sorted({n for c in running for n, _ in c.settings}) if what == "axes.settings" else []
            which = f" ({', '.join(f'--vary or --set {n}' for n in names)})" if names else ""
            change = msg("remedy-change-between-runs") if names else Name("")
            return SpecError(
                msg("error-goes-private-servers-this-run", what=what, which=which),
                sentences([msg("remedy-leave-out-or-let-pgdyno"), change]),
            )
    return None


def _network_without_namespaces(w: Wish) -> PgdynoError | None:
    if any(c.round_trip_ms for c in w.configurations) and not networks.is_possible():
        return LocalError(
            msg("error-axes-round-trip-ms-slower"),
            msg("remedy-run-root-or-leave-round"),
        )
    return None


def _kept_for_the_run_only(w: Wish) -> PgdynoError | None:
    if not w.options.keep:
        return None
    for name, target in w.experiment.all_targets.items():
        if target.standbys:
            return SpecError(
                msg("error-keep-but-targets-standbys-which", name=name),
                msg("remedy-one-stays-pgdyno-cluster-create"),
            )
        if target.file_system is not None:
            return SpecError(msg("error-keep-but-targets-file-system", name=name), msg("remedy-use-folder"))
    return None


def _only_on_postgresql(w: Wish) -> PgdynoError | None:
    dialects = dialects_of(w.experiment, w.options.conninfo(w.experiment))
    if "mysql" not in dialects:
        return None
    if any(c.place.version and w.experiment.all_targets[c.place.target].product == "mariadb" for c in w.configurations):
        return SpecError(msg("error-only-on-postgresql", what="axes.version"), msg("remedy-leave-out"))
    others = (
        sorted({n.lower() for c in w.configurations for n, _ in c.settings} - set(PROMISES))
        if len(dialects) > 1
        else []
    )
    if others:
        return SpecError(
            msg("error-settings-of-one-product", names=", ".join(others)), msg("remedy-settings-of-one-product")
        )
    for what, wrong in (
        ("run.between.restore", w.experiment.run.between.restore != "none"),
        ("workloads.*.standby_reads", any(x.standby_reads is not None for x in w.experiment.workloads.values())),
    ):
        if wrong:
            return SpecError(msg("error-only-on-postgresql", what=what), msg("remedy-leave-out"))
    return None


RULES: tuple[Callable[[Wish], PgdynoError | None], ...] = (
    _two_servers,
    _kept_elsewhere,
    _target_twice,
    _embedded_but_named,
    _programs_of_a_cluster,
    _programs_and_versions,
    _no_programs,
    _version_of_a_cluster,
    _change_of_a_database_used_as_it_is,
    _private_only,
    _network_without_namespaces,
    _kept_for_the_run_only,
    _only_on_postgresql,
)
