# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What root remembers decides only where no other account could have written it."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.config import root_text
from tests.unit.fake_host import FakeHost

PATH = "/var/lib/bcd-hostconfig/join-record.json"


def test_a_file_of_root_s_own() -> None:
    assert root_text(FakeHost({PATH: "{}"}), PATH) == "{}"
    assert root_text(FakeHost(), PATH) is None


@pytest.mark.parametrize("seen", [File("{}", 0o664), File("{}", 0o602), File("{}", uid=1000), File("", regular=False)])
def test_a_file_that_others_could_have_written(seen: File) -> None:
    host = FakeHost()
    host.files[PATH] = seen
    with pytest.raises(Refused, match=f"^{PATH} must be a regular file root owns that no one else can write$"):
        root_text(host, PATH)


def test_a_symbolic_link() -> None:
    with pytest.raises(Refused, match="must be a regular file root owns"):
        root_text(FakeHost({"/root/x": "{}"}, links={PATH: "/root/x"}), PATH)


@pytest.mark.parametrize("directory", ["/", "/var", "/var/lib", "/var/lib/bcd-hostconfig"])
@pytest.mark.parametrize("there", [True, False])
def test_a_directory_where_others_could_have_swapped_it(directory: str, there: bool) -> None:
    host = FakeHost({PATH: "{}"} if there else {})
    for seen in (File("", 0o775, regular=False), File("", 0o757, regular=False), File("", 0o755, 1000, regular=False)):
        host.files[directory] = seen
        with pytest.raises(Refused) as raised:
            root_text(host, PATH)
        assert raised.value.message == (
            f"{directory} is not a directory only root can write, and {PATH} decides what root does: make it root's, "
            "writable by no one else"
        )
    host.files[directory] = File("", 0o755, regular=False)
    assert root_text(host, PATH) == ("{}" if there else None)
