# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules print, and write to the system's log, of the secrets that they are given: nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.needs_ansible

CHECKOUT = Path(__file__).resolve().parents[3]
TOKEN = "abcdef.0123456789abcdef"
PIN = "8a1f0c3e5b7d9f2a4c6e8b0d1f3a5c7e9b2d4f6a8c0e1b3d5f7a9c2e4b6d8f0a"
# The module, with what it would log on its standard error; systemd's own library is not asked for.
LOGGED = """
import runpy, sys, syslog
sys.modules["systemd"] = None
syslog.syslog = lambda *words: print("LOG", *words, file=sys.stderr)
runpy.run_module("ansible_collections.bettercompute.bcd.plugins.modules." + sys.argv.pop(), run_name="__main__")
"""


def run(module: str, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The result of a module in check mode on this machine, and all that it printed and logged."""
    from ansible.module_utils.common.parameters import PASS_VARS

    given = {**options, "_ansible_check_mode": True, "_ansible_diff": True, "_ansible_verbosity": 4}
    if "inject_invocation" in PASS_VARS:  # an older core always shows the options
        given["_ansible_inject_invocation"] = True
    ran = subprocess.run(
        [sys.executable, "-c", LOGGED, module],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": given}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / ".build")},
    )
    assert "LOG" in ran.stderr, ran.stderr
    return json.loads(ran.stdout), ran.stdout + ran.stderr


@pytest.mark.parametrize("api_server", ["https://127.0.0.1:6443", f"https://{TOKEN}", "no address"])
def test_a_token_is_in_no_result_and_no_log(api_server: str) -> None:
    options = {"api_server": api_server, "ca_cert_sha256": PIN, "token": TOKEN, "join_token_ref": "vault:gpu-pool"}
    result, shown = run("k8s_join", options)
    assert (TOKEN in shown, "0123456789abcdef" in shown) == (False, False)
    assert result["unit"] == "k8s-join"
    assert result["invocation"]["module_args"]["token"] == "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
    # What names it is no secret.
    assert result["invocation"]["module_args"]["join_token_ref"] == "vault:gpu-pool"


@pytest.mark.parametrize("module", ["host_section", "host_plan"])
@pytest.mark.parametrize("secret", [TOKEN, {"data": {"token": TOKEN}}, [TOKEN]])
def test_secrets_are_in_no_result_and_no_log(module: str, secret: Any) -> None:
    result, shown = run(module, {"units": {}, "secrets": {"vault:gpu-pool": secret}, "fail_on": "never"})
    assert (TOKEN in shown, "0123456789abcdef" in shown) == (False, False)
    state = result["section"]["state"]
    assert (state, "vault:gpu-pool" in result["section"]["message"]) == (
        ("FAILED", True) if secret != TOKEN else (state, False)
    )
