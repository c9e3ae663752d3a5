"""Rounds of a drill: load, fault, failover, audit; one after the other, each written down when it is over."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import psycopg

from pgdyno.cluster import administration
from pgdyno.cluster.target import Target
from pgdyno.drill import copies, ledger
from pgdyno.drill.load import INTERVAL_S, Load
from pgdyno.drill.modes import Mode
from pgdyno.drill.records import KILLED, Options, Round, Say, save, write_lost
from pgdyno.drill.target import DrillTarget, LiveRound
from pgdyno.errors import PgdynoError, RefusedError, TrialError, msg, reason
from pgdyno.format import one_line
from pgdyno.message import message


def play(
    target: DrillTarget, fault: str, number: int, options: Options, folder: Path, say: Say, mode: Mode | None = None
) -> Round:
    """Run one round on a cluster that is whole.

    Afterwards the cluster is whole again, unless the round is marked as broken. The records of the round are in
    `folder`. Raise PgdynoError if the cluster is not whole before the round.
    """
    target.refuse_unfit([fault])
    found, live = target.start_round(fault, number, options, mode or target.mode, say)
    folder.mkdir(parents=True)
    found.run = time.time_ns() // 1_000_000
    # What is there if pgdyno is killed within the round: the clients' records lie beside it, the rows are found by
    # the number of the run.
    save(folder, replace(found, error=KILLED))
    _create_ledger(target.client())
    target.wait_caught_up()
    there = live.endpoint
    load = Load(
        there.first, there.others, ledger.workload(found.run, folder / "ledger"), folder / "ledger",
        options.clients, options.answer_timeout_s, options.connect_timeout_s, read_write=there.read_write,
    )  # fmt: skip
    beside = None if options.beside is None else options.beside.load(load)
    sums = {} if options.beside is None else options.beside.sums(target.client())
    try:
        if beside is not None:
            beside.start()
        _break(live, fault, options, load, found, say)
    except (PgdynoError, psycopg.Error) as e:
        found.error = reason(e)
    except BaseException:
        # Whoever interrupts the drill does not want the cluster left broken.
        if found.fault_ns:
            live.abandon()
        raise
    finally:
        live.stop()
        load.stop()
        if beside is not None:
            beside.stop()
            found.beside_tps = _tps_before(beside, found.fault_ns)
        begin_s = (load.started_ns - found.fault_ns) / 1e9
        found.series = [(round(begin_s + s.at_s, 3), s.committed / INTERVAL_S) for s in load.series]
        clients = [(load.started_ns + round(s * 1e9), text) for s, text in load.events]
        found.events = sorted([*found.events, *clients], key=lambda e: e[0])
        speeds(found, load)
        save(folder, replace(found, error=found.error or KILLED))
        live.release()
    if load.error is not None and found.error is None:
        found.error = message("drill-load-ended", reason=load.error)
    if beside is not None and beside.error is not None and found.error is None:
        found.error = message("drill-workload-ended", reason=beside.error)
    say("recovery")
    try:
        compare_copies(found, load, target.everybody())
        primary = live.recover()
        _audit(primary, found, load, live.seen)
        live.make_whole()
        _compare(target, found)
        if options.beside is not None:
            say("consistency")
            found.inconsistent = options.beside.inconsistent(target.client(), sums)
    except (PgdynoError, psycopg.Error) as e:
        found.error = found.error or reason(e)
        found.broken = True
    save(folder, found)
    return found


def _create_ledger(primary: Target) -> None:
    """Create the ledger's tables. Raise RefusedError if the role may not."""
    try:
        with administration.connect(primary) as conn:
            ledger.create(conn)
    except psycopg.errors.InsufficientPrivilege as e:
        raise RefusedError(
            msg("error-role-may-not-create-ledger", user=primary.user, reason=one_line(e)),
            msg("remedy-grant-create-on-schema-public"),
        ) from e


def _break(live: LiveRound, fault: str, options: Options, load: Load, found: Round, say: Say) -> None:
    """Run the load, inject the fault, and wait until all clients are served again."""
    begin(fault, options, load, found, say)
    live.inject()
    # Only commits from now on count: the old primary may have served clients until a moment ago.
    since_ns, deadline = time.time_ns(), time.monotonic() + live.served_s
    while time.monotonic() < deadline and load.is_on():
        if live.is_served() and ledger.are_served(load.records, load.clients, since_ns):
            break
        time.sleep(0.02)
    found.served_ns = time.time_ns()
    time.sleep(options.after_s)
    live.settle()


def begin(fault: str, options: Options, load: Load, found: Round, say: Say) -> None:
    """Start the load, let it run, and set the time of the fault.

    Raise TrialError if the load does not start, or if no commit is acknowledged before the fault.
    """
    say("load")
    load.start()
    if load.error:
        raise TrialError(msg("error-load-did-not-begin", reason=load.error))
    time.sleep(options.before_s)
    if not any(s.committed for s in load.series):
        raise TrialError(msg("error-no-commit-was-acknowledged-before"), msg("remedy-anybody-there-whom-commits-wait"))
    say(fault)
    found.fault_ns = time.time_ns()
    # Not the first half second: connections are warm then.
    since = (found.fault_ns - load.started_ns) / 1e9
    healthy = load.between(0.5, since)
    found.tps = healthy.committed / max(0.1, since - 0.5)
    if healthy.committed:
        found.p50_s = healthy.latency.percentile(50) / 1e9
        found.p99_s = healthy.latency.percentile(99) / 1e9


