# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root's signing key: only a file that nobody else reads, writes or replaces."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.signing_key import signing_key
from tests.unit.fake_host import FakeHost

PATH = "/etc/bcd/node.key"
MARK = "PRIVATE KEY-----"  # apart from what is before it: no file of ours holds a key
KEY = f"-----BEGIN {MARK}\nc2VjcmV0\n-----END {MARK}\n"


def test_root_s_own_file_is_the_key() -> None:
    host = FakeHost()
    for mode in (0o600, 0o400, 0o700):
        host.files[PATH] = File(KEY, mode)
        assert signing_key(host, PATH) == KEY


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (None, f"{PATH} is not there, and signing_key names it: write the node's private key there"),
        (File("", 0o777, regular=False), f"{PATH} must be a regular file root owns that no one else can write"),
        (File(KEY, 0o600, uid=1000), f"{PATH} must be a regular file root owns that no one else can write"),
        (File(KEY, 0o620), f"{PATH} must be a regular file root owns that no one else can write"),
        (File(KEY, 0o602), f"{PATH} must be a regular file root owns that no one else can write"),
        (File(KEY, 0o640), f"{PATH} is a private key that others can read: take their permission away (mode 0600)"),
        (File(KEY, 0o604), f"{PATH} is a private key that others can read: take their permission away (mode 0600)"),
        (File("c2VjcmV0", 0o600), f"{PATH} is no private key in PEM form: write the node's key there"),
    ],
)
def test_another_is_refused(file: File | None, message: str) -> None:
    host = FakeHost()
    if file is not None:
        host.files[PATH] = file
    with pytest.raises(Refused) as raised:
        signing_key(host, PATH)
    assert raised.value.message == message


@pytest.mark.parametrize("directory", ["/", "/etc", "/etc/bcd"])
@pytest.mark.parametrize("seen", [File("", 0o775, regular=False), File("", 0o755, uid=1000, regular=False)])
def test_so_is_one_that_another_account_could_replace(directory: str, seen: File) -> None:
    host = FakeHost()
    host.files[PATH] = File(KEY, 0o600)
    host.files[directory] = seen
    with pytest.raises(Refused, match="^" + directory + " is not a directory only root can write, and the signing key"):
        signing_key(host, PATH)


@pytest.mark.parametrize("path", ["node.key", "", "/etc/../home/me/node.key"])
def test_a_path_is_whole(path: str) -> None:
    with pytest.raises(Refused, match="give the whole path of the key on the host"):
        signing_key(FakeHost(), path)
