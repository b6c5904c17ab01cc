"""A serving path, in a folder and in a bucket: what a model server finds there, and when."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest
from support.links import link
from support.model_lines import keep_checkpoint, record
from support.s3_server import S3Server
from support.serving_line import (
    FEATURES,
    Names,
    Read,
    bucket_reader,
    folder_reader,
    publish,
    put_model,
    serving_line,
    train_next,
    wrong_at,
)
from support.there import there

from forebay.errors import ConfigError, DataError, InfrastructureError, UsageError
from forebay.executors.serving.serving_path import bring_up_all
from forebay.executors.serving.switch import Serving
from forebay.home.database.open import close_databases, database_of
from forebay.home.database.tables import served
from forebay.home.store.open import store_of
from forebay.home.store.s3_transfers import Files, S3Transfers

FIRST, SECOND, THIRD = "2026-03-01", "2026-03-02", "2026-03-03"


class World(NamedTuple):
    root: Path
    path: str
    read: Read
    names: Names

    def line(self, days: int = 3, root: str = "one", **more: Any) -> Serving:
        return serving_line(self.root / root, self.path, days, **more)

    def integers(self) -> list[int]:
        found = {name.partition("/")[0] for name in self.names()}
        return sorted(int(each) for each in found if each.isdecimal())

    def current(self) -> dict[str, Any]:
        return dict(json.loads(there(self.read("current.json"))))


@pytest.fixture(params=["folder", "bucket"])
def world(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    if request.param == "folder":
        yield World(tmp_path, str(tmp_path / "exports"), *folder_reader(tmp_path / "exports"))
    else:
        new: Callable[[], str] = request.getfixturevalue("new_s3_address")
        server: S3Server = request.getfixturevalue("s3_server")
        address = new()
        bucket = urlsplit(address).netloc
        yield World(tmp_path, address, *bucket_reader(server.client, bucket, "some/folder"))
    close_databases()


def assert_up(world: World, serving: Serving, window: str) -> None:
    """The path, `models show` and the database say the same."""
    facts, current = there(serving.facts()), world.current()
    assert facts["window"] == window
    assert {name: current[name] for name in facts if name in current} == {
        name: value for name, value in facts.items() if name in current
    }
    assert str(facts["path"]).endswith(f"/{current['integer']}")
    assert max(world.integers()) == current["integer"]
    assert list(wrong_at(world.read, world.names)) == []
    assert there(world.read(f"{current['integer']}/saved_model.pb")).startswith(window.encode())


def test_each_switch_is_a_higher_integer_and_the_newest_are_kept(world: World) -> None:
    serving = world.line(serving_kept=2)
    assert publish(serving, FIRST) == ""
    assert_up(world, serving, FIRST)
    assert (world.current()["features"], world.current()["line"]) == (FEATURES, "main")
    first = world.integers()
    assert publish(serving, FIRST) == "", "again changes nothing"
    assert world.integers() == first
    publish(serving, SECOND)
    publish(serving, THIRD)
    assert_up(world, serving, THIRD)
    assert len(world.integers()) == 2, "whatever serves is one of them"
    serving.roll_back("it answers 0.5 for everybody")
    assert_up(world, serving, SECOND)
    serving.serve(FIRST)
    assert_up(world, serving, FIRST)
    assert (len(world.integers()), min(world.integers()) > first[0]) == (2, True)


def test_under_a_pin_only_the_pointer_stays(world: World) -> None:
    serving = world.line()
    publish(serving, SECOND)
    serving.serve(FIRST, "the second is bad")
    serving.serve(FIRST, "again")
    kept = publish(serving, THIRD)
    assert kept == f"window {FIRST} is pinned and serves until `forebay models unpin ads`"
    fourth = train_next(serving.chain)
    assert publish(serving, fourth) == kept
    assert_up(world, serving, FIRST)
    assert (serving.unpin(), serving.unpin()) == (True, False)
    assert_up(world, serving, FIRST)
    assert publish(serving, fourth) == ""
    assert_up(world, serving, fourth)
    told = [(each.action, each.window, each.why) for each in serving.chain.switches()]
    assert told == [
        ("publish", SECOND, ""),
        ("serve", FIRST, "the second is bad"),
        ("unpin", FIRST, ""),
        ("publish", fourth, ""),
    ]


def test_what_serves_is_pinned_where_it_is(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    serving = world.line()
    monkeypatch.setenv("LOGNAME", "x\udcff")  # as bytes that are not UTF-8 are read
    publish(serving, FIRST)
    assert serving.chain.switches()[-1].who.startswith("'x\\udcff@")
    before = world.current()
    serving.serve(FIRST)
    assert (there(serving.chain.published()).pinned, world.current()) == (True, before)


@pytest.mark.guarantee(
    "a process dies between the row of what serves and its serving path",
    "nothing; the next publication, `models` command, run or gc brings the path up",
)
def test_a_path_that_was_left_behind_is_brought_up(world: World) -> None:
    serving = world.line()
    publish(serving, FIRST)
    second = there(serving.chain.link(SECOND))
    assert serving.chain.publish(second, second.finished_at) == ""
    assert (world.current()["window"], there(serving.facts())["path"]) == (FIRST, None)
    bring_up_all(serving.chain.home, serving.project)
    assert_up(world, serving, SECOND)
    there(serving.path.place).remove(world.current()["integer"])
    assert there(serving.facts())["path"] is None
    serving.path.bring_up()
    assert_up(world, serving, SECOND)


def test_a_path_that_fails_holds_up_no_other(tmp_path: Path) -> None:
    lines = [serving_line(tmp_path, "exports/{line}", 1, line) for line in ("a", "b")]
    for serving in lines:
        publish(serving, FIRST)
        line, path = serving.chain.line, serving.path
        current = json.loads((tmp_path / "exports" / line / "current.json").read_text())
        assert (current["line"], path.elsewhere) == (line, "")
    shutil.rmtree(tmp_path / "exports" / "b")
    (tmp_path / "exports" / "a" / "owner.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"a/owner\.json is damaged"):
        bring_up_all(lines[0].chain.home, lines[0].project)
    assert there(lines[1].facts())["path"] is not None


@pytest.mark.guarantee(
    "a process dies while it writes a model to a serving path",
    "nothing; no reader sees half of it, and the next switch removes what was left",
)
def test_what_was_half_written_is_never_visible(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving = world.line()
    publish(serving, FIRST)

    with monkeypatch.context() as patch:
        # Once the model is whole, and before current.json.
        dies = Mock(side_effect=InfrastructureError("killed"))
        patch.setattr(type(there(serving.path.place)), "write", dies)
        with pytest.raises(InfrastructureError, match="killed"):
            publish(serving, SECOND)
    assert (world.current()["window"], len(world.integers())) == (FIRST, 2)
    assert list(wrong_at(world.read, world.names)) == []
    publish(serving, THIRD)
    assert_up(world, serving, THIRD)


def test_a_half_of_a_bucket_is_removed(
    new_s3_address: Callable[[], str],
    s3_server: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a folder there is none: it gets its name when it is whole."""
    address = new_s3_address()
    bucket = urlsplit(address).netloc
    serving = serving_line(tmp_path, address)
    publish(serving, FIRST)
    half = there(serving.chain.published()).integer - 1
    client = s3_server.client
    client.put_object(Bucket=bucket, Key=f"some/folder/{half}/variables/v", Body=b"half")
    another = "some/folder/models/ads/checkpoint"  # of a store below the path
    for key in (another, f"some/folder/{half}/variables/w"):
        client.create_multipart_upload(Bucket=bucket, Key=key)
    publish(serving, SECOND)
    _, names = bucket_reader(client, bucket, "some/folder")
    assert not [name for name in names() if name.startswith(f"{half}/")]
    uploads = client.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert [each["Key"] for each in uploads] == [another]
    whole, upload, calls = names(), S3Transfers.upload, iter([True])

    def dies(transfers: S3Transfers, files: Files) -> None:
        if not next(calls, False):
            raise InfrastructureError("killed")
        upload(transfers, files)

    monkeypatch.setattr(S3Transfers, "upload", dies)
    with pytest.raises(InfrastructureError, match="killed"):
        publish(serving, THIRD)
    new = set(names()) - set(whole)
    assert (len(new) > 1, [name for name in new if name.endswith(".pb")]) == (True, [])