#: A second that holds this part of the commits of before is as good as before.
_AS_BEFORE = 0.9
_A_SECOND = round(1 / INTERVAL_S)
#: Times of intervals are sums of tenths.
_ROUNDING_S = 1e-6


def speeds(found: Round, load: Load) -> None:
    """Work out what the fault did to throughput and latency, and when the cluster was back."""
    if not found.fault_ns or not load.series:
        return
    fault = (found.fault_ns - load.started_ns) / 1e9
    end = load.series[-1].at_s + INTERVAL_S
    found.watched_s = end - fault
    served = end if found.served_ns is None else (found.served_ns - load.started_ns) / 1e9
    for name, (a, b) in (("during", (fault, served)), ("after", (served, end))):
        # Whole intervals only: the one in which all were served again is at full speed behind that.
        whole = [s for s in load.series if a <= s.at_s + _ROUNDING_S and s.at_s + INTERVAL_S <= b + _ROUNDING_S]
        if whole:
            part = load.between(whole[0].at_s, whole[-1].at_s + INTERVAL_S / 2)
            setattr(found, f"{name}_tps", part.committed / (len(whole) * INTERVAL_S))
            if part.committed:
                setattr(found, f"{name}_p99_s", part.latency.percentile(99) / 1e9)
    behind = [s for s in load.series if s.at_s >= fault]
    found.first_commit_s = next((s.at_s - fault for s in behind if s.committed), None)
    # A fault may act late: clients have recovered behind the last pause before all were served again.
    pauses = [n for n, s in enumerate(behind) if not s.committed and s.at_s < served]
    for n in range(pauses[-1] if pauses else 0, len(behind) - _A_SECOND + 1):
        # It begins with a commit: a pause at its beginning is not recovered.
        if behind[n].committed and sum(s.committed for s in behind[n : n + _A_SECOND]) >= _AS_BEFORE * found.tps:
            found.recovered_s = behind[n].at_s - fault
            break


def compare_copies(found: Round, load: Load, members: Mapping[str, Target]) -> None:
    """Compare the records with every reachable member, before any repair.

    Rows that only one of two primaries has are gone once one of them is made to follow the other.
    """
    seen = copies.read(members, found.run)
    entries = ledger.read(load.records)
    apart = copies.divided(entries, seen)
    found.divided = {member: len(of) for member, of in apart.items()}
    primaries = [c.member for c in seen if c.is_primary]
    if len(primaries) > 1:
        found.other_primaries = sorted({*found.other_primaries, *(m for m in primaries if m != found.new_primary)})
        # The only one that is missing elsewhere may have been written before the other was promoted.
        since = found.promoted_ns or found.fault_ns
        took = [m for m, of in apart.items() if any(e.at_ns > since for e in of)]
        found.split_brain = len(took) > 1
        # Of a cluster that never becomes whole this is all there is.
        found.audit = ledger.audit(entries, copies.union(seen), fault_ns=found.fault_ns)
        note_outages(found, load, entries, ledger.outages(entries, load.clients, found.fault_ns, load.ended_ns))


def note_outages(found: Round, load: Load, entries: Sequence[ledger.Entry], outages: list[ledger.Outage]) -> None:
    """Record the outages, and by them when clients committed again: intervals tell it to a tenth of a second only."""
    found.outages = outages
    ends = [o.first_ns for o in outages if o.first_ns is not None]
    if ends and len(ends) == len(outages):
        found.served_ns = max(ends)
    speeds(found, load)
    if found.served_ns is not None and found.served_ns > found.fault_ns:
        # Exactly: intervals at both ends would hold more.
        count = sum(e.outcome == "acknowledged" and found.fault_ns < e.at_ns <= found.served_ns for e in entries)
        found.during_tps = count * 1e9 / (found.served_ns - found.fault_ns)
    if ends:
        found.first_commit_s = (min(ends) - found.fault_ns) / 1e9
        if found.recovered_s is not None:
            found.recovered_s = max(found.recovered_s, found.first_commit_s)


def _tps_before(load: Load, fault_ns: int) -> float | None:
    """Its transactions a second until the fault."""
    seconds = (fault_ns - load.started_ns) / 1e9
    return load.between(0.0, seconds).committed / seconds if load.started_ns and seconds > 0 else None


def _audit(primary: Target, found: Round, load: Load, seen: set[ledger.Key]) -> None:
    """Compare what clients were told with the rows of the primary."""
    entries = ledger.read(load.records)
    with administration.connect(primary) as conn:
        there = ledger.look(conn, found.run)
    found.audit = ledger.audit(
        entries, there.rows, fault_ns=found.fault_ns, seen=seen, changed=there.changed, states=there.states
    )
    lost = {e.key for e in found.audit.lost}
    note_outages(found, load, entries, ledger.outages(entries, load.clients, found.fault_ns, load.ended_ns, lost))
    write_lost(load.records.parent / "lost.csv", found.audit.lost)


def _compare(target: DrillTarget, found: Round) -> None:
    """Compare the rows of all members, and record the members whose rows differ from the primary's."""
    everybody = target.everybody()
    with administration.connect(target.primary()) as conn:
        there = ledger.look(conn, found.run)
    for name, member in everybody.items():
        if name != found.new_primary:
            with administration.connect(member) as conn:
                if ledger.look(conn, found.run) != there:
                    found.differing.append(name)
