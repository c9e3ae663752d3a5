"""Products of databases as protocols: what a run needs of a database and of its product, whatever it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from pgdyno import _core
from pgdyno.message import Message, Text

#: Whose SQL a server speaks; also the name of the product.
Dialect = Literal["postgresql", "mysql"]


class Database(Protocol):
    """A database that can be connected to; its password is never shown."""

    @property
    def dialect(self) -> Dialect:
        """Name of its SQL dialect."""

    @property
    def host(self) -> str:
        """Host name, address, or the path of a socket."""

    @property
    def port(self) -> int:
        """Port of TCP."""

    @property
    def user(self) -> str:
        """Account of the sessions."""

    @property
    def dbname(self) -> str:
        """Name of the database."""

    @property
    def options(self) -> dict[str, str]:
        """Other parameters of a connection."""

    @property
    def server_version(self) -> int:
        """Version as PostgreSQL numbers it; 0 if it is not known, or another product's."""

    @property
    def where(self) -> Message:
        """Server and database, for messages."""

    @property
    def is_local(self) -> bool:
        """Return True if the address belongs to this machine."""

    def core_config(self) -> _core.ConnConfig | _core.MySqlConfig:
        """Return the parameters for the native module."""


class Product(Protocol):
    """Operations of a run on the running servers of a product."""

    def describe(self, target: Any) -> tuple[dict[str, Any], list[Text]]:
        """Return the server facts for a manifest, and a message for each that cannot be read. Raise TargetError."""

    def sizes(self, target: Any, relations: Sequence[str]) -> dict[str, int]:
        """Return the bytes of tables with their indexes. Raise TargetError."""

    def counters(self, target: Any, record: Sequence[str]) -> tuple[dict[str, float], list[Text]]:
        """Return the server's counters as they stand, and why some could not be read."""
