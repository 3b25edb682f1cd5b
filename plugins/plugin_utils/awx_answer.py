# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why AWX did not do what it was asked, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

NEXT = {
    401: "see bcd_awx_token, or bcd_awx_username and bcd_awx_password",
    403: "this account is to be an administrator of the organization",
    404: "see bcd_awx_api, /api/controller/v2 behind a platform gateway; else AWX is too old, take 21 or newer",
}


def shown(address: str) -> str:
    """An address, or a text with some, without the login that one may have before its host."""
    return re.sub(r"//[^/@\s]*@", "//", address)


def words(answer: Any) -> str:
    """What AWX says in an answer, as one line: `playbook: Playbook not found for project.`"""
    if isinstance(answer, Mapping):
        return "; ".join(f"{name}: {words(value)}" for name, value in answer.items())
    if isinstance(answer, (list, tuple)):
        return ", ".join(words(each) for each in answer)
    return str(answer).strip()


def problem(answer: Mapping[str, Any], what: str) -> str:
    """Why a call of `ansible.builtin.uri` did not do `what`, with the next move; "" when it did.

    answer: the registered result, with `status`, -1 where no answer came, `json` where it was JSON, `url` and `msg`. Of
    a loop, all that failed; an item that `says` what it is tells that instead.
    """
    if answer.get("skipped") or answer.get("skip_reason"):
        return ""
    if "results" in answer:
        each = [
            problem(one, one.get(one.get("ansible_loop_var", ""), {}).get("says", what)) for one in answer["results"]
        ]
        return "; ".join(filter(None, each))
    return shown(refused(answer, what))


def refused(answer: Mapping[str, Any], what: str) -> str:
    """Why one call did not do `what`; "" when it did. AWX answers nothing, or JSON: a page is somebody else's."""
    status = int(answer.get("status") or -1)
    where = answer.get("url", "its address")
    kind = str(answer.get("content_type") or "")
    if 200 <= status < 300:
        if not kind or "json" in kind:
            return ""
        return f"cannot {what}: {where} answered {kind}, which AWX does not: see bcd_awx_url and bcd_awx_api"
    said = words(answer.get("json") or answer.get("msg") or "no reason given").rstrip(".")
    if status == -1:
        return f"cannot {what}: no answer from {where} ({said}): see bcd_awx_url, and whether this machine reaches it"
    if 300 <= status < 400:
        return f"cannot {what}: {where} sends on to {answer.get('location', 'elsewhere')}: see bcd_awx_url"
    if status == 400 and "Playbook not found" in said:
        said += ": see bcd_awx_playbooks, then the project's branch and its last sync"
    return f"cannot {what}: {where} answered {status} ({said})" + (f": {NEXT[status]}" if status in NEXT else "")
