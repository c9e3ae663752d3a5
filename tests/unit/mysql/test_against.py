"""A second server beside PostgreSQL: equal promises by default, and words where they are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from pgdyno import i18n
from pgdyno.cli import against
from pgdyno.errors import PgdynoError, UsageError
from pgdyno.message import Message
from pgdyno.mysql.settings import equal_promises, is_ours, sized
from pgdyno.report import promises
from pgdyno.run.planning.dialects import dialects_of
from pgdyno.run.planning.matrix import configurations
from pgdyno.run.planning.options import Options
from pgdyno.run.sites.contradictions import Wish, refuse_contradictions
from pgdyno.spec.experiment import Experiment, Target
from pgdyno.spec.load import read
from pgdyno.store.manifest import Manifest, Place, Server
from pydantic import ValidationError

from tests.support.tells import telling

_WAITS = {"innodb_flush_log_at_trx_commit": "1", "log_bin": "OFF", "innodb_doublewrite": "ON"}
_MARIADB = {**_WAITS, "transaction_isolation": "READ-COMMITTED"}


def _with(experiment: Experiment, server: str) -> Experiment:
    data = experiment.model_dump()
    against.add(data, experiment, server)
    return Experiment.model_validate(data)


def test_the_second_server_repeats_all_trials_with_the_promises_of_the_first() -> None:
    first = read("pk-oltp")[0]
    both = _with(first, "mariadb")
    assert len(configurations(both, 2)) == 2 * len(configurations(first, 2))
    assert both.targets["mariadb"].product == "mariadb"
    # Its PostgreSQL does not wait for the disk either.
    assert both.targets["mariadb"].settings == {"innodb_flush_log_at_trx_commit": "0"}
    assert dialects_of(both, None) == {"postgresql", "mysql"}


def test_an_experiment_without_targets_gets_both() -> None:
    both = _with(read("quick")[0], "mariadb")
    assert list(both.targets) == ["postgresql", "mariadb"]
    assert _with(read("quick")[0], "mysql://u@h/d").targets["against"].conninfo == "mysql://u@h/d"


@pytest.mark.parametrize("server", ["mongodb", "", "mysql"])
def test_an_unknown_server_is_refused(server: str) -> None:
    with telling(UsageError, "error-against-unknown"):
        _with(read("quick")[0], server)


def test_several_targets_are_refused() -> None:
    with telling(UsageError, "error-against-several-targets"):
        _with(read("cloud-matrix")[0], "mariadb")


@pytest.mark.parametrize(
    "key", [{"version": "17"}, {"conninfo": "host=x"}, {"standbys": 1}, {"setup": ["select 1"]}, {"cluster": "/x"}]
)
def test_what_only_postgresql_has_is_refused(key: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(key))):
        Target(product="mariadb", **key)


def test_a_setting_of_one_product_does_not_vary_over_two() -> None:
    def wish(settings: dict[str, Any]) -> Wish:
        data = _with(read("quick")[0], "mariadb").model_dump()
        data["axes"]["settings"] = settings
        experiment = Experiment.model_validate(data)
        return Wish(experiment, Options(), configurations(experiment, 2))

    refuse_contradictions(wish({"full_page_writes": [True, False], "synchronous_commit": ["on", "off"]}))
    with pytest.raises(PgdynoError, match="work_mem"):
        refuse_contradictions(wish({"work_mem": ["4MB"]}))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"synchronous_commit": False}, {"innodb_flush_log_at_trx_commit": "0"}),
        ({"synchronous_commit": "remote_apply"}, {"innodb_flush_log_at_trx_commit": "1"}),
        ({"full_page_writes": "OFF"}, {"innodb_doublewrite": "OFF"}),
        ({"Fsync": True, "work_mem": "4MB"}, {"innodb_flush_method": "O_DIRECT"}),
        ({"fsync": "off"}, {"innodb_flush_method": "nosync"}),
    ],
)
def test_promises_have_their_equals(given: dict[str, Any], wanted: dict[str, str]) -> None:
    assert equal_promises(given) == wanted


def test_by_default_both_products_promise_the_same() -> None:
    ours = {s.name: s.value for s in sized(8 << 30, 4)}
    assert ours["innodb_buffer_pool_size"] == "4096M"
    assert [m.id for m in _said({}, {**ours, "log_bin": "OFF"})] == ["answer-equal-promises"]


def _said(postgresql: dict[str, str], mariadb: dict[str, str]) -> list[Message]:
    def place(target: str, product: str, settings: dict[str, str]) -> Place:
        values = {name: {"value": value} for name, value in settings.items()}
        return Place(target=target, server=Server.model_validate({"product": product, "settings": values}))

    places = {"a": place("pg", "", postgresql), "b": place("maria", "MariaDB", mariadb)}

    class Run:
        class data:  # noqa: N801
            manifest = Manifest.model_validate({"schema": 1, "places": places})
            trials: ClassVar[list[object]] = []

    found = promises.sentences(Run())  # type: ignore[arg-type]
    assert all(isinstance(m, Message) for m in found)
    return [m for m in found if isinstance(m, Message)]


@pytest.mark.parametrize(
    ("postgresql", "mariadb", "what"),
    [
        ({"synchronous_commit": "off"}, {}, "on disk when it is acknowledged on maria, not on pg"),
        ({"fsync": "off"}, {}, "on disk when it is acknowledged on maria, not on pg"),
        ({}, {"innodb_flush_log_at_trx_commit": "2"}, "acknowledged on pg, not on maria"),
        ({}, {"log_bin": "ON", "sync_binlog": "0"}, "acknowledged on pg, not on maria"),
        ({}, {"innodb_flush_method": "nosync"}, "acknowledged on pg, not on maria"),
        ({"full_page_writes": "off"}, {}, "torn are repaired on maria, not on pg"),
        ({}, {"innodb_doublewrite": "OFF"}, "torn are repaired on pg, not on maria"),
        ({}, {"transaction_isolation": "REPEATABLE-READ"}, "repeatable read on maria"),
    ],
)
def test_unequal_promises_are_said(postgresql: dict[str, str], mariadb: dict[str, str], what: str) -> None:
    (said,) = _said(postgresql, {**_MARIADB, **mariadb})
    assert said.id == "answer-unequal-promises"
    assert what in i18n.text(said)


def test_equally_weak_promises_are_equal() -> None:
    weak = {**_MARIADB, "innodb_flush_log_at_trx_commit": "0", "innodb_doublewrite": "OFF"}
    (said,) = _said({"synchronous_commit": "off", "full_page_writes": "off"}, weak)
    assert said.id == "answer-equal-promises"
    assert "may lose" in i18n.text(said)


@pytest.mark.parametrize(
    "name", ["data", "sock", "loose_datadir", "innodb_data_home_dir", "init_file", "log_bin", "PORT"]
)
def test_variables_that_lead_elsewhere_are_refused(name: str) -> None:
    assert is_ours(name)
    assert not is_ours("innodb_io_capacity")


def test_what_the_first_server_has_the_second_has_too() -> None:
    data = read("quick")[0].model_dump()
    data["targets"] = {"pg": {"cpus": 2, "memory": "4GB", "folder": "/nvme"}}
    second = _with(Experiment.model_validate(data), "mariadb").targets["mariadb"]
    assert (second.cpus, second.memory, str(second.folder)) == (2, "4GB", "/nvme")
    data["targets"] = {"pg": {"standbys": 1}}
    with pytest.raises(UsageError, match="standbys"):
        _with(Experiment.model_validate(data), "mariadb")


def test_the_experiments_of_the_house_say_what_mariadb_is_given(tmp_path: Path) -> None:
    dataset = read("pk-oltp")[0].all_datasets["dataset"]
    assert dataset.setup_mysql is not None
    assert "auto_increment" in dataset.setup_mysql[0]
