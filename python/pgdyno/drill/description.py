"""File that describes a cluster which another tool manages: its members, and the commands that break it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, field_validator

from pgdyno import conninfo as conninfos
from pgdyno import files
from pgdyno.errors import SpecError, msg
from pgdyno.message import listed
from pgdyno.spec.load import describe, mistakes
from pgdyno.spec.values import Name, Strict


class Description(Strict):
    """A cluster, and how it is broken: the drill's file."""

    name: Name
    #: How clients reach each member: libpq's connection strings, of one role and one database.
    members: Annotated[dict[Name, str], Field(min_length=2)]
    #: Shell commands that break it. PGDYNO_PRIMARY, PGDYNO_PRIMARY_HOST and PGDYNO_PRIMARY_PORT are of the primary,
    #: PGDYNO_STANDBYS the names of the others.
    faults: Annotated[dict[Name, str], Field(min_length=1)]
    #: A shell command that puts right what was broken, where the tool does not by itself.
    recover: str = ""
    #: Seconds that the tool may take to promote another member; without a promotion the round ends after that time.
    failover_s: Annotated[float, Field(ge=0, le=86_400)] = 45.0
    #: How long a command may take, clients may wait until they are served again, and the others until they follow.
    command_s: Annotated[float, Field(gt=0, le=86_400)] = 60.0
    served_s: Annotated[float, Field(gt=0, le=86_400)] = 120.0
    whole_s: Annotated[float, Field(gt=0, le=86_400)] = 300.0

    @field_validator("members")
    @classmethod
    def _no_password(cls, members: dict[str, str]) -> dict[str, str]:
        for name, text in members.items():
            if conninfos.holds_secret(text):
                raise ValueError(f"{name}: a password does not belong into a file: use ~/.pgpass or PGPASSWORD")
        return members


def read(path: Path) -> Description:
    """Read the drill's file.

    Raise SpecError if it cannot be read or is not valid.
    """
    text = ""
    try:
        text = files.read_text(path)
        return Description.model_validate(tomllib.loads(text))
    except ValidationError as e:
        # A value may hold a password.
        keys = list(Description.model_fields)
        lines = [describe(text, str(path), m, keys, shows_value=False) for m in mistakes(e)]
        raise SpecError(listed(lines, "line"), msg("remedy-docs-guide-failover-md-shows")) from e
    except (OSError, ValueError) as e:
        raise SpecError(
            msg("error-file-reason", path=path, reason=e),
            msg("remedy-name-folder-pgdyno-cluster-or"),
        ) from e