def test_an_older_database_gets_higher_integers(world: World) -> None:
    """It was restored from a backup, say: model servers load the highest integer."""
    serving = world.line()
    publish(serving, FIRST)
    far = there(serving.chain.published()).integer
    database_of(serving.chain.home).transact(
        lambda rows: rows.execute(served.update().values(integer=far - 1000))
    )
    serving.path.bring_up()
    assert world.current()["integer"] == far + 1
    assert_up(world, serving, FIRST)


def test_two_lines_never_share_a_path(world: World) -> None:
    own, other = world.line(), world.line(root="two")
    publish(own, FIRST)
    before = world.integers(), world.current()
    with pytest.raises(ConfigError, match=r"is where line 'main' of pipeline 'ads'.*owner\.json"):
        publish(other, SECOND)
    with pytest.raises(ConfigError, match="cannot serve there"):
        other.serve(FIRST)
    assert (world.integers(), world.current()) == before
    trial = world.line(line="trial")
    assert "job.publish.serving is that of line 'main'" in trial.path.elsewhere
    publish(trial, FIRST)
    assert (world.integers(), world.current()) == before


def test_of_two_that_claim_a_path_at_once_one_serves_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = world.line(), world.line(root="two").path
    own.path.require_own()
    place = there(other.place)
    read, stale = place.read, iter(["owner.json", "current.json"])
    monkeypatch.setattr(place, "read", lambda name: None if next(stale, "") else read(name))
    with pytest.raises(ConfigError, match="cannot serve there"):
        other.require_own()
    assert publish(own, FIRST) == ""


