"""Trials of a run directory, read: what each was, its intervals, its events; what cannot be read is named."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pgdyno._core import Histogram
from pgdyno.errors import ReasonError, msg, reason
from pgdyno.message import Name, Text, message
from pgdyno.model import (
    Caveat,
    Event,
    IntervalRow,
    TrialPlan,
    TrialRecord,
    TrialSummary,
    event_kind,
)
from pgdyno.store import hlog, manifest, texts
from pgdyno.store.layout import ADDED, CHECKS, EVENTS, INTERVALS, LINES, LOG, TRIAL
from pgdyno.store.manifest import explained, text_of

#: Of an interval, what is counted, and a trial has the sum of.
_COUNTED = {
    "scheduled", "committed", "skipped", "unknown", "unfinished", "lost", "reconnects", "violations", "statements"
}  # fmt: skip


@dataclass(frozen=True)
class TrialFile:
    """trial.json. Without a schema it is of schema 0, which has the same keys but `start_ns`."""

    plan: TrialPlan
    state: str
    started_at: str
    parameters: dict[str, Any] = field(default_factory=dict)
    ended_at: str | None = None
    #: Nanoseconds since 1970: where the series' times count from; 0: not recorded.
    start_ns: int = 0
    error: str = ""
    error_message: Any = None
    caveats: list[str] = field(default_factory=list)
    summary: TrialSummary | None = None
    activity: dict[str, float] = field(default_factory=dict)
    schema: int = 0

    def record(self) -> TrialRecord:
        """Return the trial as the program represents it."""
        return TrialRecord(
            self.plan,
            "interrupted" if self.state == "running" else self.state,
            self.started_at,
            texts.restored(self.error, self.error_message),
            self.summary,
            [Caveat[name] for name in self.caveats if name in Caveat.__members__],
            self.activity,
            int(self.parameters.get("rows_per_transaction") or 0),
            str(self.parameters.get("place") or ""),
            self.start_ns,
            self.parameters,
        )


_TRIAL_FILE = TypeAdapter(TrialFile)


class Damage:
    """Files that cannot be read; each is named once."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self.files: list[tuple[str, Text]] = []

    def note(self, path: Path, why: Text) -> None:
        named = str(path.relative_to(self._base)) if path.is_relative_to(self._base) else str(path)
        if named not in (name for name, _ in self.files):
            self.files.append((named, why))


def read_records(path: Path) -> list[TrialRecord]:
    """Return the trials of a run directory, without their time series and histograms."""
    return [t for _, t in records_with_folders(path, Damage(path))]


def read_record(folder: Path) -> TrialRecord:
    """Return the record of a trial from its folder. Raise OSError or ValueError if it cannot be read."""
    return parse_trial(text_of(folder / TRIAL)).record()


def records_with_folders(path: Path, damage: Damage) -> list[tuple[Path, TrialRecord]]:
    """Return the trials that can be read, each with its folder."""
    found = []
    for folder in _folders(path / "trials"):
        file = f"{folder}/{TRIAL}"
        try:
            record = parse_trial(text_of(file)).record()
            found.append((folder, _recovered(folder, record, damage) if record.state == "interrupted" else record))
        except FileNotFoundError:
            # It was just being made when the run was killed: there is nothing in it.
            if any(folder.iterdir()):
                damage.note(folder / TRIAL, msg("why-missing"))
        except (OSError, ValueError, TypeError, OverflowError) as e:
            damage.note(folder / TRIAL, reason(e))
    return found


def _folders(path: Path) -> list[Path]:
    """Return the folders of the trials in the order of their numbers, which may have five digits."""

    def order(name: str) -> tuple[int, str]:
        number = name.partition("-")[0]
        return (int(number) if number.isdecimal() else sys.maxsize, name)

    try:
        with os.scandir(path) as entries:
            return [Path(e.path) for e in sorted((e for e in entries if e.is_dir()), key=lambda e: order(e.name))]
    except OSError:
        return []


def _recovered(folder: Path, record: TrialRecord, damage: Damage) -> TrialRecord:
    """Return a killed trial with the figures of its remaining intervals.

    There are no figures of its statements.
    """
    rows = [r for r in read_intervals(folder, damage.note) if r.phase == "measure" and r.end_ns > r.start_ns]
    if record.summary is not None or not rows:
        return record
    failed: Counter[str] = Counter()
    for r in rows:
        for part in filter(None, r.failed_by_sqlstate.split(",")):
            code, _, n = part.partition(":")
            failed[code] += int(n)
    total = {f.name: sum(getattr(r, f.name) for r in rows) for f in fields(IntervalRow) if f.name in _COUNTED}
    latency = hlog.read_merged(folder / LOG, {r.start_ns for r in rows}).get(hlog.TRANSACTION)
    elapsed_s = sum(r.end_ns - r.start_ns for r in rows) / 1e9
    cpu_s, delay_s = (sum(getattr(r, name) for r in rows) / 1e9 for name in ("client_cpu_ns", "client_run_delay_ns"))
    summary = TrialSummary(
        tps=total["committed"] / elapsed_s,
        qps=total.pop("statements") / elapsed_s,
        elapsed_s=elapsed_s,
        failed=dict(failed),
        # Of all workers together: the series does not have them one by one.
        client_cpu_share=cpu_s / elapsed_s,
        client_delay_share=delay_s / elapsed_s,
        connect_s=0.0,
        latency=hlog.latency_of(latency or Histogram()),
        statements=[],
        **total,
    )
    caveats = [Caveat.INTERRUPTED, *([Caveat.FAILURES] if failed else []), *([Caveat.OUTAGE] if summary.lost else [])]
    return replace(record, summary=summary, caveats=list(dict.fromkeys([*record.caveats, *caveats])))


