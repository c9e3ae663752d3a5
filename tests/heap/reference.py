"""The same pages, slowly: after the loops of PostgreSQL's own sources, one tuple after the other."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

PAGE = 8192
PRIME = 16777619
BASES = (
    0x5B1F36E9, 0xB8525960, 0x02AB50AA, 0x1DE66D2A, 0x79FF467A, 0x9BB9F8A3, 0x217E7CD2, 0x83E13D2C,
    0xF8D4474F, 0xE39EB970, 0x42C6AE16, 0x993216FA, 0x7B093B5D, 0x98DAFF3C, 0xF718902A, 0x0B1C9CDB,
    0xE58F764B, 0x187636BC, 0x5D7B3BB1, 0xE73DE7DE, 0x92BEC979, 0xCCA6C0B2, 0x304A0979, 0x85AA43D4,
    0x783125BB, 0x6CA8EAA2, 0xE407EAC6, 0x4B5CFC3E, 0x9FBF8C76, 0x15CA20BE, 0xF2CA9FD3, 0x959BD756,
)  # fmt: skip
Value = int | float | str | None


def aligned(n: int, to: int = 8) -> int:
    return -(-n // to) * to


def checksum(page: bytes, block: int) -> int:
    """checksum_impl.h"""
    page = page[:8] + b"\0\0" + page[10:]
    sums = list(BASES)
    words = struct.unpack("<2048I", page)
    for i in range(66):
        for lane in range(32):
            value = words[i * 32 + lane] if i < 64 else 0
            t = sums[lane] ^ value
            sums[lane] = (t * PRIME & 0xFFFFFFFF) ^ (t >> 17)
    result = 0
    for s in sums:
        result ^= s
    return (result ^ block) % 65535 + 1


@dataclass
class Page:
    """A page with PageAddItem."""

    special: int = 0
    flags: int = 0
    pointers: list[tuple[int, int]] = field(default_factory=list)
    body: bytearray = field(default_factory=lambda: bytearray(PAGE))

    def __post_init__(self) -> None:
        self.upper = PAGE - self.special

    def room(self) -> int:
        """PageGetFreeSpace, which keeps a line pointer's place."""
        return max(0, self.upper - 24 - 4 * len(self.pointers) - 4)

    def add(self, item: bytes) -> None:
        self.upper -= aligned(len(item))
        self.body[self.upper : self.upper + len(item)] = item
        self.pointers.append((self.upper, len(item)))

    def bytes(self) -> bytes:
        out = bytearray(self.body)
        lower = 24 + 4 * len(self.pointers)
        struct.pack_into("<HHHHH", out, 10, self.flags, lower, self.upper, PAGE - self.special, PAGE | 4)
        for i, (offset, length) in enumerate(self.pointers):
            used = 1 if length else 0
            struct.pack_into("<I", out, 24 + 4 * i, offset | used << 15 | length << 17)
        return bytes(out)


