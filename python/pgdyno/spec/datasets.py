"""Contents of an experiment's tables: pgdyno's datasets, and datasets of users."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from pgdyno.spec.values import MistakeError, Strict, Value

#: Datasets that pgdyno makes; the others are somebody's own.
OURS = ("tpcb", "pk", "feed", "tpcc")
_PART = Annotated[float, Field(ge=0, le=1)]
_FINITE = Annotated[float, Field(allow_inf_nan=False)]
#: A table, as SQL names it or as it is spelled, with its schema where that is not the first of the search path.
TableName = Annotated[str, Field(pattern=r"^[^\x00-\x1f]+$", max_length=260)]


class Column(Strict):
    """Rule by which the values of a column are drawn.

    For a column that is not named, the catalog decides: the type, foreign keys, unique constraints.
    """

    type: Literal["serial", "integer", "number", "text", "choice", "timestamp", "date", "boolean", "uuid", "reference"]
    #: The least and the greatest: of integer and number, of timestamp and date as ISO 8601; of text its length.
    min: int | _FINITE | str | None = None
    max: int | _FINITE | str | None = None
    distribution: Literal["uniform", "zipf", "normal", "exponential"] = "uniform"
    #: Of zipf, its exponent: the larger, the more often the first values come.
    skew: Annotated[float, Field(ge=0, le=10)] = 1.0
    #: Of choice, with their weights.
    values: list[Value] = []
    weights: list[Annotated[float, Field(ge=0, allow_inf_nan=False)]] = []
    #: Of reference: "table.column", which must be a serial of the same dataset; or a column of the database, whose
    #: least and greatest bound it.
    to: str = ""
    #: Part of the rows that have none.
    nulls: _PART = 0.0
    #: Another column of the table, and how closely this one follows it: -1 to 1.
    like: str = ""
    correlation: Annotated[float, Field(ge=-1, le=1)] = 0.9

    @model_validator(mode="after")
    def _fits_its_type(self) -> Column:
        if self.type == "choice" and not self.values:
            raise MistakeError("spec-choice-values")
        if self.weights and (len(self.weights) != len(self.values) or not sum(self.weights)):
            raise MistakeError("spec-weights")
        if self.values and self.type != "choice":
            raise MistakeError("spec-values-choice")
        if (self.type == "reference") != bool(self.to):
            raise MistakeError("spec-to-reference")
        if self.to and self.to.count(".") not in (1, 2):
            raise MistakeError("spec-to-form", to=self.to)
        return self


class Fill(Strict):
    """A table that is filled with values that are drawn."""

    rows: Annotated[int, Field(ge=0, le=10**12)]
    columns: dict[str, Column] = {}


class Dataset(Strict):
    """Contents of the tables."""

    title: str = ""
    #: tpcb, pk, feed, tpcc: pgdyno's own. sql: files of SQL, and tables filled with values that are drawn. dump: what
    #: pg_dump has written. none: what the database has already, which is never changed but by the workload.
    kind: Literal["tpcb", "pk", "feed", "tpcc", "sql", "dump", "none"] = "tpcb"
    #: tpcb: pgbench's scale, 100,000 rows of pgbench_accounts each; tpcc: warehouses of each set (`warehouses` says the
    #: same); of pk and feed 1,000,000 rows in all tables; of sql
    #: what the rows of `fill` are multiplied by. "auto": what fits this machine; of sql 1.
    scale: Literal["auto"] | Annotated[int, Field(ge=1, le=1_000_000)] = "auto"
    #: Instead of a scale: rows of each table. Not for tpcb.
    rows: Annotated[int, Field(ge=0, le=10**12)] | None = None
    #: How many tables of feed; of tpcc, how many sets of its nine tables (`sets` says the same).
    tables: Annotated[int, Field(ge=1, le=10_000)] = 1
    #: Partitions of pgbench_accounts by range, of tpcc's large tables by warehouse; 0: none.
    partitions: Annotated[int, Field(ge=0, le=10_000)] = 0
    fillfactor: Annotated[int, Field(ge=10, le=100)] = 100
    unlogged: bool = False
    #: Of tpcc: what its rows are drawn from.
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 1
    #: Of tpcc: its tables refer to each other, and the server checks it.
    foreign_keys: bool = False
    #: Of tpcc: what was loaded is checked against the standard's rules; it reads all tables some times.
    check: bool = True
    #: The index on feed's time.
    index: Literal["brin", "btree", "none"] = "brin"
    tablespace: str = ""
    index_tablespace: str = ""
    #: Of tpcb: the tables are there already, whoever made them: they are used as they are, never dropped or emptied.
    adopt: bool = False
    #: Of sql, in this order: files that make the tables, with \copy of CSV or Parquet;
    files: list[str] = []
    #: tables that are filled;
    fill: dict[TableName, Fill] = {}
    #: files that run when the tables are full: indexes, constraints.
    after: list[str] = []
    #: Of dump: a file or folder of pg_dump, in any of its formats.
    dump: str = ""
    #: SQL that runs when the tables exist (functions, further tables); each must bear being repeated.
    setup: list[str] = []
    #: In place of `setup` on MariaDB and MySQL, where their SQL differs.
    setup_mysql: list[str] | None = None

    @property
    def is_own(self) -> bool:
        """Return True if the dataset is a user's own."""
        return self.kind not in OURS

    @property
    def left_open(self) -> bool:
        """Return True if pgdyno chooses the size.

        The dataset feed starts empty if no size is given, so this does not apply to it.
        """
        return self.scale == "auto" and self.rows is None and self.kind in ("tpcb", "pk", "tpcc") and not self.adopt

    @model_validator(mode="before")
    @classmethod
    def _tpcc_words(cls, given: Any) -> Any:
        """TPC-C counts warehouses, and sets of tables."""
        if not isinstance(given, dict):
            return given
        if given.get("kind") != "tpcc":
            if word := next((w for w in ("warehouses", "sets") if w in given), None):
                raise MistakeError("spec-of-kinds", name=word, kinds="tpcc")
            return given
        given = dict(given)
        for word, key in (("warehouses", "scale"), ("sets", "tables")):
            if word in given and key in given:
                raise MistakeError("spec-same-meaning", one=word, other=key)
            if word in given:
                given[key] = given.pop(word)
        return given

    @model_validator(mode="after")
    def _one_size(self) -> Dataset:
        if self.rows is not None and (self.kind not in ("pk", "feed") or self.scale != "auto"):
            raise MistakeError("spec-rows-instead")
        given = self.model_fields_set
        for names, kinds in (
            (("tables",), ("feed", "tpcc")),
            (("index",), ("feed",)),
            (("seed", "foreign_keys", "check"), ("tpcc",)),
            (("partitions",), ("tpcb", "tpcc")),
            (("adopt",), ("tpcb",)),
            (("files", "fill", "after"), ("sql",)),
            (("dump",), ("dump",)),
            (("fillfactor", "unlogged", "tablespace", "index_tablespace"), OURS),
            (("scale",), (*OURS, "sql")),
        ):
            for name in names:
                default: Any = type(self).model_fields[name].default
                if name in given and getattr(self, name) != default and self.kind not in kinds:
                    raise MistakeError("spec-of-kinds", name=name, kinds=", ".join(kinds))
        if self.kind == "sql" and not (self.files or self.setup or self.fill):
            raise MistakeError("spec-sql-files")
        if self.kind == "dump" and not self.dump:
            raise MistakeError("spec-dump-file")
        if self.adopt and (self.scale != "auto" or self.partitions or self.unlogged):
            raise MistakeError("spec-adopt")
        return self
