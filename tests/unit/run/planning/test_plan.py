"""From an experiment to its trials; --shrink; what cannot go together is said."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgdyno.cli import shrink
from pgdyno.cli.overrides import Overrides
from pgdyno.cluster import limits
from pgdyno.errors import PgdynoError, SpecError, UsageError
from pgdyno.load.dataset import Dataset
from pgdyno.run.planning import matrix, resume
from pgdyno.run.planning.options import Options
from pgdyno.run.planning.prepared import prepare
from pgdyno.run.sites.servers import Servers
from pgdyno.run.sites.sizes import DatasetSizes
from pgdyno.spec import load
from pgdyno.spec.experiment import Experiment
from pgdyno.spec.values import size_bytes
from pgdyno.store import manifest, rundir, trials
from pgdyno.store.manifest import Change
from pgdyno.stream.stream import RunStream

from tests.support import plans, synthetic
from tests.support.cli import pgdyno
from tests.support.mistakes import mistakes
from tests.support.tells import telling, tells

HEAD = 'name = "x"\ntitle = "X"\n[workloads.a]\nscripts = [{ builtin = "select-only" }]\n'


def parsed(more: str) -> Experiment:
    return load.parse(HEAD + more, "x.toml")


def labels(e: Experiment) -> list[str]:
    return [t.plan.slug for t in plans.trials(e)]


def test_every_axis_multiplies_and_is_named() -> None:
    e = parsed(
        "[targets.one]\n[targets.two]\n[datasets.small]\nscale = 1\n[datasets.large]\nscale = 2\n"
        '[axes]\nclients = [1, 2]\nhot_set = [0.5, 1.0]\nprotocol = ["simple", "prepared"]\nrate = [10, 20]\n'
        'version = ["17", "18"]\nsettings = { jit = [true, false] }\nvariables = { n = [1, 2, 3] }\n[run]\nrepetitions = 2'
    )
    every = plans.trials(e)
    # targets, versions, datasets, settings, hot sets, clients, protocols, rates, variables, repetitions
    assert len(every) == 2**8 * 3 * 2
    names = ["target", "dataset", "version", "protocol", "rate", "jit", "n"]
    assert list(every[0].plan.varied) == names
    assert len({t.plan.key for t in every}) == len(every) // 2
    assert len({t.plan.folder for t in every}) == len(every)
    assert [t.plan.number for t in every] == list(range(1, len(every) + 1))


def test_several_matrices_are_one_experiment() -> None:
    e = parsed(
        '[workloads.b]\nscripts = [{ text = "SELECT 1;" }]\n[[axes]]\nworkload = ["a"]\nclients = [1]\n'
        '[[axes]]\nworkload = ["b"]\nclients = [2, 3]\n[[axes]]\nworkload = ["a"]\nclients = [1]\n[run]\nrepetitions = 1'
    )
    assert sorted((t.plan.workload, t.plan.clients) for t in plans.trials(e)) == [("a", 1), ("b", 2), ("b", 3)]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("interleaved", [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3)]),
        ("written", [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]),
    ],
)
def test_orders(order: str, expected: list[tuple[int, int]]) -> None:
    e = parsed(f'[axes]\nclients = [1, 2]\n[run]\nrepetitions = 3\norder = "{order}"')
    assert [(t.plan.clients, t.plan.repetition) for t in plans.trials(e)] == expected


def test_datasets_of_one_remote_database_come_one_after_the_other() -> None:
    e = parsed(
        '[targets.db]\nconninfo = "host=db1"\n[datasets.s]\nscale = 1\n[datasets.l]\nscale = 2\n'
        "[axes]\nclients = [1, 2, 3]\n[run]\nrepetitions = 3"
    )
    seen = [t.configuration.place.dataset for t in plans.trials(e)]
    assert seen == ["s"] * 9 + ["l"] * 9
    private = parsed("[datasets.s]\nscale = 1\n[datasets.l]\nscale = 2\n[axes]\nclients = [1, 2, 3]")
    mixed = [t.configuration.place.dataset for t in plans.trials(private)]
    assert mixed != sorted(mixed, reverse=True), "each has a server of its own, so their order may be random"


@pytest.mark.parametrize(
    ("more", "key", "id"),
    [
        ('[axes]\ntarget = ["no"]', "axes.target", "spec-not-among"),
        ('[axes]\ndataset = ["no"]', "axes.dataset", "spec-not-among"),
        ("[dataset]\n[datasets.a]", "the file", "spec-either"),
        ('[targets.t]\nconninfo = "host=x"\nversion = "17"', "targets.t.version", "spec-private-only"),
        ('[targets.t]\nconninfo = "host=x password=secret"', "targets.t", "spec-password"),
        ('[targets.t]\nconninfo = "postgresql://me:secret@x/db"', "targets.t", "spec-password"),
        ('[targets.t]\nconninfo = "host=x"\n[axes]\nversion = ["17"]', "axes.version", "spec-private-only"),
        ('[targets.t]\nfolder = "/a"\nfile_system = { type = "xfs" }', "targets.t", "spec-either"),
        ('[targets.t]\nmemory = "lots"', "targets.t.memory", "spec-pattern"),
        ('[dataset]\nindex = "btree"', "dataset", "spec-of-kinds"),
        ("[axes]\nclients = []", "axes.clients", "spec-empty-axis"),
        ("[[axes]]\nclients = [0]", "axes, item 1, clients, item 1", "spec-at-least"),
        ("[axes.variables]\nscale = [1, 2]", "axes", "spec-variable-name"),
        ("[axes.variables]\nrange = [1]", "axes", "spec-variable-name"),
        ("[axes.variables]\na-b = [1]", "axes.variables.a-b.[key]", "spec-pattern"),
        ("[axes]\nvariables = { jit = [1] }\nsettings = { jit = [true] }", "axes", "spec-variable-name"),
        ("[axes.settings]\njit = []", "axes.settings.jit", "spec-empty-axis"),
        ('[run]\nwarmup_s = "soon"', "run.warmup_s", "spec-number"),
        ('[run]\norder = "backwards"', "run.order", "spec-one-of"),
        ('[storage]\nsize = "10"', "storage.size", "spec-pattern"),
        ('[targets.t]\ntablespaces = { pg_fast = "/tmp" }', "targets.t.tablespaces.pg_fast.[key]", "spec-reserved"),
        ('[targets.t]\ncluster = ""', "targets.t.cluster", "spec-too-short"),
        ('[targets.a]\ncluster = "/x"\ncpus = 1\n[targets.b]\ncluster = "/x"', "the file", "spec-same-cluster"),
    ],
)
def test_what_cannot_be_is_said(more: str, key: str, id: str) -> None:
    with pytest.raises(SpecError) as e:
        parsed(more)
    assert mistakes(e.value).get(key) == id, mistakes(e.value)


def test_passwords_are_not_repeated_in_messages() -> None:
    with pytest.raises(SpecError) as e:
        parsed('[targets.t]\nconninfo = "host=x password=hunter2"')
    assert "hunter2" not in str(e.value)


# ---------------------------------------------------------------- shrink


def shrunk(e: Experiment, k: float, memory_bytes: int) -> tuple[Experiment, list[Change]]:
    data = e.model_dump()
    changes = shrink.shrink(data, k, 2, memory_bytes)
    return Experiment.model_validate(data), changes


def test_shrinking_divides_and_says_so() -> None:
    e, _, _ = load.read("essd-100b")
    small, changes = shrunk(e, 10_000, 16 << 30)
    assert small.all_datasets["tpcb"].scale == 100 and small.all_datasets["tpcc"].scale == 1
    assert small.run.duration_s == 2 and small.matrices[0].clients == [8] and small.matrices[0].hot_set == e.matrices[0].hot_set  # fmt: skip
    assert Change(what="scale", of="tpcb", before="1,000,000", after="100") in changes
    assert Change(what="axis", of="clients", before="64", after="8") in changes
    assert small.run.interval_s <= small.run.duration_s / 8


def test_instances_become_parts_of_this_machine() -> None:
    e, _, _ = load.read("cloud-matrix")
    small, changes = shrunk(e, 1000, 16 << 30)
    cpus = [t.cpus for t in small.targets.values()]
    assert max(c for c in cpus if c) == 2 and min(c for c in cpus if c) >= 0.25
    assert all(size_bytes(t.memory or "1GB") <= 8 << 30 for t in small.targets.values())
    assert Change(what="cpus", of="88c710g", before="88", after="2") in changes


@given(st.floats(1, 1e7))
@settings(max_examples=30, deadline=None)
def test_everything_shrinks_to_something_valid(k: float) -> None:
    for name in load.names():
        e, _, _ = load.read(name)
        small, _ = shrunk(e, k, 8 << 30)
        assert plans.trials(small)


def test_an_instance_that_does_not_fit_is_refused() -> None:
    e = parsed('[targets.huge]\ncpus = 4096\nmemory = "999TB"')
    plan = plans.plan_of(e)
    with Servers(plan, RunStream()) as servers, pytest.raises(PgdynoError, match="smaller"):
        servers.reach(plan.configurations[0])


def test_the_command_line_wins_in_every_matrix() -> None:
    e, _, _ = load.read("pk-oltp")
    changed, _ = Overrides(run={"duration_s": 3.0}, axes={"clients": [5]}).apply(e)
    assert {c.clients for c in plans.configurations(changed)} == {5} and changed.run.duration_s == 3
    with pytest.raises(SpecError, match=r"--clients: .*at least 1"):
        Overrides(axes={"clients": [0]}).apply(e)
    with telling(SpecError, "error-scale-but-several-datasets"):
        Overrides(scale=5).apply(load.read("iot-brin")[0])
    # An axis that only some matrices can have is theirs.
    replicated, _ = Overrides(fixed=("round_trip_ms=0.5",)).apply(load.read("replication-cost")[0])
    assert [m.round_trip_ms for m in replicated.matrices] == [[], [0.5], [0.5]]
    with telling(SpecError, "spec-round-trip"):
        Overrides(fixed=("round_trip_ms=0.5",)).apply(e)


def test_the_command_line_is_validated_once_and_the_plan_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    validated, computed = list[str](), list[int]()
    validate, every = Experiment.model_validate, matrix.configurations
    monkeypatch.setattr(Experiment, "model_validate", lambda data: validated.append("") or validate(data))
    monkeypatch.setattr(matrix, "configurations", lambda e, cores: computed.append(cores) or every(e, cores))
    e, _, _ = load.read("quick")
    validated.clear()
    changed, _ = Overrides(run={"duration_s": 3.0}, shrink=2.0, varied=("jit=on,off",)).apply(e)
    plan = plans.plan_of(changed, Options(embedded=True))
    with Servers(plan, RunStream()):
        pass
    assert (len(validated), len(computed)) == (1, 1)
    assert plan.most_clients == max(c.clients for c in plan.configurations)


def test_a_plan_of_what_is_left_keeps_the_numbers() -> None:
    plan = plans.plan_of(parsed('[axes]\nclients = [1, 2, 3]\n[run]\nrepetitions = 2\norder = "written"'))
    left = plan.only(lambda t: t.plan.number > 4)
    assert [t.plan.number for t in left.trials] == [5, 6] and [c.clients for c in left.configurations] == [3]
    assert left.most_clients == 3 and not left.varied


# ---------------------------------------------------------------- resume


def test_a_run_is_continued_where_it_stopped(tmp_path: Path) -> None:
    e = parsed("[axes]\nclients = [1, 2]\n[run]\nrepetitions = 2")
    every = plans.trials(e)
    more: dict[str, Any] = {
        "experiment": e.model_dump(mode="json"), "scripts": {"a": [["a", "SELECT 1;", 1]]}, "cores": 2
    }  # fmt: skip
    run = synthetic.make_run(tmp_path, [t.plan for t in every[:3]], lambda *_: 100.0, manifest=more)
    # The third was being measured when everything ended.
    broken = run / "trials" / every[2].plan.folder / "trial.json"
    broken.write_text(broken.read_text().replace('"finished"', '"running"'))
    prepared = prepare(str(run), lambda e: (e, []), tmp_path)
    assert prepared.experiment == e and prepared.scripts == {"a": [("a", "SELECT 1;", 1)]}
    assert resume.finished(run) == [t.plan for t in every[:2]]
    again = rundir.RunDirectory.resume(run).begin_trial(every[2].plan, {})
    assert again.folder.exists() and (run / "broken" / f"{every[2].plan.folder}.1" / "trial.json").exists()
    assert [t.state for t in trials.read_records(run)] == ["finished", "finished", "interrupted"]


def test_what_cannot_be_continued_is_said(tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path, synthetic.plans([1], 1), lambda *_: 1.0)
    with pytest.raises(UsageError, match="cannot be continued"):
        prepare(str(run), lambda e: (e, []), tmp_path)


def test_a_run_is_continued_on_the_server_that_it_was_made_on(tmp_path: Path) -> None:
    facts: dict[str, Any] = {
        "target": {"host": "it's", "port": 1, "user": "me", "dbname": "a b"},
        "reached": {"pg_bin": None, "options": {"sslmode": "verify-full"}}, "managed": False, "experiment": {},
    }  # fmt: skip
    run = synthetic.make_run(tmp_path, synthetic.plans([1], 1), lambda *_: 1.0, manifest=facts)
    found = resume.servers(run, Options())
    assert found.target == r"sslmode='verify-full' host='it\'s' port='1' user='me' dbname='a b'"
    with telling(UsageError, "error-was-made-running-server"):
        resume.servers(run, Options(embedded=True))
    ours = synthetic.make_run(
        tmp_path, synthetic.plans([1], 1), lambda *_: 1.0, name="ours",
        manifest={**facts, "managed": True, "reached": {"pg_bin": "/x/bin"}},
    )  # fmt: skip
    # Whatever PGHOST says.
    assert resume.servers(ours, Options()) == Options(embedded=True, pg_bin=Path("/x/bin"))
    with telling(UsageError, "error-was-made-private-server"):
        resume.servers(ours, Options(target="host=prod"))
    here = {"host": "a", "port": 1, "dbname": "d"}
    before = manifest.Place.model_validate({"server": {"version": "15"}, "reached": here})
    resume.refuse_another_server(before, "15", here)
    with pytest.raises(PgdynoError, match="made on 15, and this is 18"):
        resume.refuse_another_server(before, "18", here)
    with pytest.raises(PgdynoError, match='made on database "d"'):
        resume.refuse_another_server(before, "15", {**here, "dbname": "e"})


def test_options_do_not_change_a_run_that_is_continued(tmp_path: Path) -> None:
    e = parsed("[axes]\nclients = [1]")
    more = {"experiment": e.model_dump(mode="json"), "scripts": {"a": [["a", "SELECT 1;", 1]]}, "cores": 2}
    run = synthetic.make_run(tmp_path, [t.plan for t in plans.trials(e)], lambda *_: 1.0, manifest=more)
    assert prepare(str(run), Overrides().apply, tmp_path).resumed == run
    for scale, run_options, shrink_by in ((7, {}, None), (None, {"duration_s": 1.0}, None), (None, {}, 100.0)):
        with telling(UsageError, "error-run-continued-keeps-scale-durations"):
            prepare(str(run), Overrides(scale=scale, run=run_options, shrink=shrink_by).apply, tmp_path)
    search = synthetic.make_run(tmp_path, synthetic.plans([1], 1), lambda *_: 1.0, manifest={**more, "capacity": {}})
    with telling(UsageError, "error-search-for-capacity-which-cannot"):
        prepare(str(search), lambda e: (e, []), tmp_path)


def test_a_run_that_is_going_on_is_not_continued(tmp_path: Path) -> None:
    going = rundir.RunDirectory.create(tmp_path, "x", "")
    going.update_manifest(name="x")
    with telling(PgdynoError, "error-being-written-another-pgdyno"):
        rundir.RunDirectory.resume(going.path)


@pytest.mark.parametrize(
    ("more", "options", "words"),
    [
        ('[axes]\nversion = ["17"]', Options(target="host=x"), "axes.version needs a private server"),
        (
            "[axes.settings]\njit = [true]",
            Options(target="host=x"),
            "axes.settings (--vary or --set jit) needs a private server",
        ),
        ("[run]\nbetween = { restart = true }", Options(target="host=x"), "run.between.restart needs a private"),
        ('[axes]\nversion = ["17"]', Options(pg_bin=Path("/x")), "--pg-bin, but the experiment names versions"),
        ('[targets.t]\nfile_system = { type = "xfs" }', Options(keep=True), "--keep, but targets.t has a file system"),
        ("[targets.t]\n", Options(target="host=x"), "--target, but the experiment names its own targets"),
        ("", Options(target="host=x", embedded=True), "--embedded and --target contradict each other"),
        ("", Options(target="host=x", keep=True), "--keep keeps a private server"),
        ("", Options(pg_bin=Path("/nowhere")), "--pg-bin: there is no program postgres in /nowhere"),
    ],
)
def test_what_cannot_go_with_a_server_is_said_before_anything_is_touched(
    more: str, options: Options, words: str
) -> None:
    e = parsed(more)
    with pytest.raises(SpecError, match=re.escape(words)):
        Servers(plans.plan_of(e, options), RunStream())


def test_groups_of_a_pgdyno_that_lives_are_not_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_ROOT", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    alive, dead = tmp_path / "cpu" / f"pgdyno-{os.getpid()}-aa", tmp_path / "cpu" / "pgdyno-2147483646-bb"
    for folder in (alive, dead):
        folder.mkdir(parents=True)
    limits.sweep()
    assert alive.exists() and not dead.exists()


def test_an_index_of_its_own_is_another_dataset() -> None:
    names = {Dataset("feed", 10, index=i).name for i in ("brin", "btree", "none")}
    assert len(names) == 3
    assert Dataset("feed", 10, index="none").indexes() == []
    assert "using btree (crt_time)" in Dataset("feed", 10, index="btree").indexes()[0]


def test_a_variable_that_one_matrix_does_not_set_is_missed_before_anything_runs(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    file.write_text(
        'name = "e"\ntitle = "e"\n[workloads.w]\nscripts = [{ text = "select :n" }]\n'
        "[[axes]]\nclients = [1]\nvariables = { n = [1, 2] }\n[[axes]]\nclients = [2]\n"
    )
    with pytest.raises(SpecError, match=r"(?s):n.*number 2, which sets"):
        prepare(str(file), lambda e: (e, []), tmp_path)


def test_one_cluster_by_two_names_is_one_cluster(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to("mine")
    more = f'[targets.a]\ncluster = "{tmp_path}/mine"\ncpus = 1\n[targets.b]\ncluster = "{tmp_path}/link"'
    with telling(SpecError, "spec-same-cluster"):
        parsed(more)
    with pytest.raises(SpecError, match=r"targets\.a\.folder"):
        parsed('[targets.a]\nfolder = "~nosuchuser/x"')


def test_asking_a_size_starts_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only `survey` asks the targets; `plan` never does."""
    asked: list[str] = []
    monkeypatch.setattr(DatasetSizes, "_sizes_there", lambda self, name: asked.append(name) or {})
    (tmp_path / "mine").mkdir()
    e = parsed(f'[targets.a]\ncluster = "{tmp_path}/mine"')
    servers = Servers(plans.plan_of(e, Options()), RunStream())
    place = plans.configurations(e)[0].place
    assert servers.sizes.dataset_of(place, folder=None).size > 0 and asked == []
    servers.survey()
    assert asked == [place.dataset]


