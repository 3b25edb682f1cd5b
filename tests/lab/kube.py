# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine as one that may become a worker: Kubernetes' package repository, as the world reaches it; a cluster.

The repository is the image's (labvm/kubernetes.py): signed, over https, behind a redirect, under its true address. The
control plane is the one of tests/cluster, as a service of the machine itself.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shlex
import tarfile
from pathlib import Path
from typing import Any

from labvm import kubernetes, recipe
from labvm.machine import Machine

TESTS = Path(__file__).resolve().parents[1]
SERVER = f"{kubernetes.PLACE}/server.py"
SERVE = f"""\
import functools, http.server, ssl

class Site(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # apt asks for all it wants on one connection

    def do_GET(self):
        if self.headers["Host"] != "{kubernetes.HOSTS[0]}":
            return super().do_GET()
        self.send_response(302)
        self.send_header("Location", "https://{kubernetes.HOSTS[1]}" + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain("{kubernetes.SERVING}")
server = http.server.ThreadingHTTPServer(("", 443), functools.partial(Site, directory="{kubernetes.PLACE}"))
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def service(machine: Machine, name: str, command: str) -> None:
    """A service that runs now and from each boot on."""
    text = (
        f"[Unit]\nDescription={name}\n\n[Service]\nExecStart={command}\nRestart=always\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )
    machine.ssh(f"cat >/etc/systemd/system/{name}.service", stdin=text)
    machine.ssh(f"systemctl daemon-reload && systemctl enable --quiet --now {name}.service")


def offer(machine: Machine) -> None:
    """Let the machine reach the package repository of Kubernetes."""
    machine.ssh(f"echo '127.0.0.1 {' '.join(kubernetes.HOSTS)}' >>/etc/hosts")
    machine.ssh(f"cat >{SERVER}", stdin=SERVE)
    service(machine, "lab-packages", f"/usr/bin/python3 {SERVER}")


# -- a cluster

CLUSTER = f"{recipe.STORE}/cluster"
PORT = 6443
PROGRAM = f"cd {Path(kubernetes.CODE).parent} && exec python3 -m tests.cluster"


def bring_code(machine: Machine) -> None:
    """Put the stand-ins there that the packages' kubeadm and kubelet call."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as out:
        for path in sorted((TESTS / "cluster").glob("*.py")):
            out.add(path, f"tests/cluster/{path.name}")
    unpack = f"base64 -d | tar -xz -C {Path(kubernetes.CODE).parent}"
    machine.ssh(unpack, stdin=base64.encodebytes(packed.getvalue()).decode())


def raise_cluster(machine: Machine, *nodes: str) -> None:
    """A cluster at https://127.0.0.1:6443, for nodes of these names."""
    bring_code(machine)
    machine.ssh(f"({PROGRAM} export {CLUSTER} {' '.join(nodes)})")
    service(machine, "lab-cluster", f"/bin/sh -c '{PROGRAM} {kubernetes.PATCH} serve {CLUSTER} {PORT}'")


def ask(machine: Machine, method: str, *arguments: Any) -> Any:
    """What the cluster's admin does or sees."""
    words = " ".join(shlex.quote(json.dumps(word)) for word in arguments)
    return json.loads(machine.ssh(f"({PROGRAM} ask {CLUSTER} {method} {words})").out)


def allow(machine: Machine, url: str, pin: str) -> None:
    """Root's own configuration allows the cluster."""
    text = f'[kubernetes]\nallowed_clusters = "{url}#sha256:{pin}"\n'
    machine.ssh("mkdir -p /etc/bcd && chmod 755 /etc/bcd && umask 077 && cat >/etc/bcd/config.toml", stdin=text)


def joins(machine: Machine) -> bool:
    """Whether a kubeadm joins now."""
    return machine.ssh("pgrep -f '^(/usr/bin/python3 )?(/usr/bin/)?kubeadm join'", check=False).rc == 0


# -- who sees a token

WATCH, SEEN = f"{recipe.STORE}/watch.py", "/run/lab-watch.json"
# It is told only what the token hashes to, so that it is no one who shows it. An environment is read once for each
# command line of a process, and kernel threads are left out: an emulated machine has little time to spare.
WATCHER = f"""\
import hashlib, json, os, re, sys, time

WANTED = set(sys.argv[1:])
WORD = re.compile(rb"(?<![a-z0-9])(?:[a-z0-9]{{6}}\\.)?[a-z0-9]{{16}}(?![a-z0-9])")

def read(process, name):
    try:
        with open(f"/proc/{{process}}/{{name}}", "rb") as source:
            return source.read()
    except OSError:
        return b""

def processes():
    return [name for name in os.listdir("/proc") if name.isdigit()]

threads = {{process for process in processes() if not read(process, "cmdline")}}
joins, told, known, said = 0, set(), {{}}, None
while True:
    for process in processes():
        command = b"" if process in threads else read(process, "cmdline")
        joins += b"kubeadm\\0join" in command
        if not command or known.get(process) == command:
            continue
        known[process] = command
        for name, text in (("cmdline", command), ("environ", read(process, "environ"))):
            for word in WORD.findall(text):
                for part in (word, word.rpartition(b".")[2]):
                    if hashlib.sha256(part).hexdigest() in WANTED:
                        told.add(f"{{name}} of {{process}}: " + command.partition(b"\\0")[0].decode(errors="replace"))
    if (joins, len(told)) != said:
        said = joins, len(told)
        with open("{SEEN}.new", "w") as out:
            json.dump([joins, sorted(told)], out)
        os.replace("{SEEN}.new", "{SEEN}")
    time.sleep(0.5)
"""


def parts(token: str) -> tuple[str, str]:
    """The token, and its secret part."""
    return token, token.rpartition(".")[2]


def watch(machine: Machine, token: str) -> None:
    """Look at the command lines and environments of all processes from now on."""
    machine.ssh(f"cat >{WATCH}", stdin=WATCHER)
    digests = " ".join(hashlib.sha256(part.encode()).hexdigest() for part in parts(token))
    service(machine, "lab-watch", f"/usr/bin/python3 {WATCH} {digests}")


def seen(machine: Machine) -> tuple[int, list[str]]:
    """How often a kubeadm that joins was seen since, and who showed the token."""
    joins, told = json.loads(machine.read(SEEN))
    return int(joins), list(told)


def traces(machine: Machine, token: str) -> list[str]:
    """The files that have the token or its secret part, and the journal when it has."""
    patterns = "".join(f"{part}\n" for part in parts(token))
    files = machine.ssh(
        "grep -rlsF -D skip -f - /etc /var /run /tmp /root /home", check=False, stdin=patterns, timeout=300
    )
    journal = machine.ssh(
        "cat >/dev/shm/p; journalctl -q --no-pager | grep -cF -f /dev/shm/p; rm /dev/shm/p", stdin=patterns
    )
    return files.out.split() + (["the journal"] if journal.out.strip() != "0" else [])
