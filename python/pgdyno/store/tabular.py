"""Columns of values as CSV for COPY, and Parquet files as the same: Arrow does the work."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from pgdyno.errors import UsageError, msg
from pgdyno.format import one_line

#: An Arrow array; nobody else needs to know.
Column = Any
_EPOCH_UNIT = {"timestamp": pa.timestamp("us"), "date": pa.date32()}
_OPTIONS = pacsv.WriteOptions(include_header=False)


def numbers(values: np.ndarray[Any, Any]) -> Column:
    """Integers, floating-point numbers or booleans."""
    return pa.array(values)


def texts(lengths: np.ndarray[Any, Any], letters: bytes) -> Column:
    """Strings that follow each other in `letters`, of these lengths."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(letters)]
    return pa.LargeStringArray.from_buffers(len(lengths), *buffers[1:])


def chosen(indexes: np.ndarray[Any, Any], values: Sequence[object]) -> Column:
    """Return the values at these indexes."""
    return spelled(values).take(pa.array(indexes))


def spelled(values: Sequence[object]) -> Column:
    """Texts as they are; None is NULL."""
    return pa.array([None if v is None else str(v) for v in values], type=pa.string())


def text_rows(column: Column) -> list[str | None]:
    """Values as SQL reads them."""
    return column.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]


def grouped(column: Column) -> tuple[Column, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Group the positions of a column's values by value.

    Return the distinct values without NULL, the positions grouped by value, and the offset at which each group begins.
    The end of the last group follows as one more offset.
    """
    encoded = pc.dictionary_encode(column)
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.argsort(codes, kind="stable")
    order = order[int((codes < 0).sum()) :]
    counts = np.bincount(codes[codes >= 0], minlength=len(encoded.dictionary))
    return encoded.dictionary, order, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def places(column: Column, among: Column) -> np.ndarray[Any, Any]:
    """Return the position of each value among other values; -1 means that it is not among them."""
    found = pc.index_in(column.cast(among.type), value_set=among)
    return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64))


def instants(values: np.ndarray[Any, Any], kind: str) -> Column:
    """Instants: of kind "timestamp" microseconds since 1970, of "date" days."""
    return pa.array(values.astype(np.int64 if kind == "timestamp" else np.int32)).cast(_EPOCH_UNIT[kind])


def without(column: Column, absent: np.ndarray[Any, Any]) -> Column:
    """Return the column with NULL where `absent` is True."""
    return pc.if_else(pa.array(absent), pa.scalar(None, column.type), column)


def as_csv(columns: Sequence[Column]) -> bytes:
    """Rows as COPY ... (FORMAT csv) takes them; NULL is nothing, an empty string is quoted."""
    table = pa.table(list(columns), names=[f"c{n}" for n in range(len(columns))])
    out = io.BytesIO()
    pacsv.write_csv(table, out, _OPTIONS)
    return out.getvalue()


def parquet(path: Path) -> tuple[list[str], int, Iterator[tuple[int, bytes]]]:
    """Return a file's columns, its number of rows, and its contents in pieces.

    Each piece is a number of rows and their CSV. Raise UsageError if the file cannot be read or has nested columns.
    """
    try:
        file = pq.ParquetFile(path)
        nested = [f.name for f in file.schema_arrow if pa.types.is_nested(f.type)]
    except (OSError, pa.ArrowException) as e:
        raise UsageError(msg("error-cannot-read", path=path, reason=one_line(e)[:200])) from e
    if nested:
        raise UsageError(
            msg("error-nested-columns-cannot-be-copied", path=path, nested=", ".join(nested)),
            msg("remedy-flatten-them-or-use-json"),
        )

    def pieces() -> Iterator[tuple[int, bytes]]:
        try:
            for batch in file.iter_batches(65_536):
                out = io.BytesIO()
                pacsv.write_csv(pa.Table.from_batches([batch]), out, _OPTIONS)
                yield batch.num_rows, out.getvalue()
        except (OSError, pa.ArrowException) as e:
            raise UsageError(msg("error-cannot-be-copied", path=path, reason=one_line(e)[:200])) from e

    return list(file.schema_arrow.names), file.metadata.num_rows, pieces()
