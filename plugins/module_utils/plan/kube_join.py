# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The join itself: kubeadm makes a worker of a machine that is no member of a cluster.

The token is in no plan, on no command line and in no environment: the program that runs kubeadm reads the
configuration from its standard input, and its file goes with it, also when the pass that started it is killed.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.errors import NotReady, Refused
from ..core.plan import Past, Todo
from ..core.secret import Secret
from ..core.step import Effect, Step, fail, known_after, remove, run
from ..core.unknown import is_known
from . import join_faults
from .debts import debt
from .join_configuration import OLDEST, VALIDATES, render
from .k8s_join_settings import TOKEN
from .kube_entry import Entry, clean, masked
from .kube_seen import BOOTSTRAP, CLEAN, JOIN_FILE, KUBELET_CONF, KUBELET_CONFIG, RECORD, SERVICE, Settings
from .packages_index import said
from .program_version import release_in
from .systemd import control
from .unit_names import K8S_JOIN as UNIT

LANE = "join"
CLEANING = "clean"
OUTCOME = "member"  # the lane of what came of the join
JOINED = "the machine has joined"  # a clause
MADE_UP = "abcdef.0123456789abcdef"  # a token's form, for questions
KUBEADM = ("kubeadm", "version", "-o", "short")
TIMEOUT = 540.0  # seconds: what a kubeadm before 1.31 takes by itself, of which it lets only the discovery be bounded
REGISTERS = 60.0  # seconds for the Node to be seen

# Of what kubeadm says only its errors are kept, in memory: it may quote the token, and its pipe must not end before it.
# The kubelet's bootstrap credentials have the token too, and not every kubeadm that fails takes them away.
SCRIPT = r"""umask 077
[ -e "$2" ] || ours=$2
trap 'rm -f -- "$1" ${ours:+"$ours"}' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
cat >"$1" || exit 1
said=$(kubeadm join --config "$1" 2>&1)
status=$?
told=$(printf '%s\n' "$said" | grep -v -e '^[EIW][0-9]' -e stack -e likely -e Unfortunately -e ignore-preflight)
errors=$(printf '%s\n' "$told" | grep -e ERROR -e rror -e 'nvalid value' -e 'not healthy')
printf '%s\n' "${errors:-$told}" | tail -n 9 >&2
exit $status"""


class Kubeadm(NamedTuple):
    """kubeadm's minor release, 31 of 1.31; `here`: it is installed, and said so itself."""

    minor: int
    here: bool


def plan(todo: Todo, want: Settings, node: str, now: Entry, past: Past) -> None:
    """Plan the join in a lane of its own, behind all that it stands on; or say why the last one came to nothing."""
    if now.running:
        why = f"{UNIT}: the kubeadm join of a pass that was killed still runs: it ends by itself, and then run again"
        todo.wait("NotReady", why)
        return
    token = past.given.secrets.get(want.reference)
    tries = attempt(token)
    if tries in past.vain:
        _came_to_nothing(todo, want, node, now, past)
        return
    known = join_faults.reason(past.tried[tries], want, node) if past.tried.get(tries) else None
    if known and known.token:  # no pass tries it again
        _came_to_nothing(todo, want, node, now, past)
        return
    with todo.lane(LANE):
        _join(todo, want, node, now, past)


def attempt(token: Secret | None) -> str:
    """Under which name a join with the token is remembered, which does not tell the token."""
    return debt("join", token.digest if token else "unknown")


def _came_to_nothing(todo: Todo, want: Settings, node: str, now: Entry, past: Past) -> None:
    """Clean up in the same pass, since the files of the kubelet's have the token in them; then say why."""
    tries = attempt(past.given.secrets.get(want.reference))
    if CLEAN in past.owed:
        with todo.lane(CLEANING):
            clean(todo, now.leftovers, now.kubelet, same_pass=tries in past.vain)
    found = join_faults.reason(past.tried.get(tries, ""), want, node, now.said)
    with todo.lane(OUTCOME):
        message = f"{UNIT}: {found.message}"
        todo.add(fail(f"see this machine a member of {want.api_server}", message, retryable=found.retryable))


def _join(todo: Todo, want: Settings, node: str, now: Entry, past: Past) -> None:
    kubeadm = _kubeadm(want, past)
    token = past.given.secrets.get(want.reference)
    if token is not None and not TOKEN.fullmatch(token.reveal()):
        raise Refused(
            f"{UNIT}: what was given as the bootstrap token has not the form of one (6 and 16 lower-case letters and "
            f"digits with a dot between): see what {want.reference!r} gives"
        )
    labels = _labels(want, now, past)
    _validate(render(want, node, labels, kubeadm.minor, MADE_UP), kubeadm, past)
    if now.leftovers:
        clean(todo, now.leftovers, now.kubelet)
    if now.record:
        todo.add(remove(RECORD, f"remove {RECORD}: this machine is no member any more"))
    if now.kubelet.is_masked:
        todo.add(masked())
        return
    if now.kubelet.enabled in ("disabled", "enabled-runtime"):
        todo.add(control("enable", SERVICE))
    todo.add(_step(want, node, render(want, node, labels, kubeadm.minor), attempt(token)))
    todo.add(known_after(f"the Node {node}", JOINED, lane=LANE))


def _labels(want: Settings, now: Entry, past: Past) -> dict[str, str]:
    """What the Node registers with; what is not known yet it gets as a member."""
    from .kube_labels import wanted

    return wanted(want, past.given, now.gpus if is_known(now.gpus) else None)


def _kubeadm(want: Settings, past: Past) -> Kubeadm:
    """Which kubeadm joins: the one that is here, or that the packages bring."""
    answer = past.ask(KUBEADM)
    if is_known(answer) and answer.rc != 127:
        found = release_in(answer.out)
        if answer.rc or not found:
            raise NotReady(f"{UNIT}: {' '.join(KUBEADM)} says {said(answer)}: install kubeadm again")
        if found < (1, OLDEST):
            raise Refused(f"{UNIT}: this kubeadm is {answer.out.strip()}, and 1.{OLDEST} is the first that can be used")
        return Kubeadm(found[1], True)
    return Kubeadm(int(want.minor.partition(".")[2] or OLDEST), False)


def _validate(text: str, kubeadm: Kubeadm, past: Past) -> None:
    """Let kubeadm judge the configuration, which a join itself takes with faults: an unknown key is only a warning."""
    if not kubeadm.here or kubeadm.minor < VALIDATES:
        return
    answer = past.ask(("kubeadm", "config", "validate", "--config", "{join}"), (("join", text),))
    if answer.rc and not any(words in answer.err for words in ("unknown command", "unknown flag")):
        raise Refused(
            f"{UNIT}: kubeadm does not take the configuration of the join: {said(answer)}: correct the settings"
        )


def _step(want: Settings, node: str, text: str, tries: str) -> Step:
    return run(
        ("sh", "-c", SCRIPT, "kubeadm-join", JOIN_FILE, BOOTSTRAP),
        _action(want, node),
        timeout=TIMEOUT,
        stdin=text,
        secret=want.reference,
        tries=tries,
        barrier=True,
        settle=REGISTERS,
        owes=(CLEAN,),
        effects=(Effect("unknown", KUBELET_CONF, JOINED), Effect("unknown", KUBELET_CONFIG, JOINED)),
    )


def _action(want: Settings, node: str) -> str:
    return f"join {want.api_server} as {node}"
