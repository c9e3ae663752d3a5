"""Connection strings: what is wrong with one is told, and no word of a password."""

from __future__ import annotations

import pytest
from pgdyno import conninfo
from pgdyno.errors import UsageError


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("host=db1 dbname", 'missing "=" after "dbname"'),
        ("hots=db1", 'invalid connection option "hots" (did you mean "host"?)'),
        ("host=db1 port=x", '"x" is not a number from 1 to 65535'),
        ("host=a,b port=5432,70000", '"70000" is not'),
    ],
)
def test_a_mistake_names_its_word(text: str, told: str) -> None:
    with pytest.raises(UsageError) as e:
        conninfo.read(text, named="--target")
    assert told in str(e.value) and str(e.value).startswith("--target")


@pytest.mark.parametrize(
    "text",
    [
        "host=h password=my hunter2",
        "postgresql://u:pw@h:hunter2/d",
        "postgresql://u:hunter2@h:pw/d",
        "postgresql://h/d?hunter2",
        "host=h passwd=hunter2 x",
        "alice:hunter2@db1:5432/shop",
        "alice/hunter2@db1",
        'host=h ab"hunter2"cd',
        "host=db1 password:hunter2",
        "host=db1 hunter2",
        "oauth_client_secret=my hunter2",
        "u:hunter2@h/d?sslmode=require",
        "postgresql:alice:hunter2@h/d",
        "postgresql://alice:hunter2",
    ],
)
def test_a_word_that_may_be_of_a_password_is_not_told(text: str) -> None:
    with pytest.raises(UsageError) as e:
        conninfo.read(text, named="--target")
    assert "hunter2" not in str(e.value) and ":pw" not in str(e.value)


@pytest.mark.parametrize(
    "text", ["", "host=a port=5432", "postgresql://h:5432,i:5433/d", "host=a,b port=5432,", "port=''"]
)
def test_what_libpq_takes_is_taken(text: str) -> None:
    assert isinstance(conninfo.read(text, named="--target"), dict)
