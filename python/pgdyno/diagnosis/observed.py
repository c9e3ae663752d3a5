"""Recorded data of a configuration, in the form that the causes need.

The data are shares of the clients' time, rates and events.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from pgdyno.analysis.series import autocorrelation_time
from pgdyno.analysis.spread import student_975
from pgdyno.diagnosis.action import Action
from pgdyno.diagnosis.finding import CauseName, Confidence, Fact, Finding, Kind
from pgdyno.diagnosis.recorded import SAMPLE_NS, Recorded, Row, Wait, is_outside, ratio, runs
from pgdyno.diagnosis.thresholds import Cpus, Ranking, Samples
from pgdyno.message import Message
from pgdyno.model import Caveat, Event, TrialRecord, TrialSummary
from pgdyno.statements import is_commit
from pgdyno.store.manifest import Manifest
from pgdyno.store.reading import RunData
from pgdyno.units import Share

#: A table in the nodes of a plan.
_SCANNED = re.compile(r"\bScan on ([^\s();]+)")
#: Statements that the server counted, by those that were executed, where it counted throughout.
_MOST_COUNTED = 0.9


@dataclass(frozen=True)
class Processors:
    """The processors of the server's machine, in CPUs."""

    cores: float
    busy: float
    #: Of that: PostgreSQL's, our client's, everybody else's.
    server: float
    client: float
    others: float
    #: Taken by the hypervisor.
    steal: float
    #: Of the time in which backends could have run, the part in which they waited for a CPU.
    queueing: float

    @property
    def share(self) -> float:
        """The part of the processors that is busy, or taken."""
        # Readings of two files, a moment apart, may add up to a little more than all.
        return min(1.0, (self.busy + self.steal) / self.cores)

    @property
    def are_full(self) -> bool:
        """There is nothing left to speak of, or who could run waits."""
        return self.share > Cpus.FULL or (self.queueing > Cpus.QUEUEING and self.share > Cpus.BUSY)


