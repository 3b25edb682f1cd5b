# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a report: which there are, their names whatever a host is called, and what is kept of earlier runs."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.plugin_utils import report, report_history
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.report_files import Unwritten, file_names, write_report

from .plans import REBOOT, WRITE, plan, unit, waits

NOW = datetime(2026, 12, 1, 4, 5, 6, tzinfo=timezone.utc)
WAITING = plan(
    "PROGRESSING",
    unit("sysctl", "progressing", steps=[WRITE]),
    unit("cpu", "progressing", pending=waits("RebootRequired", REBOOT)),
    unit("iommu", "progressing", pending=waits("RebootRequired", REBOOT)),
)


def written(folder: Path, *hosts: str, now: datetime = NOW, keep: int = 30, source: str = "plan") -> dict[str, Any]:
    """A report of these hosts is written; its document."""
    document = report.fleet_document(dict.fromkeys(hosts, WAITING), source=source)
    assert write_report(folder, document, now, keep) == folder / "fleet.html"
    return document


def names(folder: Path) -> list[str]:
    """All files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_report_is_a_document_a_page_a_document_a_host_and_what_is_kept_of_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "report"
    document = written(folder, "a", "b")
    assert names(folder) == [
        "fleet.html",
        "fleet.json",
        "history/20261201T040506Z-plan.json",
        "hosts/a.json",
        "hosts/b.json",
    ]
    assert json.loads((folder / "fleet.json").read_text(encoding="utf-8")) == document
    assert "2026-12-01 04:05 UTC" in (folder / "fleet.html").read_text(encoding="utf-8")
    assert json.loads((folder / "hosts/a.json").read_text(encoding="utf-8")) == {
        "kind": "HostReport",
        "version": 2,
        "source": "plan",
        "name": "a",
        "host": document["hosts"]["a"],
    }
    assert json.loads((folder / "history/20261201T040506Z-plan.json").read_text(encoding="utf-8")) == {
        "at": "2026-12-01T04:05:06Z",
        "source": "plan",
        "summary": document["summary"],
        "hosts": {
            host: {"state": "progressing", "drift": ["sysctl"], "failing": [], "waits": ["RebootRequired"]}
            for host in "ab"
        },
    }
    assert {oct((folder / name).stat().st_mode & 0o777) for name in names(folder)} == {"0o644"}


def test_the_same_fleet_is_the_same_bytes(tmp_path: Path) -> None:
    written(tmp_path / "one", "a", "b")
    written(tmp_path / "two", "b", "a", now=NOW + timedelta(days=1))
    for name in ("fleet.json", "hosts/a.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


# -- names


@pytest.mark.parametrize(
    "host",
    [
        "../../x",
        "/etc/passwd",
        "..",
        ".",
        "",
        ".hidden",
        "a/b",
        "a\\b",
        "a\0b",
        "ö",
        "日本",
        "x" * 300,
        "a b",
        "a\nb",
        "-",
    ],
)
def test_a_host_of_any_name_has_a_file_of_its_own_below_the_folder(tmp_path: Path, host: str) -> None:
    document = written(tmp_path, host, "a", "b")
    (name,) = [name for name in os.listdir(tmp_path / "hosts") if name not in ("a.json", "b.json")]
    assert name[0].isalnum()
    assert name.isascii()
    assert len(name) < 100
    assert json.loads((tmp_path / "hosts" / name).read_text(encoding="utf-8"))["name"] in document["hosts"]
    assert {Path(found).parts[0] for found in names(tmp_path)} == {"fleet.html", "fleet.json", "history", "hosts"}


def test_names_that_a_file_system_takes_for_one_are_two() -> None:
    found = file_names(["node-1", "Node-1", "NODE-1", "a/b", "a_b", "a b"])
    assert (found["NODE-1"], found["a_b"]) == ("NODE-1.json", "a_b.json")
    assert len({name.casefold() for name in found.values()}) == 6


def test_names_do_not_depend_on_who_else_is_there() -> None:
    assert file_names(["a/b"])["a/b"] == file_names(["x", "a/b", "a b"])["a/b"]


def test_a_name_made_to_look_like_that_of_another_gets_another() -> None:
    other = file_names(["a/b"])["a/b"].removesuffix(".json")
    found = file_names(["a/b", other])
    assert len(set(found.values())) == 2


# -- what goes


def test_hosts_that_are_not_in_the_report_any_more_go_and_files_of_others_stay(tmp_path: Path) -> None:
    written(tmp_path, "a", "gone")
    for name, text in (("mine.json", '{"kind": "Mine"}'), ("list.json", "[]"), ("broken.json", "{"), ("x.txt", "")):
        (tmp_path / "hosts" / name).write_text(text, encoding="utf-8")
    written(tmp_path, "a")
    assert sorted(os.listdir(tmp_path / "hosts")) == ["a.json", "broken.json", "list.json", "mine.json", "x.txt"]


def test_the_newest_runs_are_kept(tmp_path: Path) -> None:
    history = tmp_path / "history"
    history.mkdir()
    for name in ("notes.json", "20250101T000000Z-other.json", "20250101T000000Z-plan.json.bak"):
        (history / name).write_text("", encoding="utf-8")
    for day in range(4):
        written(tmp_path, "a", now=NOW + timedelta(days=day), keep=3, source="plan" if day % 2 else "status")
    assert [name for name in sorted(os.listdir(history)) if "2026" in name] == [
        "20261202T040506Z-plan.json",
        "20261203T040506Z-status.json",
        "20261204T040506Z-plan.json",
    ]
    assert len(os.listdir(history)) == 6
    written(tmp_path, "a", now=NOW + timedelta(days=9), keep=0)
    assert len(os.listdir(history)) == 3


def test_the_page_is_given_the_runs_oldest_first_with_this_one_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ansible_collections.bettercompute.bcd.plugins.plugin_utils import report_page

    seen: list[tuple[Any, ...]] = []

    def render(*given: Any) -> str:
        seen.append(given)
        return "page"

    monkeypatch.setattr(report_page, "render_page", render)
    documents = [written(tmp_path, "a", now=NOW + timedelta(days=day)) for day in (2, 0, 1)]
    _document, at, runs = seen[-1]
    assert at == "2026-12-02 04:05 UTC"
    assert [run["at"] for run in runs] == ["2026-12-01T04:05:06Z", "2026-12-02T04:05:06Z", "2026-12-03T04:05:06Z"]
    assert runs[-1] == {**report_history.run_of(documents[-1], NOW), "at": "2026-12-03T04:05:06Z"}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"at": 1}', '{"summary": {}}', '{"at": "x", "source": "plan", "summary": []}', "\udcff"],
)
def test_a_run_that_cannot_be_made_out_is_passed_over(tmp_path: Path, text: str) -> None:
    path = tmp_path / "20261201T040506Z-plan.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert report_history.read([path, tmp_path / "gone"]) == []


# -- what is in the way


def test_a_folder_with_the_name_of_a_file_of_ours_is_left_alone(tmp_path: Path) -> None:
    for name in ("history/20250101T000000Z-plan.json", "hosts/gone.json"):
        (tmp_path / name).mkdir(parents=True)
    written(tmp_path, "a", keep=1)
    assert (tmp_path / "fleet.html").is_file()
    assert (tmp_path / "history" / "20250101T000000Z-plan.json").is_dir()


def test_a_folder_that_cannot_be_made_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("a file", encoding="utf-8")
    with pytest.raises(Unwritten, match=r"cannot write the report below .*report.*: give another directory as bcd_rep"):
        written(tmp_path / "report", "a")


def test_what_was_there_stays_whole_where_the_new_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "a")
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}

    def full(*_given: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(Unwritten, match="No space left on device"):
        written(tmp_path, "a", "b", now=NOW + timedelta(days=1))
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("others", encoding="utf-8")
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "fleet.json").symlink_to(outside)
    written(tmp_path / "report", "a")
    assert outside.read_text(encoding="utf-8") == "others"
    assert not (tmp_path / "report" / "fleet.json").is_symlink()
