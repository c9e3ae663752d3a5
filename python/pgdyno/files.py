"""Files that users name: read whole, and only what can be one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pgdyno.errors import ReasonError
from pgdyno.message import message

#: No experiment and no script is longer.
LONGEST = 64 << 20


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raise OSError if the file cannot be opened. Raise ReasonError if it is too long, not UTF-8, or not regular. A pipe
    would block pgdyno, and a device has no end.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as f:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise ReasonError(message("why-not-regular"))
        raw = f.read(LONGEST + 1)
    if len(raw) > LONGEST:
        raise ReasonError(message("why-longer-than", mb=LONGEST >> 20))
    try:
        # Editors on Windows write a mark of the byte order before the text.
        return raw.decode().removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    except UnicodeDecodeError as e:
        line = raw[: e.start].count(b"\n") + 1
        raise ReasonError(message("why-not-utf8-line", line=line)) from e
