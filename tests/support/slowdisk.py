"""A file whose syncs take their time, in the kernel's eyes: a loop device on it is a disk with slow flushes, which is
what dm-delay makes where a kernel has it. One file is the whole of a FUSE file system, spoken without a library.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_IN, _OUT = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ")
_INIT, _GETATTR, _SETATTR, _OPEN, _READ, _WRITE, _STATFS = 26, 3, 4, 14, 15, 16, 17
_RELEASE, _FSYNC, _FLUSH, _ACCESS, _DESTROY = 18, 20, 25, 34, 38
#: These want no answer: FORGET, INTERRUPT, BATCH_FORGET.
_UNANSWERED = {2, 36, 42}
_MOST = 1 << 20
#: Big writes, and more than 32 pages a request.
_BIG_WRITES, _MAX_PAGES = 1 << 5, 1 << 22


def why_not() -> str:
    """Why it cannot be made here; empty: it can."""
    return "" if os.geteuid() == 0 and Path("/dev/fuse").exists() else "needs root and /dev/fuse"


@contextmanager
def slow_file(backing: Path, mounted: Path, sync_s: float) -> Iterator[None]:
    """`mounted`, a file, shows what `backing` holds; each sync of it takes `sync_s` longer."""
    libc = ctypes.CDLL(None, use_errno=True)
    mounted.touch()
    with contextlib.ExitStack() as stack:
        file = os.open(backing, os.O_RDWR)
        stack.callback(os.close, file)
        fuse = os.open("/dev/fuse", os.O_RDWR)
        stack.callback(os.close, fuse)
        options = f"fd={fuse},rootmode=100000,user_id=0,group_id=0,allow_other"
        if libc.mount(b"slow", os.fsencode(mounted), b"fuse", 0, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), "cannot mount by FUSE")
        threads = [threading.Thread(target=_serve, args=(fuse, file, sync_s), daemon=True) for _ in range(4)]
        for t in threads:
            t.start()
        try:
            yield
        finally:
            libc.umount2(os.fsencode(mounted), 0)
            for t in threads:
                t.join(5)


def _serve(fuse: int, file: int, sync_s: float) -> None:
    while True:
        try:
            request = os.read(fuse, _MOST + 4096)
        except OSError as e:
            if e.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                continue
            # It was unmounted.
            return
        _, what, unique, *_ = _IN.unpack_from(request)
        if what in _UNANSWERED:
            continue
        answer, error = b"", 0
        try:
            found = _answer(what, request[_IN.size :], file, sync_s)
            answer, error = (found, 0) if found is not None else (b"", -errno.ENOSYS)
        except OSError as e:
            error = -(e.errno or errno.EIO)
        with contextlib.suppress(OSError):
            os.write(fuse, _OUT.pack(_OUT.size + len(answer), error, unique) + answer)


def _answer(what: int, body: bytes, file: int, sync_s: float) -> bytes | None:
    """None: that is not known here."""
    if what == _INIT:
        flags = struct.unpack_from("<IIII", body)[3] & (_BIG_WRITES | _MAX_PAGES)
        head = struct.pack("<IIIIHHIIHHII", 7, 31, 1 << 17, flags, 16, 12, _MOST, 1, _MOST // 4096, 0, 0, 0)
        return head.ljust(64, b"\0")
    if what in (_GETATTR, _SETATTR):
        s = os.fstat(file)
        attributes = struct.pack(
            "<QQQQQQIIIIIIIIII", 1, s.st_size, s.st_blocks, 0, 0, 0, 0, 0, 0, 0o100600, 1, 0, 0, 0, 4096, 0
        )
        return struct.pack("<QII", 3600, 0, 0) + attributes
    if what == _OPEN:
        return struct.pack("<QIi", 1, 0, 0)
    if what == _READ:
        _, offset, size = struct.unpack_from("<QQI", body)
        return os.pread(file, size, offset)
    if what == _WRITE:
        _, offset, size = struct.unpack_from("<QQI", body)
        return struct.pack("<II", os.pwrite(file, body[40 : 40 + size], offset), 0)
    if what == _STATFS:
        return struct.pack("<QQQQQIIIIIIIIII", *([1 << 20] * 3), 1, 1, 4096, 255, 4096, *([0] * 7))
    if what == _FSYNC:
        time.sleep(sync_s)
        os.fdatasync(file)
        return b""
    return b"" if what in (_RELEASE, _FLUSH, _ACCESS, _DESTROY) else None
