# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in as processes of a real machine: a control plane that keeps its state, and its admin."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster import authority, der, process
from tests.cluster.wire import Client

TOP = Path(__file__).resolve().parents[3]
PROGRAM = (sys.executable, "-S", "-m", "tests.cluster")  # -S: without what is installed beside Python


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = authority.Made()
    made.export(tmp_path, ["gpu-01"])
    return tmp_path


@contextmanager
def serving(folder: Path) -> Iterator[None]:
    with subprocess.Popen([*PROGRAM, "1.31.14", "serve", str(folder), "0"], cwd=TOP) as server:
        try:
            process.ask(folder, "pin")
            yield
        finally:
            server.kill()


def test_its_state_outlives_it(folder: Path) -> None:
    with serving(folder):
        assert process.ask(folder, "token") == "abcdef.0123456789abcdef"
        url = process.ask(folder, "url")
        ca = (folder / "ca.crt").read_text()
        assert process.ask(folder, "pin") == der.pin(der.certificates(ca)[0])
        kubelet = Client(url, ca, process.ask(folder, "issue", "gpu-01"))
        node = {"metadata": {"name": "gpu-01", "labels": {"team": "ml"}}, "spec": {}}
        assert kubelet.call("POST", "/api/v1/nodes", node).code == 201
        process.ask(folder, "admin", "kubectl taint node gpu-01 a=b:NoSchedule")
        expired = Client(url, ca, process.ask(folder, "issue", "gpu-01", 1_600_000_000))
        assert expired.call("GET", "/api/v1/nodes/gpu-01").code == 401
    (folder / process.SOCKET).unlink()
    with serving(folder):
        assert process.ask(folder, "labels", "gpu-01") == {"team": "ml"}
        assert process.ask(folder, "taints", "gpu-01") == ["a=b:NoSchedule"]
        process.ask(folder, "fault", "status", 500)
        assert kubelet._replace(server=process.ask(folder, "url")).call("GET", "/api/v1/nodes/gpu-01").code == 500
        with pytest.raises(ValueError, match="not found"):
            process.ask(folder, "admin", "kubectl delete node nobody")
        with pytest.raises(ValueError, match="cannot stop"):
            process.ask(folder, "stop")


def test_the_programs_tell_their_versions() -> None:
    for words, said in (
        (("kubelet", "--version"), "Kubernetes v1.31.14\n"),
        (("kubeadm", "version", "-o", "short"), "v1.31.14\n"),
    ):
        done = subprocess.run([*PROGRAM, "1.31.14", *words], cwd=TOP, capture_output=True, text=True, check=True)
        assert done.stdout == said


def test_keys_are_for_their_owner(folder: Path) -> None:
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*.pem")} == {0o600}