def test_plan_takes_whatever_run_takes() -> None:
    from pgdyno.cli import main
    from typer.main import get_command

    commands = get_command(main.app).commands  # type: ignore[attr-defined]
    run, planned = ({p.name for p in commands[name].params} for name in ("run", "plan"))
    assert run == planned


@pytest.mark.slow
def test_what_is_too_short_for_a_duet_is_said_with_what_would_do() -> None:
    words = ("plan", "quick", "--embedded", "--vary", "synchronous_commit=on,off")
    short = pgdyno(*words, "--duration", "3")
    assert short.code == 0 and tells(short.err, "run-too-short", seconds="3"), short.err
    advised = re.search(r"--duration (\d+) makes it a duet", short.err)
    assert advised and "order duet" in " ".join(pgdyno(*words, "--duration", advised[1]).out.split())
    assert "order random" in " ".join(short.out.split()) and tells(short.out, "plan-starts", n=5)
    # Nobody who wants trials one by one is told.
    assert "too short" not in pgdyno(*words, "--duration", "3", "--order", "random").err


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("plan", "essd-100b", "--shrink", 10_000), marks=pytest.mark.slow),
        ("experiments",),
        ("load", "tpcc", "--warehouses", 2, "--dry-run", "--disk-mbps", 100),
    ],
)
def test_plans_are_written_in_chinese(words: tuple[object, ...]) -> None:
    done = pgdyno(*words, "--lang", "zh")
    assert done.code == 0 and re.search("[\u3400-\u9fff]", done.out), done
    # Names of datasets, axes and options may stand beside each other; sentences may not.
    assert re.findall(r"[a-z]+ [a-z]+ [a-z]+ [a-z]+", done.out) == []
    assert pgdyno(*words).out != done.out
