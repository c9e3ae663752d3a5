"""Preparation of a server between trials, so that all begin alike: data restored, caches dropped, a checkpoint."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.embedded import EmbeddedCluster
from pgdyno.collect import activity
from pgdyno.errors import LocalError, RefusedError, TargetError, msg, reason
from pgdyno.load import mysql
from pgdyno.load.dataset import Dataset
from pgdyno.load.units import pg_size
from pgdyno.message import Name, Text, listed, message
from pgdyno.mysql.target import MySqlTarget
from pgdyno.run.products import PATIENCE_S, product_of
from pgdyno.run.sites import dataset
from pgdyno.run.sites.site import Site
from pgdyno.run.trials.steps import machine_counters
from pgdyno.spec.experiment import Run
from pgdyno.stream.events import Noted
from pgdyno.stream.stream import RunStream

_DROP_CACHES = Path("/proc/sys/vm/drop_caches")


class BetweenTrials:
    """Preparation of a server for its next trial."""

    def __init__(self, run: Run, stream: RunStream) -> None:
        self.run = run
        self.stream = stream
        self._has_reported_copy = False

    def prepare(self, site: Site) -> tuple[dict[str, float], list[Text]]:
        """Prepare the server so that all trials begin alike.

        Return the server's counters, and the reasons why steps could not be done. A server that is unreachable at the
        moment, or that denies permission, does not end the run.
        """
        between, record = self.run.between, self.run.record
        refused: list[Text] = []
        counters: dict[str, float] = {}
        if between.restore == "template" and isinstance(site.cluster, EmbeddedCluster):
            copied = site.cluster.restore_as_loaded()
            if copied and not self._has_reported_copy:
                self._has_reported_copy = True
                self.stream.emit(Noted(message("progress-copied", size=Name(pg_size(copied)))))
        if between.restart and site.cluster is not None:
            site.cluster.stop()
            self._drop_caches(site)
            site.cluster.start()
        try:
            if site.claim is not None:
                site.claim.renew()
            if site.lock is not None:
                site.lock.renew()
            if isinstance(site.target, MySqlTarget):
                if isinstance(site.dataset, Dataset):
                    mysql.refresh(site.target, site.dataset)
                if not between.restart:
                    self._drop_caches(site)
                time.sleep(between.pause_s)
                return product_of(site.target).counters(site.target, record)
            with administration.connect(site.postgresql) as conn:
                try:
                    dataset.refresh(conn, site.postgresql, site.dataset)
                    self._restore(conn, site)
                except psycopg.Error as e:
                    refused.append(reason(e))
                try:
                    if between.checkpoint:
                        conn.execute("checkpoint")
                except psycopg.Error as e:
                    refused.append(reason(e))
                if not between.restart:
                    self._drop_caches(site)
                time.sleep(between.pause_s)
            with administration.connect(site.postgresql, patience_s=PATIENCE_S) as conn:
                # What is missing now is said when it is asked for again.
                counters, _ = activity.snapshot(conn, record)
                counters |= machine_counters(site)
        except RefusedError:
            raise
        except (TargetError, psycopg.Error) as e:
            refused.append(reason(e))
        if refused:
            self.stream.emit(Noted(message("progress-preparing", reasons=listed(refused, "semicolon"))))
        return counters, refused

    def _restore(self, conn: psycopg.Connection[tuple[Any, ...]], site: Site) -> None:
        """Restore the data by SQL to the state after loading."""
        restore = self.run.between.restore
        if restore.endswith(".sql"):
            dataset.carry_out(conn, restore)
        elif restore == "truncate" and site.emptied:
            conn.execute(f"truncate {', '.join(site.emptied)}".encode())

    def _drop_caches(self, site: Site) -> None:
        # Of a server elsewhere the page cache is not ours; and whoever else is on this machine would only suffer.
        drop = self.run.between.drop_caches
        if not drop or site.cluster is None:
            return
        try:
            # Dirty pages stay; they must be written first.
            os.sync()
            _DROP_CACHES.write_text("3\n")
        except OSError as e:
            if drop == "if_possible":
                return
            raise LocalError(
                msg("error-run-between-drop-caches", strerror=e.strerror), msg("remedy-only-root-may-or-leave")
            ) from e