def heap_tuple(kinds: list[str], row: list[Value], block: int, offset: int, xmin: int, cmin: int) -> bytes:
    """heap_form_tuple, heap_fill_tuple, heap_prepare_insert with HEAP_INSERT_FROZEN"""
    data, infomask = bytearray(), 0x0300 | 0x0800
    nulls = any(v is None for v in row)
    hoff = aligned(23 + (-(-len(row) // 8) if nulls else 0))
    for kind, value in zip(kinds, row, strict=True):
        if value is None:
            continue
        form = {"int4": "<i", "int8": "<q", "float8": "<d"}.get(kind)
        if form is not None:
            size = struct.calcsize(form)
            data += bytes(aligned(hoff + len(data), size) - hoff - len(data)) + struct.pack(form, value)
            continue
        infomask |= 0x0002
        text = str(value).encode()
        text = text if kind == "text" else text.ljust(int(kind))
        if len(text) + 1 <= 127:
            data += bytes([(len(text) + 1) << 1 | 1]) + text
        else:
            data += bytes(aligned(hoff + len(data), 4) - hoff - len(data))
            data += struct.pack("<I", (len(text) + 4) << 2) + text
    head = bytearray(hoff)
    address = struct.pack("<HHH", block >> 16, block & 0xFFFF, offset)
    struct.pack_into("<III6sHHB", head, 0, xmin, 0, cmin, address, len(row), infomask | (1 if nulls else 0), hoff)
    if nulls:
        for i, value in enumerate(row):
            if value is not None:
                head[23 + i // 8] |= 1 << (i % 8)
    return bytes(head + data)


def heap_page(
    kinds: list[str], rows: list[list[Value]], *, block: int = 0, xmin: int = 2, cmin: int = 0
) -> tuple[bytes, int]:
    """heap_multi_insert on one page, which it fills to the last row that fits"""
    page = Page(flags=0x0004)
    for n, row in enumerate(rows):
        item = heap_tuple(kinds, row, block, n + 1, xmin, cmin)
        if page.room() < aligned(len(item)):
            return page.bytes(), n
        page.add(item)
    return page.bytes(), len(rows)


@dataclass
class _Level:
    """BTPageState"""

    number: int
    block: int
    page: Page
    low: bytes
    before: int = 0


class BTree:
    """nbtsort.c, for int keys 1, 2, …: _bt_load, _bt_buildadd, _bt_uppershutdown"""

    def __init__(self, rows: int, width: int, on_page: int) -> None:
        self.width = width
        self.size = aligned(8 + width)
        self.allocated = 1
        self.done: dict[int, bytes] = {}
        self.levels: list[_Level] = []
        for row in range(rows):
            tid = struct.pack("<HHH", row // on_page >> 16, row // on_page & 0xFFFF, row % on_page + 1)
            self.add(0, tid + struct.pack("<H", self.size) + self.key(row + 1))
        self.finish()

    def key(self, value: int) -> bytes:
        return value.to_bytes(self.width, "little").ljust(self.size - 8, b"\0")

    def new(self, number: int) -> None:
        page = Page(special=16)
        page.pointers.append((0, 0))
        # The low key of a level's first page is minus infinity.
        self.levels.append(_Level(number, self.take(), page, struct.pack("<HHHH", 0, 0, 0, 8 | 0x2000)))

    def take(self) -> int:
        self.allocated += 1
        return self.allocated - 1

    def add(self, number: int, item: bytes) -> None:
        if number == len(self.levels):
            self.new(number)
        level = self.levels[number]
        leaf = number == 0
        full = PAGE * (100 - (90 if leaf else 70)) // 100
        entries = len(level.page.pointers) - 1
        room = level.page.room()
        if room < len(item) + (8 if leaf else 0) or (room < full and entries > 1):
            self.split(level, leaf)
        if not leaf and len(level.page.pointers) == 1:
            item = item[:4] + struct.pack("<HH", 0, 8 | 0x2000)
        level.page.add(item)

    def split(self, level: _Level, leaf: bool) -> None:
        old, block = level.page, level.block
        offset, length = old.pointers.pop()
        last = bytes(old.body[offset : offset + length])
        if leaf:
            # _bt_truncate keeps the one attribute and the block of the row's address.
            last = last[:4] + struct.pack("<HH", 1, length | 0x2000) + last[8:]
            original = bytes(old.body[offset : offset + length])
            old.body[offset : offset + length] = last
        else:
            original = last
        old.pointers[0] = (offset, length)
        fresh = Page(special=16)
        fresh.pointers.append((0, 0))
        following = self.take()
        first = original if leaf else original[:4] + struct.pack("<HH", 0, 8 | 0x2000)
        fresh.add(first)
        low, level.low = level.low, last
        if level.number + 1 == len(self.levels):
            self.new(level.number + 1)
        self.add(level.number + 1, struct.pack("<HH", block >> 16, block & 0xFFFF) + low[4:])
        self.write(block, old, level.before, following, level.number, 1 if leaf else 0)
        level.page, level.block, level.before = fresh, following, block

    def finish(self) -> None:
        root, number = 0, 0
        while number < len(self.levels):
            level = self.levels[number]
            top = number + 1 == len(self.levels)
            if top:
                root = level.block
            else:
                self.add(number + 1, struct.pack("<HH", level.block >> 16, level.block & 0xFFFF) + level.low[4:])
            # _bt_slideleft leaves a copy of the last line pointer behind the last.
            stale = level.page.pointers[-1]
            level.page.pointers.pop(0)
            flags = (1 if number == 0 else 0) | (2 if top else 0)
            self.write(level.block, level.page, level.before, 0, number, flags, stale)
            number += 1
        top_level = max(0, len(self.levels) - 1)
        meta = Page(special=16)
        struct.pack_into("<6I", meta.body, 24, 0x053162, 4, root, top_level, root, top_level)
        struct.pack_into("<d?", meta.body, 56, -1.0, True)
        struct.pack_into("<IIIHH", meta.body, PAGE - 16, 0, 0, 0, 8, 0)
        page = bytearray(meta.bytes())
        struct.pack_into("<H", page, 12, 24 + 48)
        self.done[0] = bytes(page)

    def write(
        self,
        block: int,
        page: Page,
        before: int,
        after: int,
        level: int,
        flags: int,
        stale: tuple[int, int] | None = None,
    ) -> None:
        struct.pack_into("<IIIHH", page.body, PAGE - 16, before, after, level, flags, 0)
        if stale is not None:
            struct.pack_into("<I", page.body, 24 + 4 * len(page.pointers), stale[0] | 1 << 15 | stale[1] << 17)
        self.done[block] = page.bytes()

    def bytes(self) -> bytes:
        return b"".join(self.done[i] for i in range(self.allocated))
