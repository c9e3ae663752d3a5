"""Samples taken beside a trial: one file per source in the trial's folder, `samples/NAME.parquet`.

While the trial runs, the samples are lines of JSON, and a kill can truncate the last line. When the trial ends, they
become Parquet.

Each row has `start_ns` and `end_ns` on the clock of the trial's intervals (nanoseconds since the load began). The
other columns depend on the source: numbers are doubles, names are text.

Some sources are read before and after a trial (tables, indexes, io, statements, plans). Their rows cover the whole
trial and have no times.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from pgdyno import home
from pgdyno.errors import reason
from pgdyno.message import Text, message

#: The folder within a trial's.
FOLDER = "samples"
Row = dict[str, Any]
#: Bytes of lines that are turned into Parquet at a time.
_BLOCK = 4 << 20
#: What may be read of a file's damage.
_DAMAGED = (OSError, pa.ArrowException, ValueError)


class SampleWriter:
    """Writes the samples of one trial, from any thread."""

    def __init__(self, trial: Path) -> None:
        self._folder = trial / FOLDER
        self._files: dict[str, TextIO] = {}
        self._is_closed = False
        self._lock = threading.Lock()

    def append(self, name: str, start_ns: int, end_ns: int, rows: Sequence[Row]) -> None:
        """Rows of a source, of the time between. Raises OSError."""
        lines = [json.dumps({"start_ns": start_ns, "end_ns": end_ns, **row}) + "\n" for row in rows]
        with self._lock:
            if self._is_closed:
                # A collector that was given up has found its way back.
                return
            if name not in self._files:
                self._folder.mkdir(exist_ok=True)
                self._files[name] = (self._folder / f"{name}.jsonl").open("w", encoding="utf-8", buffering=1)
            self._files[name].write("".join(lines))

    def whole(self, name: str, rows: Sequence[Row]) -> None:
        """Rows of the whole trial; nothing is written where there are none. Raises OSError."""
        if not rows:
            return
        self._folder.mkdir(exist_ok=True)
        with home.replacement(self._folder / f"{name}.parquet") as to:
            pq.write_table(pa.Table.from_pylist(list(rows)), to)

    def finish(self) -> None:
        """Convert the lines to Parquet.

        Raise OSError if a file cannot be written.
        """
        with self._lock:
            self._is_closed = True
            files, self._files = self._files, {}
        for name, file in files.items():
            lines = self._folder / f"{name}.jsonl"
            try:
                file.close()
                with home.replacement(self._folder / f"{name}.parquet") as to:
                    _convert(lines, to)
            except pa.ArrowException:
                # Torn, on a disk that was full: the lines can be read.
                continue
            lines.unlink(missing_ok=True)


def _convert(lines: Path, to: BinaryIO) -> None:
    """Convert lines of JSON to Parquet in blocks, because a trial may last many hours."""
    with (
        pj.open_json(lines, pj.ReadOptions(block_size=_BLOCK)) as reader,
        pq.ParquetWriter(to, reader.schema) as writer,
    ):
        for batch in reader:
            writer.write_batch(batch)


def names(trial: Path) -> list[str]:
    """Return the names of the sources of which a trial has samples."""
    try:
        found = {p.stem for p in (trial / FOLDER).iterdir() if p.suffix in (".parquet", ".jsonl")}
    except OSError:
        return []
    return sorted(n for n in found if not n.startswith("."))


def file_of(trial: Path, name: str) -> Path | None:
    """Return the Parquet file of a source, or None if the trial has not ended normally."""
    path = trial / FOLDER / f"{name}.parquet"
    return path if path.exists() else None


def read(trial: Path, name: str, note: Callable[[Path, Text], None] = lambda *_: None) -> list[Row]:
    """Return the rows of a source; the list is empty if there are none.

    `note` is called for each file that cannot be read.
    """
    folder = trial / FOLDER
    if not folder.is_dir():
        # A run may have ten thousand trials without samples, and each source is asked for.
        return []
    path = folder / f"{name}.parquet"
    if path.exists():
        try:
            with pq.ParquetFile(path) as file:
                rows: list[Row] = file.read(use_threads=False).to_pylist()
        except _DAMAGED as e:
            note(path, reason(e))
            return []
        return rows
    path = path.with_suffix(".jsonl")
    rows = []
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return rows
    except OSError as e:
        note(path, reason(e))
        return rows
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            rows.append(json.loads(line))
        except (ValueError, RecursionError) as e:
            if number < len(lines):
                note(path, message("why-line", line=number, reason=reason(e)))
            break
    return rows
