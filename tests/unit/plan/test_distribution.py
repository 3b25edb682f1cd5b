# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""os-release, folded into families."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.os_release import distribution
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.distribution import parse_os_release
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.packages import check_family
from tests.unit.fake_host import FakeHost

# ID, ID_LIKE and VERSION_ID as the distributions ship them.
FAMILIES = [
    ("debian", "", "12", "debian"),
    ("ubuntu", "debian", "24.04", "debian"),
    ("linuxmint", "ubuntu debian", "22", "debian"),
    ("rhel", "fedora", "9.4", "rhel"),
    ("rocky", "rhel centos fedora", "9.4", "rhel"),
    ("almalinux", "rhel centos fedora", "8.10", "rhel"),
    ("ol", "fedora", "9.4", "rhel"),
    ("centos", "rhel fedora", "9", "rhel"),
    ("amzn", "fedora", "2023", "rhel"),
    ("fedora", "", "44", "fedora"),
    ("sles", "suse", "15.6", "suse"),
    ("opensuse-leap", "suse opensuse", "15.6", "suse"),
    ("opensuse-tumbleweed", "opensuse suse", "20261101", "suse"),
    ("sle-micro", "suse", "6.0", "suse"),
    ("gentoo", "", "2.15", ""),
    ("arch", "", "", ""),
]


def release(name: str, like: str, version: str) -> str:
    return f'NAME="X"\nID="{name}"\nID_LIKE="{like}"\nVERSION_ID="{version}"\nHOME_URL="https://x.example/"\n'


@pytest.mark.parametrize(("name", "like", "version", "family"), FAMILIES, ids=lambda value: str(value) or "none")
def test_a_distribution_belongs_to_a_family(name: str, like: str, version: str, family: str) -> None:
    found = parse_os_release(release(name, like, version))
    assert (found.id, found.family, found.version) == (name, family, version)
    if family:
        check_family(found, "nvidia-driver")
    else:
        with pytest.raises(Refused, match=f"nvidia-driver: .*'{name}'"):
            check_family(found, "nvidia-driver")


@pytest.mark.parametrize(
    ("name", "version", "streams"),
    [
        ("rhel", "8.10", True),
        ("rocky", "9.4", True),
        ("ol", "9", True),
        ("amzn", "2023", True),
        ("rhel", "10.0", False),
        ("almalinux", "10", False),
        ("fedora", "44", False),
        ("sles", "15.6", False),
        ("debian", "9", False),
    ],
)
def test_only_rhel_8_and_9_and_amazon_2023_have_streams(name: str, version: str, streams: bool) -> None:
    assert parse_os_release(f"ID={name}\nVERSION_ID={version}\n").has_streams is streams


def test_an_older_amazon_linux_is_refused() -> None:
    with pytest.raises(Refused, match="only 2023 is known, not 2:"):
        check_family(parse_os_release('ID="amzn"\nID_LIKE="centos rhel fedora"\nVERSION_ID="2"\n'), "nvidia-driver")


def test_values_come_bare_or_in_either_quotes() -> None:
    found = parse_os_release("ID=ubuntu\nVERSION_ID='24.04'\nVERSION_CODENAME=\"noble\"\n# ID=x\n")
    assert (found.id, found.version, found.codename, found.major) == ("ubuntu", "24.04", "noble", 24)


def test_the_copy_below_usr_counts_where_etc_has_none() -> None:
    host = FakeHost({"/usr/lib/os-release": "ID=debian\nVERSION_ID=13\n", "/proc/sys/kernel/arch": "aarch64\n"})
    found = distribution(host)
    assert (found.id, found.major, found.arch, found.image) == ("debian", 13, "aarch64", "")


def test_an_image_is_seen() -> None:
    host = FakeHost({"/etc/os-release": "ID=fedora\nVERSION_ID=44\n", "/run/ostree-booted": ""})
    assert distribution(host).image == "rpm-ostree"
