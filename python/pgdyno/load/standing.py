"""A table that exists where a dataset is to be."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.load.dataset import KINDS, Mark


@dataclass(frozen=True)
class Table:
    """A table that stands in a dataset's place, as it was when we looked."""

    oid: int
    name: str
    #: As pg_class has it: "r", "p" and so on.
    kind: str
    #: Its name as SQL takes it, with its schema.
    sql: str
    #: With indexes and the like.
    bytes: int
    has_rows: bool
    #: What its comment says; None where that is no mark of pgdyno's.
    mark: Mark | None
    #: It is in the schema where we looked.
    is_here: bool = False

    @property
    def shown(self) -> str:
        """Its name for people: without the schema where we looked."""
        return self.sql.rpartition(".")[2] if self.is_here and '"' not in self.sql else self.sql

    @property
    def is_ours(self) -> bool:
        """Return True if pgdyno created the table.

        Its mark was written on this table and on no other. It can also be a table of the dataset in the mark.
        """
        if self.mark is None or self.kind not in ("r", "p") or not self.mark.is_of(self.name, self.oid):
            return False
        kind = KINDS.get(self.mark.name.split(" ")[0])
        return kind is not None and kind.tables.fullmatch(self.name) is not None

    @property
    def is_usable(self) -> bool:
        """Return True if the mark describes the table's content.

        This includes tables from a dump, and tables from an old version of pgdyno.
        """
        return self.mark is not None and self.mark.table in ("", self.name)