class Observed:
    """All trials of one configuration."""

    def __init__(self, data: RunData, trials: Sequence[TrialRecord]) -> None:
        self.data = data
        self.trials = [Recorded(data, t) for t in trials]
        self.plan = trials[0].plan

    # ------------------------------------------------------------ what it is

    @property
    def manifest(self) -> Manifest:
        """Manifest of the run."""
        return self.data.manifest

    @property
    def clients(self) -> int:
        """Connections that carry the load."""
        return self.plan.clients

    @cached_property
    def tps(self) -> float:
        """Mean of the repetitions."""
        found = [r.trial.summary.tps for r in self.trials if r.trial.summary]
        return sum(found) / len(found) if found else 0.0

    @cached_property
    def commits_per_s(self) -> float:
        """Commits per second of the time in which the server's counters were read.

        It is the throughput, except in a duet: the turns of the other side and the transitions count as time too, and a
        server that both sides share counts the commits of both.
        """
        if not self.is_duet:
            return self.tps
        seconds = sum(r.seconds for r in self.trials)
        sides = [self, *(e for e in self._other_sides if self._shares_server_with(e))]
        return sum(r.committed_in_window for e in sides for r in e.trials) / seconds if seconds else 0.0

    @cached_property
    def latency_ns(self) -> float:
        """Mean latency, over all repetitions."""
        found = [r.trial.summary.latency for r in self.trials if r.trial.summary]
        count = sum(x.count for x in found)
        return sum(x.mean_ns * x.count for x in found) / count if count else 0.0

    @cached_property
    def movement(self) -> float:
        """Change of the throughput over a trial as a share, mean of the repetitions: −0.3 is 30% less at the end.

        It is the change from one level to another, or else the drift of a line. A line through a fall to nothing drops
        by more than all.
        """
        summaries = [r.trial.summary for r in self.trials if r.trial.summary]
        return sum(max(-1.0, _movement(s)) for s in summaries) / len(summaries) if summaries else 0.0

    @property
    def is_observation(self) -> bool:
        """The load is not pgdyno's: a server was observed at its own work."""
        return self.manifest.observed

    @cached_property
    def busy_clients(self) -> float:
        """Mean number of clients that were busy: within a transaction, or at a statement."""
        time = whole = 0.0
        for s in (s for r in self.trials for s in r.client_time):
            time += s.seconds * s.count(lambda w: w[0] != "idle" or not self.is_idle_on_purpose)
            whole += s.seconds
        return time / whole if whole else 0.0

    @property
    def is_open_loop(self) -> bool:
        """Clients are idle on purpose: transactions come at a rate."""
        return self.trials[0].is_open_loop

    @property
    def protocol(self) -> str:
        """Protocol of the clients: simple, extended or prepared; empty if unknown."""
        return str(self.trials[0].trial.parameters.get("protocol") or "")

    @property
    def pipelines(self) -> bool:
        """The script sends statements without waiting for answers."""
        return self.trials[0].pipelines

    @property
    def is_duet(self) -> bool:
        """The load went to two servers in turn."""
        return self.trials[0].is_duet

    @property
    def is_idle_on_purpose(self) -> bool:
        """Clients wait for the next arrival, think, or it is the other side's turn."""
        return self.trials[0].is_idle_on_purpose

    @property
    def is_limited(self) -> bool:
        """Throughput is what the server and the client can do: not a rate that they kept up with."""
        if self.is_observation:
            return False
        behind = {Caveat.SKIPPED, Caveat.UNFINISHED, Caveat.BACKLOG}
        return not self.is_open_loop or any(behind.intersection(r.trial.caveats) for r in self.trials)

    def setting(self, name: str) -> str:
        """Return a setting of the server as the trial had it; empty if unknown."""
        trial = self.trials[0].trial
        own = trial.parameters.get("settings") or {}
        if name in own:
            return str(own[name])
        place = self.manifest.places.get(trial.place)
        server = place.server if place is not None else self.manifest.server
        return server.setting(name) or ""

    @cached_property
    def data_bytes(self) -> int:
        """Tables and indexes as loaded."""
        place = self.manifest.places.get(self.trials[0].trial.place)
        loaded = place.dataset if place is not None else self.manifest.dataset
        return sum(loaded.bytes.values()) if loaded is not None else 0

    @cached_property
    def memory_bytes(self) -> int:
        """Bytes of memory that the server may use for its caches, including those of the kernel.

        The value is 0 if the server's machine cannot be observed.
        """
        place = self.manifest.places.get(self.trials[0].trial.place)
        limit = place.memory_bytes if place is not None else None
        return limit or (self.manifest.host.memory_bytes if self.has("machine") else 0)

    @cached_property
    def commit_ns(self) -> float | None:
        """Return the mean time of the statement COMMIT in ns, by the clients' clocks, or None.

        None means that the scripts have no COMMIT: each statement is its own transaction.
        """
        found = [
            s.latency
            for r in self.trials
            for s in (r.trial.summary.statements if r.trial.summary else ())
            if is_commit(s.text)
        ]
        count = sum(x.count for x in found)
        return sum(x.mean_ns * x.count for x in found) / count if count else None

    def statement_share(self, script: str, line: int) -> float:
        """Return the share of the transactions' time that a statement takes, by the clients' own clocks."""
        own = whole = 0.0
        for r in self.trials:
            for s in r.trial.summary.statements if r.trial.summary else ():
                took = s.latency.mean_ns * s.latency.count
                whole += took
                own += took if Path(s.script).name == script and s.line == line else 0.0
        return own / whole if whole else 0.0

    @cached_property
    def slowest_statement(self) -> tuple[str, float]:
        """The statement that takes most of the transactions' time, by the clients' own clocks, and its share.

        Empty if the scripts have a single statement.
        """
        took: dict[str, float] = {}
        for r in self.trials:
            for s in r.trial.summary.statements if r.trial.summary else ():
                took[s.text] = took.get(s.text, 0.0) + s.latency.mean_ns * s.latency.count
        most = max(took, key=lambda text: took[text], default="")
        return (most, took[most] / sum(took.values())) if len(took) > 1 and took[most] else ("", 0.0)

    def most_waiting(self, wait: str) -> tuple[str, float]:
        """Return the statement that was seen most often in a wait ("Lock:tuple"), and its share; empty if unknown."""
        counts: dict[str, float] = {}
        for row in self.whole("wait_statements"):
            if f"{row['wait_type']}:{row['wait']}".lower() == wait.lower():
                counts[str(row["statement"])] = counts.get(str(row["statement"]), 0.0) + row["processes"]
        most = max(counts, key=lambda statement: counts[statement], default="")
        return (most, counts[most] / sum(counts.values())) if most else ("", 0.0)

    @cached_property
    def functions(self) -> list[tuple[str, float, float]]:
        """Return the functions by their own time: name, share of the statements' time, and ms per call.

        The share contains what a function calls; triggers are functions, too. Empty if the server did not count them.
        """
        return self._within_statements("functions", "function", "self_ms")

    @cached_property
    def nested_statements(self) -> list[tuple[str, float, float]]:
        """Return the statements that others call: text, share of the statements' time, and ms per call.

        Functions, triggers and checks of foreign keys run them. Empty if the server did not count them apart.
        """
        return self._within_statements("nested_statements", "statement", "ms")

    def _within_statements(self, source: str, name: str, order_by: str) -> list[tuple[str, float, float]]:
        """Return the names of a source by `order_by`, with their share of the statements' time, and ms per call."""
        found: dict[str, list[float]] = {}
        for row in self.whole(source):
            of = found.setdefault(" ".join(str(row[name]).split()), [0.0, 0.0, 0.0])
            for n, column in enumerate((order_by, "ms", "calls")):
                of[n] += row[column]
        whole = sum(float(row["ms"]) for row in self.whole("statements"))
        if not whole:
            return []
        order = sorted(found, key=lambda text: -found[text][0])
        return [(n, min(1.0, found[n][1] / whole), found[n][1] / max(1.0, found[n][2])) for n in order]

    @cached_property
    def rolled_back(self) -> float:
        """Transactions of the database that were rolled back, by the server's counters."""
        rows = (row for r in self.trials for row in r.rows("counters"))
        rates = ((float(row.get("rollbacks_per_s") or 0.0), row["end_ns"] - row["start_ns"]) for row in rows)
        return float(sum(rate * length_ns / 1e9 for rate, length_ns in rates))

    @cached_property
    def widest_plan(self) -> tuple[str, int]:
        """Return the statement whose plan has most tables and partitions, and their number; empty without plans.

        Statements that take little of the transactions' time do not count.
        """
        rows = self.whole("plans")
        alone = len({(row["script"], row["line"]) for row in rows}) == 1
        found = {
            str(row["statement"]): len(set(_SCANNED.findall(str(row["plan"]))))
            for row in rows
            if alone or self.statement_share(str(row["script"]), int(row["line"])) >= Ranking.STATEMENT_NAMED
        }
        widest = max(found, key=lambda text: found[text], default="")
        return widest, found.get(widest, 0)

    @cached_property
    def most_missed(self) -> tuple[str, float]:
        """Return the table with the most page misses in shared buffers, and its share; empty if unknown.

        Pages of its indexes count too. The share is of all page misses of tables.
        """
        missed: dict[str, float] = {}
        for row in self.whole("tables"):
            name = str(row["table"])
            missed[name] = missed.get(name, 0.0) + row["blocks_read"] + row["index_blocks_read"]
        most = max(missed, key=lambda name: missed[name], default="")
        return (most, missed[most] / sum(missed.values())) if most and missed[most] else ("", 0.0)

    @cached_property
    def most_whole_pages(self) -> tuple[str, float]:
        """Return the statement that wrote most full-page images to WAL, and its share; empty if unknown.

        The share is of all full-page images that the server wrote; of those of statements where they were counted in
        the warm-up only (private servers).
        """
        pages: dict[str, float] = {}
        for row in self.whole("statements"):
            text = str(row["statement"])
            pages[text] = pages.get(text, 0.0) + float(row.get("wal_full_pages") or 0.0)
        most = max(pages, key=lambda text: pages[text], default="")
        written = sum(
            float(row.get("wal_full_pages_per_s") or 0.0) * (row["end_ns"] - row["start_ns"]) / 1e9
            for r in self.trials
            for row in r.rows("counters")
        )
        own = sum(pages.values())
        whole = max(written, own) if self._counts_throughout else own
        return (most, pages[most] / whole) if most and pages[most] else ("", 0.0)

    @property
    def _counts_throughout(self) -> bool:
        """Return True if the server counted about as many statements of the scripts as were executed."""
        if self.is_observation:
            return True
        counted = sum(float(row["calls"]) for row in self.whole("statements") if row.get("line"))
        summaries = [r.trial.summary for r in self.trials if r.trial.summary]
        executed = sum(s.latency.count for of in summaries for s in of.statements)
        return counted >= _MOST_COUNTED * max(executed, sum(s.committed for s in summaries))

    def has(self, source: str) -> bool:
        """Return True if the source has any samples."""
        return any(r.rows(source) for r in self.trials)

    # ------------------------------------------------------------ parts of the clients' time

    def time_share(
        self,
        of: Callable[[Wait], bool],
        within: Callable[[Recorded, int, int], bool] = lambda *_: True,
    ) -> Share | None:
        """Return the share of the clients' time that matches `of`, with samples as units.

        `of` receives the state, the kind of wait, and the wait. The whole is the time of all clients. Clients may be
        idle on purpose: they wait for the next arrival, think, or the other side of a duet has its turn. The whole is
        then the time in which clients were busy, so idle time is in no share. Only samples `within` count for the
        share. None means that waits were not sampled.
        """
        own, whole = [], []
        for s in (s for r in self.trials for s in r.client_time):
            counted = {w: n for w, n in s.counts.items() if w[0] != "idle" or not self.is_idle_on_purpose}
            is_within = within(s.recorded, s.start_ns, s.end_ns)
            own.append(s.seconds * sum(n for what, n in counted.items() if of(what)) if is_within else 0.0)
            whole.append(s.seconds * sum(counted.values()))
            assert own[-1] <= whole[-1] * (1 + 1e-9), "a part is larger than the whole"
        return ratio(own, whole)

    def waiting(self, *waits: str) -> Share | None:
        """Return the share of the clients' time in these waits: "Lock", or "LWLock:WALWrite".

        Upper and lower case are ignored, because server versions spell the names differently (WALSync, WalSync).
        """
        wanted = {w.lower() for w in waits}

        def is_wanted(what: Wait) -> bool:
            state, kind, wait = what
            return state != "idle" and not wanted.isdisjoint((kind.lower(), f"{kind}:{wait}".lower()))

        return self.time_share(is_wanted)

    @cached_property
    def waits(self) -> list[str]:
        """The waits that our clients were seen in, but for those outside of the server: "IO:WalSync"."""
        seen = {
            (kind, wait)
            for r in self.trials
            for s in r.client_time
            for (state, kind, wait) in s.counts
            if state != "idle"
        }
        return sorted(f"{kind}:{wait}" for kind, wait in seen if kind and kind != "Client")

    @cached_property
    def has_deadlocks(self) -> bool:
        """Return True if transactions of this workload failed by a deadlock or were retried.

        Deadlocks of other sessions do not count.
        """
        summaries = [r.trial.summary for r in self.trials if r.trial.summary]
        failed = any(s.failed.get("40P01") for s in summaries)
        return failed or any(i.retried for r in self.trials for i in r.intervals)

    @cached_property
    def running(self) -> Share | None:
        """The part of the clients' time in which their backends ran, or waited for a CPU."""
        return self.time_share(runs)

    @cached_property
    def outside(self) -> Share | None:
        """Return the share of the clients' time in which the server had nothing to do for them: network and client.

        If clients are idle on purpose, only time within their transactions counts.
        """
        return self.time_share(is_outside)

    # ------------------------------------------------------------ rates

    def mean(self, source: str, column: str, **where: object) -> float | None:
        """Return the mean of a column, weighted by time, or None if the column was not sampled."""
        total = seconds = 0.0
        seen = set()
        for n, r in enumerate(self.trials):
            for row in r.rows(source):
                length = (row["end_ns"] - row["start_ns"]) / 1e9
                if (n, row["start_ns"]) not in seen:
                    # Several rows of a time are parts of it.
                    seen.add((n, row["start_ns"]))
                    seconds += length
                if all(row.get(k) == v for k, v in where.items()):
                    total += length * float(row.get(column) or 0.0)
        return total / seconds if seconds else None

    def per_transaction(self, column: str) -> float | None:
        """Return a server counter per transaction of pgdyno's clients, or None.

        The divisor is the clients' own transactions, because pgdyno's queries commit too. None means that the counter
        is unknown, or that nothing was committed.
        """
        amount = self.mean("counters", column)
        return amount / self.commits_per_s if amount is not None and self.commits_per_s else None

    def whole(self, source: str) -> list[Row]:
        """Return all rows of a source from all repetitions: those of the measurement, and those of whole trials."""
        return [row for r in self.trials for row in r.rows(source)]

    def events(self, *kinds: str) -> list[Event]:
        """Return the events of the given kinds from all repetitions."""
        return [e for r in self.trials for e in r.events if e.kind in kinds]

    @cached_property
    def busiest_device(self) -> str:
        """The device under the server's files that was used most; empty: none was seen."""
        return self._busiest(lambda _: True)

    @cached_property
    def data_device(self) -> str:
        """Busiest device under tables and indexes."""
        return self._busiest(lambda holds: bool(holds - {"wal"})) or self.busiest_device

    @cached_property
    def wal_device(self) -> str:
        """Busiest device under pg_wal."""
        return self._busiest(lambda holds: "wal" in holds) or self.busiest_device

    def _busiest(self, counts: Callable[[set[str]], bool]) -> str:
        use: dict[str, float] = {}
        for r in self.trials:
            for row in r.rows("devices"):
                if counts(set(row["holds"].split(",")) if row.get("holds") else set()):
                    length = row["end_ns"] - row["start_ns"]
                    use[row["device"]] = use.get(row["device"], 0.0) + row["utilisation"] * length
        return max(use, key=lambda d: use[d]) if use else ""

    def device(self, column: str, name: str | None = None) -> float:
        """Return the mean of a column for the busiest device, or for the device `name`; 0 if none was seen."""
        return self.mean("devices", column, device=self.busiest_device if name is None else name) or 0.0

    @cached_property
    def processors(self) -> Processors | None:
        """Use of the machine's processors by the server, the client and others, or None if it was not observed.

        It is not observed if the server runs on another machine. In a duet it is the use over the turns of all sides,
        and the server's part is that of all servers.
        """
        cores = self.mean("machine", "cores")
        # Without the server's processes all of it would be somebody else's.
        if not cores or not any(row["kind"] == "client backend" for r in self.trials for row in r.rows("processes")):
            return None
        busy = sum(self.mean("machine", f"cpu_{s}") or 0.0 for s in ("user", "nice", "system", "irq", "softirq"))
        client = self.mean("processes", "cpu", kind="pgdyno") or 0.0
        # Clocks of the scheduler and of the machine's states are not the same: no part is more than the whole.
        servers = [self, *(e for e in self._other_sides if not self._shares_server_with(e))]
        used = sum(max(0.0, (e.mean("processes", "cpu") or 0.0) - client) for e in servers)
        server = min(used, max(0.0, busy - client))
        backends = self.mean("processes", "cpu", kind="client backend") or 0.0
        waiting = self.mean("processes", "waiting_for_cpu", kind="client backend") or 0.0
        steal = self.mean("machine", "cpu_steal") or 0.0
        # Interrupts and the kernel's own threads work for those that are seen.
        kernel = sum(self.mean("machine", f"cpu_{s}") or 0.0 for s in ("irq", "softirq"))
        others = max(0.0, busy - client - server - kernel)
        return Processors(cores, busy, server, client, others, steal, waiting / (backends + waiting or 1.0))

    @cached_property
    def _other_sides(self) -> list[Observed]:
        """The other sides of a duet: trials under the load of the same start."""
        if not self.is_duet:
            return []
        own, starts = {r.trial.plan.number for r in self.trials}, {r.trial.start_ns for r in self.trials}
        sides: dict[object, list[TrialRecord]] = {}
        for t in self.data.trials:
            if t.plan.number not in own and t.start_ns and t.start_ns in starts:
                sides.setdefault(t.plan.key, []).append(t)
        return [Observed(self.data, trials) for trials in sides.values()]

    def _shares_server_with(self, other: Observed) -> bool:
        """Return True if two sides of a duet are on one server: in one place, or at one address."""
        a, b = self.trials[0].trial.place, other.trials[0].trial.place
        if a == b:
            # Runs of earlier versions do not name it.
            return a != ""
        (host_a, host_b) = (
            (reached.get("host"), reached.get("port"))
            for place in (a, b)
            for reached in [self.manifest.places[place].reached if place in self.manifest.places else {}]
        )
        return host_a == host_b and host_a[0] is not None

    @property
    def sees_all_sides(self) -> bool:
        """The processes of the servers of all sides of a duet were sampled."""
        return bool(self._other_sides) and all(
            e.has("processes") for e in self._other_sides if not self._shares_server_with(e)
        )

    def cpu_share(self, mean: float, used: Callable[[Row, dict[str, float]], float]) -> Share:
        """Return a share of all processors with the interval that its samples give.

        `mean` is the share. `used` computes the CPUs in use from a sample of the machine and from CPU figures. The
        latter are the CPU of each kind of server process, and of pgdyno, in that sample.
        """
        own: list[float] = []
        whole: list[float] = []
        for r in self.trials:
            by_time: dict[int, dict[str, float]] = {}
            for row in r.rows("processes"):
                by_time.setdefault(row["start_ns"] // SAMPLE_NS, {})[row["kind"]] = row["cpu"]
            for row in r.rows("machine"):
                if (kinds := by_time.get(row["start_ns"] // SAMPLE_NS)) is not None:
                    own.append(max(0.0, used(row, kinds)))
                    whole.append(row["cores"])
        found = ratio(own, whole)
        if found is None or len(own) < Samples.FEWEST:
            return Share(mean, 0.0, 1.0)
        return Share(mean, max(0.0, mean + found.low - found.mean), min(1.0, mean + found.high - found.mean))

    # ------------------------------------------------------------ throughput beside something

    def throughput_loss(
        self, disturbed: Callable[[Recorded, int, int], float], source: str = "counters"
    ) -> Share | None:
        """Return the share of throughput lost in disturbed samples, relative to the others, or None.

        `disturbed` returns the part of a sample that was disturbed, 0 to 1. The share refers to all time. None means
        that there are too few samples of either kind.
        """
        found: list[list[tuple[float, float]]] = []
        for r in self.trials:
            times = list(dict.fromkeys((row["start_ns"], row["end_ns"]) for row in r.rows(source)))
            seen = zip(r.tps_over(times), times, strict=True)
            found.append([(float(tps), float(disturbed(r, *time))) for tps, time in seen if math.isfinite(tps)])
        return loss(found)

    # ------------------------------------------------------------ what becomes of it

    def finding(
        self, cause: CauseName, sentence: Message, cost: Share, of: str, confidence: Confidence, remedy: Message,
        facts: Iterable[Fact] = (), kind: Kind | None = None, actions: Iterable[Action] = (),
    ) -> Finding:  # fmt: skip
        """Return a finding about this configuration, of the cause's kind unless `kind` is given."""
        p = self.plan
        return Finding(
            cause.name, kind or cause.kind, sentence, cost, of, confidence, remedy, list(facts), p.workload, p.hot_set,
            p.clients, dict(p.varied), [r.trial.plan.number for r in self.trials], self.is_limited,
            # Of a rate that is kept up with, throughput gains nothing.
            actions=list(actions) if self.is_limited else [],
            has_hot_sets=len({t.plan.hot_set for t in self.data.trials}) > 1,
        )  # fmt: skip


def _movement(s: TrialSummary) -> float:
    if s.regimes is not None and s.regimes.change_at_s is not None and s.regimes.before_tps:
        return s.regimes.after_tps / s.regimes.before_tps - 1
    return s.drift


def loss(trials: Sequence[Sequence[tuple[float, float]]]) -> Share | None:
    """Return the share of throughput lost in disturbed samples, with its 95% interval, or None.

    Least squares compares the disturbed samples with the others of the same trial, in proportion to the part that was
    disturbed. Each trial has its own level and its own drift; all trials have one common loss. A throughput that falls
    anyway is thus not attributed to events at the end of a trial. The error accounts for the autocorrelation of
    neighbouring samples. None means that there are too few samples of either kind, or that no trial has both.
    """
    trials = [t for t in trials if len(t) >= Samples.FEWEST]
    tps = np.array([x for t in trials for x, _ in t], dtype=float)
    noisy = np.array([d for t in trials for _, d in t], dtype=float)
    # A level that was never seen is no level to compare with.
    if noisy.sum() < Samples.FEWEST or (noisy <= Samples.UNDISTURBED).sum() < Samples.FEWEST:
        return None
    columns = [noisy]
    begin = 0
    for t in trials:
        level, drift = np.zeros(len(tps)), np.zeros(len(tps))
        level[begin : begin + len(t)] = 1.0
        drift[begin : begin + len(t)] = np.linspace(-1.0, 1.0, len(t))
        columns += [level, drift]
        begin += len(t)
    x = np.column_stack(columns)
    freedom = len(tps) - x.shape[1]
    if freedom < Samples.FEWEST or np.linalg.matrix_rank(x) < x.shape[1]:
        return None
    inverse = np.linalg.inv(x.T @ x)
    fitted = inverse @ x.T @ tps
    rest = tps - x @ fitted
    alike = autocorrelation_time(rest)
    error = math.sqrt(float(rest @ rest) / freedom * float(inverse[0, 0]) * alike)
    # What there would have been without it.
    usual = float((tps - noisy * fitted[0]).mean())
    if not usual > 0:
        return None
    share, half = float(noisy.mean()) / usual, student_975(max(1, int(freedom / alike))) * error
    return Share(-share * float(fitted[0]), share * (-float(fitted[0]) - half), share * (-float(fitted[0]) + half))
