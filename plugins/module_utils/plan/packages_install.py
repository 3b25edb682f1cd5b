# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps that install packages and hold them.

Each step declares what the look then sees, so that check mode goes on behind it. Every hold that is taken off is a
debt until it is on again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.errors import Refused
from ..core.plan import Past, Todo
from ..core.step import Effect, Step, command_line, run
from .debts import debt
from .package_rows import Package
from .packages import Verdict, Wanted, asks_installed, is_there, listed, settle_holds, tool_of
from .packages_index import REFRESHED, is_fresh, not_offered
from .packages_seen import Packages, Work


class _Shown:
    """What the look will see after the steps so far, and the effects that say so."""

    def __init__(self, now: Packages) -> None:
        self.manager, self.names, self.locks = now.manager, now.names, now.locks
        self.installed = dict(now.installed)

    def change(self, packages: Iterable[Package], gone: Iterable[str] = ()) -> tuple[Effect, ...]:
        """These are installed so, those are gone: the effects."""
        self.installed.update({package.name: package for package in packages})
        for name in gone:
            self.installed.pop(name, None)
        question = command_line(asks_installed(self.manager, self.names))
        effects = (Effect("answers", question, tool_of(self.manager).render(self.installed.values())),)
        lock_file = tool_of(self.manager).lock_file
        return (*effects, Effect("file", lock_file, self.locks)) if lock_file else effects

    def hold(self, names: Iterable[str], held: bool) -> tuple[tuple[Package, ...], tuple[Effect, ...]]:
        """These are held, or no longer: the packages and the effects."""
        packages = tuple(self.installed[name]._replace(held=held) for name in names)
        tool = tool_of(self.manager)
        self.locks = (tool.lock if held else tool.unlock)(self.locks, packages)
        return packages, self.change(packages)


def refuse_image(now: Packages, names: Iterable[str]) -> None:
    """Refuse to install on a host whose packages come with its image."""
    image = now.distribution.image
    if image:
        raise Refused(
            f"{now.distribution.words}: packages of this host change with {image} and a new deployment, which is not "
            f"done here: put {', '.join(names)} into its image"
        )


def install(
    todo: Todo,
    now: Packages,
    past: Past,
    wanted: tuple[Wanted, ...],
    *,
    hold: bool = False,
    may_go: tuple[str, ...] = (),
    instead_of: tuple[str, ...] = (),
    effects: tuple[Effect, ...] = (),
    disruption: str = "none",
    owes: tuple[str, ...] = (),
    pays: tuple[str, ...] = (),
    barrier: bool = False,
    simulate: bool = True,
    lift: str = "",
) -> Work:
    """Plan that the packages are installed, in one transaction, and held.

    Ours that are held are unheld first and held again after, which is a debt; those wanted at any version get no hold.
    `may_go`: globs of packages that apt may take away or change with them; a transaction that would touch others is a
    failed step, found by a simulation (without `simulate`, by apt itself). `instead_of`: packages that go in the same
    transaction, where they are installed. `lift`: a repository whose excludes do not count. `effects`, `owes` and
    `disruption` are of the installing step, whose effects also hold what the look of `now` then sees; `pays` and a
    `barrier` are of the last step. Raises Refused where packages come with the image.
    """
    names = tuple(want.name for want in wanted if want.version)
    if not all(is_there(now, want) for want in wanted):
        refuse_image(now, [want.name for want in wanted])
        now = _repair(todo, now, past, wanted, pays)
    due = tuple(want for want in wanted if not is_there(now, want))
    if not due:
        settle_holds(todo, now, past, names, hold, pays)
        return Work()
    gone = tuple(name for name in instead_of if name in now.installed)
    verdict = Verdict()
    if simulate and now.manager == "apt":
        from .packages_simulation import simulated

        verdict = simulated(past, due, gone, may_go)
    if verdict.problem:
        not_offered(todo, f"install {listed(due)}", verdict.problem, "" if is_fresh(past) else REFRESHED)
        return Work(stuck=True)
    shown = _Shown(now)
    again = _lift_holds(todo, shown, tuple(want.name for want in due), gone, verdict)
    kept = tuple(dict.fromkeys((*(names if hold else ()), *again)))
    terms = {"disruption": disruption, "owes": owes, **({} if kept else {"pays": pays, "barrier": barrier})}
    todo.add(_transaction(shown, (*due, *_locker(now, bool(kept))), gone, verdict, effects, lift, **terms))
    _hold(todo, shown, kept, pays, barrier)
    return Work(planned=True)


