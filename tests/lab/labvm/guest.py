# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way into the guest: ssh's and Ansible's configuration, commands, and waiting for the guest with a bound."""

from __future__ import annotations

import shlex
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from . import image, recipe
from .errors import LabError

ALIASES = {recipe.USER: "lab", "root": "lab-root"}


class Done(NamedTuple):
    """What a command in the guest did."""

    rc: int
    out: str
    err: str


def write_config(room: Path, image_dir: Path, port: int) -> Path:
    """ssh's configuration for the hosts `lab` (the ordinary user) and `lab-root`. Returns its path."""
    (room / "cp").mkdir(exist_ok=True)
    lines = [
        "Host lab lab-root",
        "  HostName 127.0.0.1",
        f"  Port {port}",
        f"  HostKeyAlias {image.HOST_KEY_ALIAS}",
        f"  UserKnownHostsFile {image_dir / 'known_hosts'}",
        "  StrictHostKeyChecking yes",
        "  IdentitiesOnly yes",
        "  PasswordAuthentication no",
        "  BatchMode yes",
        "  ConnectTimeout 30",
        "  ServerAliveInterval 15",
        "  ServerAliveCountMax 8",
        "  LogLevel ERROR",
        "  ControlMaster auto",
        "  ControlPersist 600",
        f"  ControlPath {room / 'cp'}/%r",
    ]
    for user, alias in ALIASES.items():
        lines += [f"Host {alias}", f"  User {user}", f"  IdentityFile {image_dir / f'id_{user}'}"]
    path = room / "ssh_config"
    path.write_text("\n".join(lines) + "\n")
    return path


def write_inventory(room: Path, config: Path) -> Path:
    """An inventory with the one host `lab`: the ordinary user, become by sudo. Returns its path."""
    path = room / "inventory.yml"
    path.write_text(
        "all:\n  hosts:\n    lab:\n"
        "      ansible_connection: ssh\n      ansible_host: lab\n"
        f"      ansible_ssh_args: -F {config} -o ControlMaster=auto -o ControlPersist=600s\n"
        f"      ansible_control_path_dir: {room / 'cp'}\n"
        "      ansible_pipelining: true\n      ansible_python_interpreter: /usr/bin/python3\n"
        "      ansible_become_method: sudo\n"
    )
    return path


def run(config: Path, command: str, user: str, timeout: float, stdin: str = "") -> Done:
    """Runs a shell command in the guest. Raises LabError when ssh itself has not answered within `timeout` seconds."""
    # Files, not pipes: the connection that ssh keeps open in the background would hold the pipes open.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            rc = subprocess.run(
                ("ssh", "-F", str(config), ALIASES[user], command),
                input=stdin.encode(),
                stdout=out,
                stderr=err,
                timeout=timeout,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            raise LabError(
                f"`{command}` did not end within {timeout:g} s in the lab's machine: see its console"
            ) from None
        out.seek(0)
        err.seek(0)
        return Done(rc, out.read().decode(errors="replace"), err.read().decode(errors="replace"))


def hang_up(config: Path) -> None:
    """Ends the background connections, Ansible's too: after a reboot or a revert they lead nowhere."""
    for control in (config.parent / "cp").iterdir():
        subprocess.run(
            ("ssh", "-F", str(config), "-o", f"ControlPath={control}", "-O", "exit", "lab"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        control.unlink(missing_ok=True)


def answers(port: int, patience: float = 3) -> bool:
    """Whether an ssh server greets on the port: QEMU accepts at once, whatever the guest does."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=patience) as connection:
            connection.settimeout(patience)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def quote(argv: tuple[str, ...]) -> str:
    return " ".join(shlex.quote(word) for word in argv)


def sleep_until(end: float, step: float = 0.3) -> bool:
    """Sleeps a step; False when the time is up."""
    time.sleep(step)
    return time.monotonic() < end
