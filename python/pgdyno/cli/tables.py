"""Tables of the terminal."""

from __future__ import annotations

from typing import Any

import rich.table


class Table(rich.table.Table):
    """A table whose long texts are folded and never cut: a sentence in Chinese is one word to rich."""

    def add_column(self, header: Any = "", footer: Any = "", **options: Any) -> None:
        """Add a column."""
        super().add_column(header, footer, **{"overflow": "fold", **options})