def test_a_path_inside_another_is_left_alone(world: World) -> None:
    own = world.line(serving_kept=2)
    publish(own, FIRST)
    above, _, parameters = world.path.partition("?")
    nested = serving_line(world.root / "two", f"{above}/2026?{parameters}".rstrip("?"))
    publish(nested, FIRST)
    publish(own, SECOND)
    publish(own, THIRD)
    nested.path.require_own()
    assert there(nested.facts())["path"] is not None


def test_models_of_somebody_else_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "exports" / "7").mkdir(parents=True)
    serving = serving_line(tmp_path, "exports")
    with pytest.raises(ConfigError, match="holds 7/, which no pipeline wrote there"):
        publish(serving, FIRST)
    assert (tmp_path / "exports" / "7").is_dir()
    (tmp_path / "exports" / "7").rmdir()
    (tmp_path / "exports" / "8").symlink_to(tmp_path)
    publish(serving, FIRST)
    publish(serving, SECOND)
    assert (tmp_path / "exports" / "8").is_symlink()


def test_a_damaged_model_is_exported_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serving = serving_line(tmp_path, "exports", 1)
    trained = there(serving.chain.link(FIRST))
    model = store_of(serving.chain.home).tree(trained.files["saved_model"])
    (model / "saved_model.pb").write_text("damaged")
    with pytest.raises(DataError):
        serving.serve(FIRST)
    monkeypatch.setattr(
        "forebay.executors.serving.export_window.export_window",
        lambda *_: {"saved_model": put_model(serving.chain.home, FIRST)},
    )
    keep_checkpoint(serving.chain, trained)
    serving.serve(FIRST)
    assert list(wrong_at(*folder_reader(tmp_path / "exports"))) == []


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\x00", b'{"integer": "x"}'])
def test_a_damaged_current_is_written_again(world: World, content: bytes) -> None:
    serving = world.line(1)
    publish(serving, FIRST)
    there(serving.path.place).write("current.json", content)
    serving.path.bring_up()
    assert_up(world, serving, FIRST)


def test_a_damaged_owner_stops_everybody(world: World) -> None:
    serving = world.line(2)
    publish(serving, FIRST)
    before = world.current()
    there(serving.path.place).write("owner.json", b"\xff{}")
    with pytest.raises(ConfigError, match=r"owner\.json is damaged"):
        publish(serving, SECOND)
    assert world.current() == before


def test_a_path_that_was_removed_is_written_again_and_can_be_checked_without_us(
    tmp_path: Path,
) -> None:
    serving = serving_line(tmp_path, "exports", 1)
    publish(serving, FIRST)
    before = (tmp_path / "exports" / "current.json").read_bytes()
    shutil.rmtree(tmp_path / "exports")
    serving.path.bring_up()
    assert (tmp_path / "exports" / "current.json").read_bytes() == before
    assert list(wrong_at(*folder_reader(tmp_path / "exports"))) == []
    current = json.loads(before)
    lines = "".join(f"{checksum}  {name}\n" for name, checksum in current["files"].items())
    folder = tmp_path / "exports" / str(current["integer"])
    subprocess.run(
        ["sha256sum", "--check", "--quiet"], input=lines, text=True, cwd=folder, check=True
    )


def test_retention_keeps_what_is_pinned_and_a_way_back_that_is_gone_is_named(
    tmp_path: Path,
) -> None:
    serving = serving_line(tmp_path, "exports", 3, windows_kept=1)
    serving.serve(FIRST)
    for _ in range(3):
        publish(serving, train_next(serving.chain))
    kept = [each.window for each in serving.chain.links() if "saved_model" in each.files]
    assert kept == [FIRST, "2026-03-06"]
    serving.path.bring_up()
    with pytest.raises(UsageError, match=r"nothing served before on line 'main'.*2026-03-06"):
        serving.roll_back()
    with pytest.raises(UsageError, match=rf"no longer be served.*WINDOW` serves {FIRST}, 2026-03-"):
        serving.serve(SECOND)
    with pytest.raises(UsageError, match=r"window 2027-01-01 has no model .*models serve ads WIND"):
        serving.serve("2027-01-01")
    record(serving.chain, link(FIRST, generation=2))
    with pytest.raises(UsageError, match=r"generation 2 of .*WINDOW` serves 2026-03-06"):
        serving.serve(FIRST)
    close_databases()