def _transaction(
    shown: _Shown,
    wanted: tuple[Wanted, ...],
    gone: tuple[str, ...],
    verdict: Verdict,
    effects: tuple[Effect, ...],
    lift: str,
    **terms: Any,
) -> Step:
    """The installing step; `effects` are those beside what the look of the packages sees, `terms` as of `run`."""
    tool = tool_of(shown.manager)
    goes = tuple(dict.fromkeys((*gone, *verdict.removed)))
    had = {name: package.version for name, package in shown.installed.items()}
    changed = [package._replace(held=False) for package in verdict.changed if package.name in had]
    come = [*changed, *(Package(want.name, want.version or had.get(want.name, "0")) for want in wanted)]
    action = f"install {listed(wanted)}{', in place of ' + ', '.join(goes) if goes else ''}"
    program, *words = tool.install((*wanted, *verdict.along), gone)
    argv = (program, *(tool.lift(lift) if lift else ()), *words)
    return run(argv, action, ok=tool.installed_ok, effects=(*shown.change(come, goes), *effects), **terms)


def hold_again(todo: Todo, now: Packages, due: tuple[str, ...], pays: tuple[str, ...] = ()) -> None:
    """Plan that these installed packages are held (see `settle_holds`)."""
    locker = _locker(now, True)
    shown = _Shown(now)
    if locker:
        come = [Package(want.name, "0") for want in locker]
        todo.add(
            run(
                tool_of(now.manager).install(locker, ()),
                f"install {listed(locker)}",
                ok=tool_of(now.manager).installed_ok,
                effects=shown.change(come),
            )
        )
    _hold(todo, shown, due, pays)


# -- holds


def _locker(now: Packages, needed: bool) -> tuple[Wanted, ...]:
    """The package without which dnf holds nothing, where it is needed and missing."""
    name = tool_of(now.manager).locker
    return (Wanted(name),) if needed and name and name not in now.installed else ()


def _lift_holds(
    todo: Todo, shown: _Shown, due: tuple[str, ...], gone: tuple[str, ...], verdict: Verdict
) -> tuple[str, ...]:
    """Take the holds off what changes or goes; the names that are to be held again, which is a debt until then."""
    changed = {package.name for package in verdict.changed}
    touched = {*due, *changed, *gone, *verdict.removed}
    lifted = tuple(name for name, package in shown.installed.items() if package.held and name in touched)
    again = tuple(name for name in lifted if name not in {*gone, *verdict.removed})
    if lifted:
        packages, effects = shown.hold(lifted, False)
        todo.add(
            run(
                tool_of(shown.manager).unhold(packages),
                f"take the hold off {', '.join(lifted)}",
                effects=effects,
                owes=tuple(debt("hold", name) for name in again),
            )
        )
    return again


def _hold(todo: Todo, shown: _Shown, names: tuple[str, ...], pays: tuple[str, ...] = (), barrier: bool = False) -> None:
    names = tuple(name for name in names if not shown.installed[name].held)
    if not names:
        return
    packages, effects = shown.hold(names, True)
    todo.add(
        run(
            tool_of(shown.manager).hold(packages),
            f"hold {', '.join(f'{package.name} at {package.version}' for package in packages)}",
            effects=effects,
            pays=(*(debt("hold", name) for name in names), *pays),
            barrier=barrier,
        )
    )


def release(todo: Todo, now: Packages, names: tuple[str, ...]) -> None:
    """Plan that the holds of these packages come off for good, where they are installed and held."""
    due = tuple(name for name in names if name in now.installed and now.installed[name].held)
    if due:
        packages, effects = _Shown(now).hold(due, False)
        argv = tool_of(now.manager).unhold(packages)
        todo.add(run(argv, f"take the hold off {', '.join(due)}", effects=effects))


# -- what a killed dpkg left


def _repair(todo: Todo, now: Packages, past: Past, wanted: tuple[Wanted, ...], pays: tuple[str, ...]) -> Packages:
    """Finish what a killed dpkg left, before anything else; the snapshot after it. It `pays` where that is all."""
    if now.manager != "apt":
        return now
    from .package_rows import JOURNAL, parse_dpkg
    from .packages_apt import ALL, CONFIGURE

    everything = parse_dpkg(past.ask(ALL).out)
    broken = [package.name for package in everything if not package.whole]
    if not (broken or now.journal):
        return now
    whole = {name: package._replace(whole=True) for name, package in now.installed.items()}
    after = now._replace(installed=whole, journal=())
    listing = tool_of("apt").render(package._replace(whole=True) for package in everything)
    effects = (
        Effect("answers", command_line(ALL), listing),
        *_Shown(after).change(()),
        *(Effect("gone", f"{JOURNAL}/{name}") for name in now.journal),
    )
    ends = all(is_there(after, want) for want in wanted)
    which = f": configure {', '.join(broken)}" if broken else ""
    action = f"finish what an interrupted dpkg left{which}"
    todo.add(run(CONFIGURE, action, effects=effects, pays=pays if ends else (), barrier=True))
    return after
