# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must not stand in any file that is published."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tools.copy_tree import known_files
from tests.tools.results import TOP

FILES = known_files(TOP)
HEADER = (
    "# Copyright (c) 2026 bettercompute\n"
    "# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)\n"
    "# SPDX-License-Identifier: GPL-3.0-or-later\n"
)
# Folders that any project may name; a checkout that lies in one of them says nothing about this machine.
ANYWHERE = {"/", "/tmp", "/var/tmp", "/home", "/root", "/srv", "/opt", "/mnt", "/usr/src", "/builds"}
SECRETS = {
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----",
    "an AWS key": r"\bAKIA[0-9A-Z]{16}\b",
    "a GitHub token": r"\bgh[pousr]_[A-Za-z0-9]{36}\b",
    "a GitLab token": r"\bglpat-[A-Za-z0-9_-]{20}\b",
    "a Slack token": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "credentials in an address": r"https?://[^/\s:@'\"{}<>]+:[^/\s:@'\"{}<>]+@",
}
# Split, so that this file does not hold what it looks for.
UNFINISHED = r"\b(?:TO" + r"DO|FIX" + r"ME)\b"
NAMED_AFTER_NOTHING = re.compile(r"(?:^|/)(?:utils?|helpers?|common|base|manager)\.py$")


def text(name: str) -> str:
    """The file's content; "" for a link or for what is no text."""
    path = TOP / name
    if path.is_symlink():
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def holding(pattern: str) -> list[str]:
    """The files in which the pattern is found, each with its line."""
    return [
        f"{name}:{content.count(chr(10), 0, match.start()) + 1}"
        for name, content in ((name, text(name)) for name in FILES)
        for match in [re.search(pattern, content)]
        if match
    ]


def with_header() -> list[str]:
    """The files that can carry the header: code and configuration, but for release notes and empty files."""
    kinds = (".py", ".yml", ".yaml", ".toml", ".cfg", ".sh")
    return [name for name in FILES if name.endswith(kinds) and not name.startswith("changelogs/") and text(name)]


def test_there_are_files_to_look_at() -> None:
    assert {"Makefile", "galaxy.yml", "meta/runtime.yml"} <= set(FILES)


def test_no_file_names_the_place_of_this_checkout() -> None:
    places = {str(TOP)} | ({str(TOP.parent)} - ANYWHERE)
    assert [hit for place in sorted(places) for hit in holding(re.escape(place) + r"(?![\w-])")] == []


@pytest.mark.parametrize("kind", SECRETS)
def test_no_file_holds_a_secret(kind: str) -> None:
    assert holding(SECRETS[kind]) == []


def test_nothing_is_left_unfinished() -> None:
    assert holding(UNFINISHED) == []


def test_no_file_is_named_after_nothing() -> None:
    assert [name for name in FILES if NAMED_AFTER_NOTHING.search(name)] == []


@pytest.mark.parametrize("name", with_header())
def test_each_file_carries_the_licence(name: str) -> None:
    lines = text(name).splitlines(keepends=True)
    start = 1 if lines and lines[0].startswith("#!") else 0
    assert "".join(lines[start : start + 3]) == HEADER


def test_sanity_ignores_nothing() -> None:
    assert [name for name in FILES if re.match(r"tests/sanity/ignore", name)] == []


def test_the_licence_is_the_gpl() -> None:
    words = Path(TOP, "LICENSE").read_text(encoding="utf-8").split()
    assert words[:8] == "GNU GENERAL PUBLIC LICENSE Version 3, 29 June".split()