def parse_trial(text: str) -> TrialFile:
    """Parse the text of a trial.json file.

    Raise ValueError, which names the key and the mistake, if the text is not valid.
    """
    try:
        # A run may have ten thousand of them: one pass, and two only to tell what is wrong.
        with suppress(ValidationError):
            parsed = _TRIAL_FILE.validate_json(text)
            manifest.check_schema(parsed.schema)
            return parsed
        found = json.loads(text)
        if isinstance(found, dict):
            manifest.check_schema(found.get("schema", 0))
        return _TRIAL_FILE.validate_python(found)
    except RecursionError:
        raise ReasonError(msg("why-too-deep")) from None
    except ValidationError as e:
        raise ReasonError(explained(e)) from e


def read_checks(folder: Path, note: Callable[[Path, Text], None] = lambda *_: None) -> list[dict[str, Any]]:
    """Return the checks of a trial's tables; the list is empty if nothing was checked."""
    # A run may have ten thousand trials, and few have checks.
    if not os.path.exists(f"{folder}/{CHECKS}"):  # noqa: PTH110
        return []
    path = folder / CHECKS
    try:
        found = json.loads(manifest.text_of(path))
        kinds = {"clause": str, "title": str, "holds": bool, "broken": int, "example": str}
        if not isinstance(found, list) or not all(
            isinstance(c, dict) and all(isinstance(c.get(k), t) for k, t in kinds.items()) for c in found
        ):
            raise ReasonError(msg("why-no-checks"))
    except (OSError, ValueError) as e:
        note(path, reason(e))
        return []
    return found


def damaged_parquet() -> tuple[type[Exception], ...]:
    """Return the errors that a damaged file raises: pyarrow's, and those of columns with other names or types."""
    import pyarrow as pa

    return OSError, pa.ArrowException, UnicodeDecodeError, TypeError


def read_intervals(folder: Path, note: Callable[[Path, Text], None] = lambda *_: None) -> list[IntervalRow]:
    """Return a trial's time series.

    It comes from the Parquet file, or from the lines that were written until the trial was killed. `note` is called
    for each file that cannot be read.
    """
    parquet = folder / INTERVALS
    if parquet.exists():
        # What only writes a record or loads data starts without Parquet.
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(parquet) as file:
                # One thread: the files are small, and there may be ten thousand.
                table = file.read(use_threads=False)
            found = table.drop_columns([name for name in ADDED if name in table.column_names]).to_pylist()
            return [IntervalRow(**row) for row in found]
        except damaged_parquet() as e:
            # The rest of the run is still worth reading.
            note(parquet, reason(e))
            return []
    rows: list[IntervalRow] = []
    try:
        lines = (folder / LINES).read_bytes().split(b"\n")
    except FileNotFoundError:
        return rows
    except OSError as e:
        note(folder / LINES, reason(e))
        return rows
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            rows.append(IntervalRow(**json.loads(line)))
        except (ValueError, TypeError, RecursionError) as e:
            # The last line may be torn by a kill; a whole one is damaged.
            if number < len(lines):
                note(folder / LINES, message("why-line", line=number, reason=reason(e)))
            break
    return rows


def read_events(folder: Path, note: Callable[[Path, Text], None] = lambda *_: None) -> list[Event]:
    """Return the events of a trial, in order of time.

    `note` is called if the file cannot be read.
    """
    file, found = folder / EVENTS, []
    try:
        lines = file.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as e:
        note(file, reason(e))
        return []
    for number, line in enumerate(lines, 1):
        try:
            if line:
                facts = json.loads(line)
                text = texts.restored(str(facts["text"]), facts.get("message")) or Name("")
                found.append(Event(int(facts["at_ns"]), event_kind(str(facts["kind"])), text))
        except (ValueError, TypeError, KeyError, RecursionError) as e:
            if number < len(lines):
                note(file, message("why-line", line=number, reason=reason(e)))
            break
    return sorted(found, key=lambda e: e.at_ns)
