# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap of a worker on a real systemd: off, off after a reboot, and given back to the byte.

fstab, an administrator's swap unit, a packaged one, a service that runs swapon, and an area that somebody turned on:
the shipped code runs in the guest without the rest of its unit, which needs a cluster.
"""

from __future__ import annotations

import base64
import io
import json
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from labvm.machine import Machine

TOP = Path(__file__).resolve().parents[2]
PLACE = "/root/bcd.zip"
INSIDE = "ansible_collections/bettercompute/bcd/plugins/module_utils"
RECORD = "/var/lib/bcd-hostconfig/k8s-swap.json"
MARK = "# off while this machine is a Kubernetes worker (bettercompute.bcd): "
LINE = "/swapfile\tnone\tswap\tsw,pri=5\t0 0  # two blanks before this"
AREAS = ["/srv/by-hand", "/srv/packaged", "/swapfile", "/var/swap", "/var/own"]
UNIT = "[Unit]\nDescription=swap\n\n[Swap]\nWhat={}\n\n[Install]\nWantedBy=swap.target\n"
SERVICE = (
    "[Unit]\nDescription=swap by a program\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\n"
    "ExecStart=/usr/sbin/swapon /var/swap\nExecStop=/usr/sbin/swapoff /var/swap\n"
    "\n[Install]\nWantedBy=multi-user.target\n"
)
FILES = {
    "/etc/systemd/system/var-own.swap": UNIT.format("/var/own"),
    "/usr/lib/systemd/system/srv-packaged.swap": UNIT.format("/srv/packaged"),
    "/usr/lib/systemd/system/dphys-swapfile.service": SERVICE,
}


class Story(NamedTuple):
    machine: Machine
    before: str
    fstab: str


def package() -> str:
    """module_utils and the driver as a zip, in base64: what the guest's Python runs."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
        out.write(Path(__file__).parent / "swap" / "driver.py", "__main__.py")
        parts = INSIDE.split("/")
        for depth in range(1, len(parts)):
            out.writestr("/".join((*parts[:depth], "__init__.py")), "")
        for path in sorted((TOP / "plugins" / "module_utils").rglob("*.py")):
            out.write(path, f"{INSIDE}/{path.relative_to(TOP / 'plugins' / 'module_utils')}")
    return base64.b64encode(packed.getvalue()).decode()


def go(machine: Machine, *words: str) -> dict[str, Any]:
    """One pass in the guest."""
    found: dict[str, Any] = json.loads(machine.run(("python3", PLACE, *words)).out)
    return found


def on(machine: Machine) -> list[str]:
    """What is swapped to."""
    return sorted(line.split()[0] for line in machine.read("/proc/swaps").splitlines()[1:])


def files(machine: Machine) -> str:
    """Every file of /etc with its mode and owner, and where links point; and what root remembers."""
    return machine.ssh(
        "find /etc /var/lib/bcd-hostconfig -xdev -printf '%p %y %m %U %l\\n' 2>/dev/null | sort; "
        "find /etc /var/lib/bcd-hostconfig -xdev -type f -print0 2>/dev/null | sort -z | xargs -0 sha1sum"
    ).out


@pytest.fixture(scope="module")
def story(lab_story: Machine) -> Story:
    machine = lab_story
    make = "dd if=/dev/zero of=$area bs=1M count=8 status=none && chmod 600 $area && mkswap -q $area"
    machine.ssh(f"set -e; for area in {' '.join(AREAS)}; do {make}; done")
    for path, text in FILES.items():
        machine.ssh(f"cat >{path}", stdin=text)
    machine.ssh(
        # The file then ends without a newline.
        f"set -e; printf %s '{LINE}' >>/etc/fstab; chmod 664 /etc/fstab; systemctl daemon-reload; "
        "systemctl enable -q --now var-own.swap srv-packaged.swap dphys-swapfile; "
        "systemctl start swapfile.swap; swapon -p 7 /srv/by-hand"
    )
    machine.ssh(f"base64 -d >{PLACE}", stdin=package())
    assert on(machine) == sorted(AREAS)
    return Story(machine, files(machine), machine.read("/etc/fstab"))


def test_a_check_says_what_is_then_done(story: Story) -> None:
    planned = go(story.machine, "off", "--check")
    assert on(story.machine) == sorted(AREAS)
    assert files(story.machine) == story.before
    taken = go(story.machine, "off")
    assert (taken["state"], taken["says"]) == ("converged", [])
    assert [step for step in taken["steps"] if step in planned["steps"]] == planned["steps"]
    assert on(story.machine) == []


def test_what_a_worker_needs_of_the_kernel_is_there(story: Story) -> None:
    for name in ("net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables", "net/ipv4/ip_forward"):
        assert story.machine.read(f"/proc/sys/{name}") == "1\n"
    assert "nodev\toverlay\n" in story.machine.read("/proc/filesystems")


def test_fstab_differs_by_the_mark_alone(story: Story) -> None:
    assert story.machine.read("/etc/fstab") == story.fstab.replace(LINE, MARK + LINE)
    assert story.machine.ssh("stat -c %a /etc/fstab").out == "664\n"


def test_a_second_pass_is_quiet_and_says_what_nobody_will_turn_on(story: Story) -> None:
    before = files(story.machine)
    again = go(story.machine, "off")
    assert (again["changed"], again["steps"]) == (False, [])
    assert files(story.machine) == before
    [note] = [note for note in again["notes"] if "swap" in note]
    assert note.startswith("swap on /srv/by-hand was on, and nothing that a boot starts names it")


def test_starting_a_service_does_not_bring_it_back(story: Story) -> None:
    """Each start wants sysinit.target, and that swap.target with all that systemd knows of it."""
    story.machine.ssh("systemd-run -q --wait true")
    assert on(story.machine) == []


def test_it_is_off_after_a_reboot_and_the_kernel_is_as_it_must(story: Story) -> None:
    story.machine.reboot()
    assert on(story.machine) == []
    for name in ("net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables", "net/ipv4/ip_forward"):
        assert story.machine.read(f"/proc/sys/{name}") == "1\n"
    again = go(story.machine, "off")
    assert (again["changed"], again["steps"], again["state"]) == (False, [], "converged")


def test_all_of_it_is_given_back(story: Story) -> None:
    outcome = go(story.machine, "on")
    assert outcome["says"] == []
    assert on(story.machine) == sorted(AREAS)
    assert story.machine.read("/etc/fstab") == story.fstab
    priorities = dict(line.split()[::4] for line in story.machine.read("/proc/swaps").splitlines()[1:])
    assert (priorities["/srv/by-hand"], priorities["/swapfile"]) == ("7", "5")
    asked = "systemctl is-enabled var-own.swap srv-packaged.swap dphys-swapfile.service swap.target"
    assert story.machine.ssh(asked).out.split() == ["enabled", "enabled", "enabled", "static"]
    assert story.machine.ssh(f"test -e {RECORD}", check=False).rc == 1
    before, after = (
        [line for line in text.splitlines() if "/etc/" in line] for text in (story.before, files(story.machine))
    )
    assert after == before
    assert go(story.machine, "on")["changed"] is False
