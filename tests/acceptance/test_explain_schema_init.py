"""`forebay explain`, `schema` and `init` as a person calls them."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from support.declarations import declarations, write
from support.model_lines import record_link
from support.projects import ads_project

from forebay.cli import run
from forebay.config.schema import json_schema
from forebay.config.specs.registry import installed_kinds
from forebay.executors.model_line.chain import ModelChain
from forebay.home.paths import Home


@pytest.fixture
def printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Calls a command in an empty folder; both streams."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FOREBAY_HOME", raising=False)

    def call(*arguments: str, code: int = 0) -> tuple[str, str]:
        assert run(arguments) == code
        streams = capsys.readouterr()
        return streams.out, streams.err

    return call


@pytest.fixture
def config(tmp_path: Path) -> Path:
    files = declarations()
    files["pipelines/ads.yaml"]["dataset"] |= {"timezone": "UTC"}
    write(tmp_path / "config", files)
    return tmp_path / "config"


def test_explain_as_text_and_json(config: Path, printed: Any) -> None:
    text, _ = printed("explain", "ads", "--windows", "1")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[:4] == [
        "pipeline ads: text",
        "windows 1d (UTC) from 2026-03-01 to 2026-04-01",
        "event event, user",
        "label clicked is 1",
    ]
    learns = "mixture+head, compared with stream, mixed, batch_then_stream+fnw"
    assert f"learns {learns}; minibatches of 256 rows" in lines
    assert "history parquet parquet batch 1d 1.5 0.1" in lines
    assert "steps bucketise price float 4 4" in lines
    assert "2026-02-01_2026-03-01 kafka 2026-02-01 2026-03-01" in lines
    assert "2026-03-01 parquet 2026-02-28 2026-03-01" in lines
    value = json.loads(printed("explain", "ads", "--output", "json")[0])
    variants = ["mixture+head", "stream", "mixed", "batch_then_stream+fnw"]
    assert value["paradigms"] == variants
    kinds = {"source": "kafka", "kind": "kafka", "feed": "stream"}
    numbers = {"offset": "0s", "weight": 1.0, "floor": 0.0}
    assert value["streams"][3] == {"stream": "fresh", **kinds, **numbers}
    span = {"data_from": "2026-03-03T00:00:00Z", "data_to": "2026-03-04T00:00:00Z"}
    assert value["windows"][-1] == {"window": "2026-03-03", "source": "log", "reason": "", **span}
    assert value["declaration"]["dataset"]["streams"]["history"]["offset"] == "1d"


def test_explain_shows_a_declaration_as_it_is_written(
    config: Path, printed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROWS", "128")
    file = config / "pipelines/ads.yaml"
    file.write_text(file.read_text().replace("minibatch_rows: 256", "minibatch_rows: ${ROWS}"))
    value = json.loads(printed("explain", "ads", "--output", "json")[0])
    assert value["declaration"]["train"]["minibatch_rows"] == "${ROWS}"
    assert "minibatches of 128 rows" in printed("explain", "ads")[0]


def test_explain_says_that_a_line_cannot_go_on_as_declared(tmp_path: Path, printed: Any) -> None:
    chain = ModelChain(Home(ads_project(tmp_path).home), "ads")
    record_link(chain, "2026-03-01", {"history": 1}, model_fingerprint="another")
    text, err = printed("explain", "ads")
    assert text.startswith("pipeline   ads")
    assert "sources changed since window 2026-03-01 was trained on line 'main'" in err
    assert printed("explain", "ads", "--line", "new")[1] == ""


def test_explain_of_a_bad_pipeline_lists_its_problems(config: Path, printed: Any) -> None:
    file = config / "pipelines/ads.yaml"
    file.write_text(file.read_text().replace("queue_unit", "queue_unti"))
    out, err = printed("explain", "ads", code=1)
    assert out == ""
    assert "error: pipeline 'ads' is not usable:\n" in err
    assert "(did you mean queue_unit?)" in err


def test_schema(printed: Any) -> None:
    assert json.loads(printed("schema")[0]) == json_schema(installed_kinds())
    files = declarations()
    source = json.loads(printed("schema", "--for", "source")[0])
    jsonschema.validate(files["sources/log.yaml"], source)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(files["pipelines/ads.yaml"], source)


def test_a_new_project_has_an_example_that_can_be_planned(
    tmp_path: Path, printed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, _ = printed("init", str(tmp_path / "shop"))
    assert f"written  {tmp_path}/shop/README.md" in out
    hook = yaml.safe_load((tmp_path / "shop/.pre-commit-config.yaml").read_text())
    assert hook["repos"][0]["hooks"][0]["entry"] == "forebay check"
    monkeypatch.chdir(tmp_path / "shop")
    out, _ = printed("check", "--connect")
    assert out.endswith("1 source, 1 pipeline: no problems\n")
    ends = ("--from", "2026-03-01", "--to", "2026-03-03", "--output", "json")
    cost = json.loads(printed("explain", "example", *ends)[0])
    assert cost["rows"] == {"example": 6_000}
    assert {each["does"] for each in cost["windows"]} == {"train"}
    due = json.loads(printed("plan", "example", "--output", "json")[0])
    assert [row["window"] for row in due] == ["2026-03-01", "2026-03-02", "2026-03-03"]


def test_editors_find_the_schema_of_each_file(tmp_path: Path, printed: Any) -> None:
    printed("init", str(tmp_path))
    for file in ("sources/example.yaml", "pipelines/example.yaml"):
        path = tmp_path / "config" / file
        first, _ = path.read_text().split("\n", 1)
        schema = path.parent / first.removeprefix("# yaml-language-server: $schema=")
        # As editors read it: dates are texts.
        value = json.loads(json.dumps(yaml.safe_load(path.read_text()), default=str))
        jsonschema.validate(value, json.loads(schema.read_text()))
    data = sorted(path.name for path in (tmp_path / "data/example").iterdir())
    assert data == ["date=2026-03-01", "date=2026-03-02", "date=2026-03-03"]
    (tmp_path / "README.md").write_text("mine")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert f"kept     {tmp_path}/README.md" in printed("init", str(tmp_path))[0]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    (tmp_path / "config/sources/example.yaml").rename(tmp_path / "config/sources/mine.yaml")
    printed("init", str(tmp_path))
    assert not (tmp_path / "config/sources/example.yaml").exists(), "only a new project has it"


def test_a_source_of_ones_own_comes_without_the_example(tmp_path: Path, printed: Any) -> None:
    pq.write_table(table(), "orders.parquet")
    printed("init", ".", "--from", "parquet://orders.parquet")
    declared = [f"config/{folder}/orders.yaml" for folder in ("pipelines", "sources")]
    assert sorted(map(str, Path().glob("config/*/*.yaml"))) == declared
    first = (tmp_path / "config/sources/orders.yaml").read_text().split("\n")[0]
    assert first == "# yaml-language-server: $schema=../../schema/source.json"


def table() -> pa.Table:
    return pa.table(
        {
            "id": pa.array([1], pa.uint32()),
            "no": ["x"],
            "placed": pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("ns")),
            "paid": pa.array([None], pa.date32()),
            "price": pa.array([1], pa.decimal128(9, 2)),
            "kind": pa.array(["a"]).dictionary_encode(),
            "tags": pa.array([["a"]], pa.large_list(pa.string())),
            "ok": [True],
            "where": [{"lat": 1.0}],
            "raw": [b"x"],
            "flags": [[True]],
        }
    )


def test_a_source_out_of_a_parquet_file(tmp_path: Path, printed: Any) -> None:
    (tmp_path / "data").mkdir()
    pq.write_table(table(), "data/orders 2026.parquet")
    _, err = printed("init", ".", "--from", "parquet://data/orders 2026.parquet")
    value = yaml.safe_load(Path("config/sources/orders_2026.yaml").read_text())
    assert value == {
        "kind": "parquet",
        "options": {"path": "data/orders 2026.parquet"},
        "columns": {
            "id": "int",
            "no": "string",
            "placed": "timestamp",
            "paid": "timestamp",
            "price": "float",
            "kind": "string",
            "tags": "list<string>",
            "ok": "bool",
        },
        "event_time": "placed",
    }
    assert err.splitlines() == [
        "event_time is a guess: placed, the first timestamp column",
        "left out: 'where' (struct<lat: double>)",
        "left out: 'raw' (binary)",
        "left out: 'flags' (list<element: bool>)",
        "pipeline orders_2026: see that start, event_id, label and features are what you mean",
    ]
    pipeline = yaml.safe_load(Path("config/pipelines/orders_2026.yaml").read_text())["dataset"]
    assert (pipeline["start"], pipeline["end"]) == (date(2026, 1, 1), date(2026, 1, 2))
    assert pipeline["label"] == {"column": "ok"}
    assert printed("check")[0] == "1 source, 1 pipeline: no problems\n"
    assert "ok" in printed("check", "--connect", code=1)[0], "one row is no data"
    _, err = printed("init", ".", "--from", "parquet://data/orders 2026.parquet", code=1)
    assert "already exists: choose another --name" in err


@pytest.mark.parametrize("prefix", ["", "parquet://"])
def test_a_bare_path_of_folders_by_day_is_declared_whole(
    tmp_path: Path, printed: Any, prefix: str
) -> None:
    """Folders without leading zeros, a name that is none: `check` accepts it all."""
    for day in (9, 10):
        folder = tmp_path / f"lake 1/year=2026/month=3/day={day}"
        folder.mkdir(parents=True)
        ids = list(range(100 * day, 100 * day + 40))
        clicks = {"id": ids, "user": [f"u{n % 7}" for n in ids], "clicked": [n % 2 for n in ids]}
        pq.write_table(pa.table(clicks), folder / "a.parquet")
    _, err = printed("init", ".", "--from", f"{prefix}lake 1")
    assert "window_path is a guess: year={year}/month={month}/day={day}/*.parquet" in err
    assert printed("check", "--connect")[0] == "1 source, 1 pipeline: no problems\n"
    assert "learns     batch" in printed("explain", "lake_1")[0]
    ends = ("--from", "2026-03-09", "--to", "2026-03-10", "--output", "json")
    assert json.loads(printed("explain", "lake_1", *ends)[0])["rows"] == {"lake_1": 80}


def test_folders_that_say_the_date(tmp_path: Path, printed: Any) -> None:
    (tmp_path / "lake/date=2026-01-01").mkdir(parents=True)
    pq.write_table(table().select(["id", "no"]), tmp_path / "lake/date=2026-01-01/a.parquet")
    shop = tmp_path / "shop"
    printed("init", str(shop), "--from", f"parquet://{tmp_path}/lake", "--name", "orders")
    value = yaml.safe_load((shop / "config/sources/orders.yaml").read_text())
    assert value["options"] == {"path": f"{tmp_path}/lake", "window_path": "date={date}/*.parquet"}
    out, _ = printed("check", "--connect", "--config", str(shop / "config"))
    assert out == "1 source, 0 pipelines: no problems\n", "no column looks like a label"


def test_the_ends_of_names_say_the_kind_of_a_bare_path(tmp_path: Path, printed: Any) -> None:
    for day in (1, 2):
        folder = tmp_path / f"views/dt=2026-03-0{day}"
        folder.mkdir(parents=True)
        rows = [f'{{"id": {day}{n}, "user": "u{n}", "clicked": {n % 2}}}\n' for n in range(10)]
        (folder / "a.json").write_text("".join(rows))
        (folder / "b.jsonl.gz").write_bytes(gzip.compress("".join(rows).encode()))
    sold = "id,at,user,bought\n1,2026-03-01 07:00,u1,1\n2,2026-03-03,u2,0\n"
    (tmp_path / "sold.csv").write_text(sold)
    printed("init", ".", "--from", "views")
    printed("init", ".", "--from", "sold.csv")
    views = yaml.safe_load(Path("config/sources/views.yaml").read_text())
    assert (views["kind"], views["options"]["window_path"]) == ("json", "dt={date}/*")
    source = yaml.safe_load(Path("config/sources/sold.yaml").read_text())
    assert (source["kind"], source["event_time"]) == ("csv", "at")
    pipeline = yaml.safe_load(Path("config/pipelines/sold.yaml").read_text())["dataset"]
    assert (pipeline["start"], pipeline["end"]) == (date(2026, 3, 1), date(2026, 3, 4))
    assert printed("check", "--connect")[0] == "2 sources, 2 pipelines: no problems\n"
    pq.write_table(table(), tmp_path / "views/c.parquet")
    _, err = printed("init", ".", "--from", "views", "--name", "both", code=1)
    assert "several kinds: write parquet://views or json://views" in err


def clicks(path: Path, *days: int, of: Any = None) -> None:
    """One row a day of March 2026; or `of` any type, in the column of the time."""
    times = [datetime(2026, 3, day, tzinfo=UTC) for day in days]
    path.parent.mkdir(parents=True, exist_ok=True)
    at = pa.array(times, pa.timestamp("us", "UTC")) if of is None else of
    words = pa.array(["x"] * len(at), pa.string())
    rows = {"at": at, "user": words, "item": words, "clicked": pa.array([1] * len(at), pa.int64())}
    if path.suffix == ".json":
        lines = pa.table(rows).to_pylist()
        path.write_text("".join(json.dumps(line, default=str) + "\n" for line in lines))
    else:
        pq.write_table(pa.table(rows), path)


def declared(name: str) -> tuple[date, date | None]:
    found = yaml.safe_load(Path(f"config/pipelines/{name}.yaml").read_text())["dataset"]
    return found["start"], found.get("end")


@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_start_and_end_are_those_of_all_files(
    tmp_path: Path, printed: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for name, days in {"a": [3], "b": [9, 1], "c": [4]}.items():
        clicks(Path(f"lake/{name}.{kind}"), *days)
    clicks(Path(f"elsewhere/d.{kind}"), 11)
    Path("lake/link").symlink_to(tmp_path / "elsewhere")
    if kind == "parquet":
        clicks(Path("lake/0.parquet"))
        clicks(Path("lake/e.parquet"), of=pa.array([-(2**61), 2**61, None], pa.timestamp("us")))
    printed("init", ".", "--from", "lake/link/../lake" if kind == "json" else "lake")
    assert declared("lake") == (date(2026, 3, 1), date(2026, 3, 12))
    assert printed("check")[0] == "1 source, 1 pipeline: no problems\n"
    monkeypatch.setattr("forebay.commands.declare.init._FILES_MAX", 2)
    _, err = printed("init", ".", "--from", "lake", "--name", "some")
    assert f"start is a guess by 2 of {6 if kind == 'parquet' else 4} files" in err
    assert declared("some")[1] is None
    monkeypatch.setattr("forebay.commands.declare.init._BYTES_MAX", 1)
    printed("init", ".", "--from", f"lake/b.{kind}")
    assert declared("b") == (date(2026, 3, 1), date(2026, 3, 10))


@pytest.mark.parametrize(
    ("origin", "code", "message"),
    [
        ("parquet://nothing.parquet", 1, "nothing.parquet does not exist"),
        ("orc://a.orc", 1, "name a local file or folder: PATH, parquet://PATH, json"),
        ("parquet://timeless.parquet", 1, "has no timestamp column"),
        ("parquet://typeless.parquet", 1, "no column has a type"),
        ("pat[tern].parquet", 1, "is read as a pattern: rename it"),
        ("parquet://empty", 1, "contains no *.parquet file"),
        ("parquet://broken.parquet", 3, "is not a file of kind parquet"),
        ("none", 1, "none: no row has a time"),
        ("years", 1, "years: no row has a time of the years 1000 to 8999"),
        ("torn", 3, "torn/z.parquet cannot be read"),
        ("other", 3, "other/z.parquet"),
    ],
)
def test_files_that_no_source_can_come_from(
    printed: Any, origin: str, code: int, message: str
) -> None:
    pq.write_table(table().select(["id", "no"]), "timeless.parquet")
    pq.write_table(table().select(["raw"]), "typeless.parquet")
    pq.write_table(table(), "pat[tern].parquet")
    clicks(Path("none/a.parquet"))
    clicks(Path("years/a.parquet"), of=pa.array([-(2**61)], pa.timestamp("us")))
    for folder in ("torn", "other"):
        clicks(Path(folder, "a.parquet"), 1)
    for broken in ("broken.parquet", "torn/z.parquet"):
        Path(broken).write_bytes(b"PAR1")
    clicks(Path("other/z.parquet"), of=[5])
    Path("empty").mkdir()
    _, err = printed("init", "shop", "--from", origin, code=code)
    assert message in err
    assert "unexpected" not in err
    assert not Path("shop").exists()


def test_a_folder_that_only_looks_as_if_it_said_the_date(printed: Any) -> None:
    clicks(Path("more/100%=2026-03-01/a.parquet"), 1)
    printed("init", ".", "--from", "more")
    assert "window_path" not in Path("config/sources/more.yaml").read_text()


def test_an_example_that_was_begun_is_finished(tmp_path: Path, printed: Any) -> None:
    (tmp_path / "data/example/date=2026-03-01").mkdir(parents=True)
    mine = tmp_path / "data/example/mine.parquet"
    clicks(mine, 1)
    _, err = printed("init", ".", code=1)
    assert "data/example/mine.parquet is not of the example" in err
    mine.unlink()
    assert printed("init", ".")[0].count("rows.parquet") == 3


def test_calls_that_mean_nothing(tmp_path: Path, printed: Any) -> None:
    _, err = printed("init", "shop", "--name", "views", code=1)
    assert "--name 'views' names the source of --from" in err
    assert not Path("shop").exists()
    (tmp_path / "shop").write_text("")
    _, err = printed("init", str(tmp_path / "shop"), code=1)
    assert err.startswith(f"error: {tmp_path}/shop is not a folder")
