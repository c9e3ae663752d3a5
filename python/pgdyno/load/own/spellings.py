"""Values of types that are written rather than counted: a number becomes a value, another number another one."""

from __future__ import annotations

import json
from collections.abc import Callable

_WORDS = (
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "omicron", "pi", "rho", "sigma", "tau", "upsilon",
)  # fmt: skip
#: How many different values a spelling has, where that is not as good as endless.
SIZES = {"bool": 2, "time": 86_400_000_000, "timetz": 86_400_000_000, "char": 26, "macaddr": 2**48, "cidr": 2**24}
ENDLESS = 2**40


def _inet(k: int) -> str:
    # 10.0.0.0/8, and what is beyond in IPv6.
    if k < 2**24:
        return f"10.{k >> 16 & 255}.{k >> 8 & 255}.{k & 255}"
    return f"fd00::{k >> 32 & 0xFFFF:x}:{k >> 16 & 0xFFFF:x}:{k & 0xFFFF:x}"


def _mac(k: int, octets: int = 6) -> str:
    return ":".join(f"{k >> 8 * (octets - 1 - n) & 255:02x}" for n in range(octets))


def _time(k: int) -> str:
    s, micros = divmod(k % 86_400_000_000, 1_000_000)
    return f"{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}.{micros:06d}"


def _split(k: int) -> list[str]:
    out = [_WORDS[k % len(_WORDS)]]
    while k := k // len(_WORDS):
        out.append(_WORDS[k % len(_WORDS)])
    return out


def _document(k: int) -> str:
    return json.dumps({"id": k, "name": " ".join(_split(k % 160_000)), "active": k % 3 > 0, "tags": _split(k % 400)})


def _bits(k: int, length: int) -> str:
    return f"{k:b}"[-length:].rjust(length, "0")


_SPELLED: dict[str, Callable[[int], str]] = {
    "json": _document, "jsonb": _document, "bytea": lambda k: f"\\x{k:016x}", "inet": _inet,
    "cidr": lambda k: f"10.{k >> 16 & 255}.{k >> 8 & 255}.{k & 255}/32",
    "interval": lambda k: f"{k % 10**9} seconds", "time": _time, "timetz": lambda k: _time(k) + "+00",
    "tsvector": lambda k: " ".join(_split(k)), "tsquery": lambda k: " & ".join(dict.fromkeys(_split(k))),
    "xml": lambda k: f"<a>{k}</a>", "point": lambda k: f"({k % 10_000},{k // 10_000})",
    "lseg": lambda k: f"[({k},0),({k},1)]", "box": lambda k: f"({2 * k + 1},1),({2 * k},0)",
    "line": lambda k: f"{{1,1,{k}}}",
    "path": lambda k: f"[({k},0),({k},1)]", "polygon": lambda k: f"(({k},0),({k},1),({k + 1},0))",
    "circle": lambda k: f"<({3 * k},0),1>", "macaddr": _mac, "macaddr8": lambda k: _mac(k, 8),
    "oid": lambda k: str(k % 2**31), "xid": lambda k: str(k % 2**31),
    "pg_lsn": lambda k: f"{k >> 32:X}/{k & 0xFFFFFFFF:X}",
    "char": lambda k: chr(97 + k % 26), "hstore": lambda k: f'"id"=>"{k}"', "ltree": lambda k: ".".join(_split(k)),
    "jsonpath": lambda k: f"$.k{k}",
}  # fmt: skip
_ELEMENTS: dict[str, Callable[[int], str]] = {
    "int2": lambda k: str(k % 30_000), "int4": lambda k: str(k % 2**31), "int8": str,
    "text": lambda k: " ".join(_split(k)),
    "varchar": lambda k: _split(k)[0], "bpchar": lambda k: _split(k)[0][:1], "numeric": lambda k: str(k % 10_000),
    "float4": lambda k: str(k % 10_000), "float8": lambda k: str(k % 10_000), "bool": lambda k: "tf"[k % 2],
    "citext": lambda k: " ".join(_split(k)), "name": lambda k: _split(k)[0],
    "date": lambda k: f"{2000 + k // 336 % 50}-{1 + k // 28 % 12:02d}-{1 + k % 28:02d}",
    "timestamp": lambda k: f"2024-01-{1 + k % 28:02d} {_time(k)}",
    "timestamptz": lambda k: f"2024-01-{1 + k % 28:02d} {_time(k)}+00",
    "uuid": lambda k: f"{k:08x}-0000-4000-8000-{k:012x}",
}  # fmt: skip


def _array(element: Callable[[int], str]) -> Callable[[int], str]:
    def spelled(k: int) -> str:
        items = [element(k // 4 + n) for n in range(k % 4)]
        return "{" + ",".join('"' + x.replace("\\", "\\\\").replace('"', '\\"') + '"' for x in items) + "}"

    return spelled


def _range(subtype: str) -> Callable[[int], str]:
    """Ranges that follow each other: of one number each, so that no two of them overlap."""
    if subtype in ("timestamp", "timestamptz", "date"):
        import datetime as dt

        begin = dt.datetime(2000, 1, 1)
        if subtype == "date":
            return lambda k: f"[{(begin + dt.timedelta(days=k)).date()},{(begin + dt.timedelta(days=k + 1)).date()})"
        # Half a minute each: 40 bits of them would leave the calendar.
        return lambda k: f"[{begin + dt.timedelta(seconds=30 * k)},{begin + dt.timedelta(seconds=30 * k + 30)})"
    return lambda k: f"[{k},{k + 1})"


def spelling_of(type_: str, element: str | None = None, subtype: str | None = None, multirange: bool = False) -> str:
    """Return the name of the spelling for a type, or an empty string if none exists."""
    if element is not None:
        return f"{element}[]" if element in _ELEMENTS or element in _SPELLED else ""
    if subtype is not None:
        return f"{'multirange' if multirange else 'range'} {subtype}"
    return type_ if type_ in _SPELLED else ""


def size_of(spelling: str) -> int:
    """Return the number of distinct values of a spelling."""
    if spelling.endswith("range date"):
        return 2_000_000
    if "range timestamp" in spelling:
        return 4_000_000_000
    if spelling in ("range int4", "multirange int4"):
        return 2**31 - 2
    if spelling.startswith("bits "):
        return int(2 ** min(40, int(spelling[5:])))
    return SIZES.get(spelling, ENDLESS)


def speller(spelling: str) -> Callable[[int], str]:
    """Return the function that writes a number as a value of the spelling."""
    if spelling.endswith("[]"):
        return _array((_ELEMENTS | _SPELLED)[spelling[:-2]])
    if spelling.startswith("bits "):
        length = int(spelling[5:])
        return lambda k: _bits(k, length)
    if spelling.startswith("multirange "):
        inner = _range(spelling[11:])
        return lambda k: f"{{{inner(k)}}}"
    return _range(spelling[6:]) if spelling.startswith("range ") else _SPELLED[spelling]
