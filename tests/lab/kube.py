# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine as one that may become a worker: the package repository of Kubernetes, as the world reaches it.

The repository is the image's (labvm/kubernetes.py): signed, over https, behind a redirect, under its true address.
"""

from __future__ import annotations

from pathlib import Path

from labvm import kubernetes
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
