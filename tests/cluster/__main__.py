# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs, for a real machine.

usage: python3 -m tests.cluster VERSION kubeadm|kubelet|kubectl ARGUMENT...
       python3 -m tests.cluster export FOLDER NODE...           with cryptography: make a cluster
       python3 -m tests.cluster VERSION serve FOLDER PORT       without it: serve that cluster
       python3 -m tests.cluster ask FOLDER METHOD [JSON]...     its admin: token, expire, taints, fault hang true ...

VERSION is 1.36.2 for example. FOLDER is that of one cluster: its certificates, its state, and its admin's socket.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(words: list[str]) -> int:
    if words[:1] == ["export"] and len(words) > 2:
        from .authority import Made

        Made().export(Path(words[1]), words[2:])
        return 0
    if words[:1] == ["ask"] and len(words) > 2:
        from .process import ask

        print(json.dumps(ask(Path(words[1]), words[2], *map(_value, words[3:]))))
        return 0
    if len(words) < 2:
        print(__doc__, file=sys.stderr)
        return 64
    version, program, *arguments = words
    if program == "serve":
        from .process import serve

        serve(Path(arguments[0]), int(arguments[1]), version)
        return 0
    return _run(version, program, arguments)


def _value(word: str) -> object:
    try:
        return json.loads(word)
    except ValueError:
        return word


def _run(version: str, program: str, arguments: list[str]) -> int:
    from .real import RealWorker, run_kubelet

    worker = RealWorker(version)
    if program == "kubelet":
        if "--version" in arguments:
            print(f"Kubernetes v{version}")
            return 0
        return run_kubelet(worker)
    if program == "kubeadm":
        from .kubeadm import kubeadm

        asks = arguments[:1] == ["reset"] and not {"--force", "-f"} & set(arguments)
        answer = kubeadm(worker, ("kubeadm", *arguments), sys.stdin.read() if asks else "")
    elif program == "kubectl":
        from .kubectl import kubectl

        answer = kubectl(worker, ("kubectl", *arguments))
    else:
        print(__doc__, file=sys.stderr)
        return 64
    sys.stdout.write(answer.out)
    sys.stdout.flush()
    sys.stderr.write(answer.err)
    return answer.rc


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
