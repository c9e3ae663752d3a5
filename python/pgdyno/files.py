"""Files that users name: read whole, and only what can be one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

#: No experiment and no script is longer.
LONGEST = 64 << 20


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raise OSError, with the reason in `strerror`, if the file cannot be read. This includes a file that is too long,
    not UTF-8, or not regular. A pipe would block pgdyno, and a device has no end.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as f:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "it is not a regular file", str(path))
        raw = f.read(LONGEST + 1)
    if len(raw) > LONGEST:
        raise OSError(0, f"it is longer than {LONGEST >> 20} MB", str(path))
    try:
        # Editors on Windows write a mark of the byte order before the text.
        return raw.decode().removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    except UnicodeDecodeError as e:
        line = raw[: e.start].count(b"\n") + 1
        raise OSError(0, f"it is not UTF-8 (line {line})", str(path)) from e
