# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet page's style sheet."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #fafaf8; --card: #ffffff; --ink: #1c1e21; --soft: #5b626b; --line: #d9dce0; --link: #0b57a4;
  --good: #1a6b35; --wait: #855300; --bad: #ab1f1f; --off: #5b4a8a;
  --good-ground: #e5f3e9; --wait-ground: #fbf0d9; --bad-ground: #fbe7e6; --off-ground: #ece8f6;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #15171a; --card: #1d2024; --ink: #e6e8eb; --soft: #a0a8b2; --line: #363b42; --link: #7fb8f5;
    --good: #7fd39a; --wait: #efc068; --bad: #f49a94; --off: #bcaaf0;
    --good-ground: #1a3323; --wait-ground: #392c12; --bad-ground: #3e1f1e; --off-ground: #2b2540;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem clamp(1rem, 4vw, 3rem) 4rem; max-width: 84rem;
  background: var(--ground); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif;
}
h1 { margin: 0; font-size: 1.7rem; }
h2 { margin: 2.2rem 0 .8rem; font-size: 1.25rem; }
h3 { margin: 1.2rem 0 .5rem; font-size: 1.05rem; }
h4 { margin: 0 0 .5rem; font-size: 1rem; }
p { margin: .4rem 0; max-width: 75ch; }
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -100vw; }
.skip:focus { position: static; }
.at, .quiet { color: var(--soft); }
.tiles { display: flex; flex-wrap: wrap; gap: .6rem; margin: 1.2rem 0 0; }
.tile { padding: .5rem .9rem; border: 1px solid var(--line); border-radius: .4rem; background: var(--card); }
.tile dt { color: var(--soft); font-size: .85rem; }
.tile dd { margin: 0; font-size: 1.4rem; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; border: 1px solid var(--line); border-radius: .4rem; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { padding: .4rem .7rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
tbody tr:last-child > * { border-bottom: 0; }
thead th { color: var(--soft); font-weight: 600; white-space: nowrap; }
.matrix td, .matrix th { white-space: nowrap; }
.matrix th:first-child { position: sticky; left: 0; background: var(--card); }
.badge { padding: .05rem .5rem; border-radius: 1rem; font-size: .85rem; white-space: nowrap; font-weight: 500; }
.converged { color: var(--good); } .badge.converged { background: var(--good-ground); }
.progressing { color: var(--wait); } .badge.progressing { background: var(--wait-ground); }
.failed { color: var(--bad); } .badge.failed { background: var(--bad-ground); }
.unreachable, .unknown { color: var(--off); }
.badge.unreachable, .badge.unknown { background: var(--off-ground); }
.matrix td a { color: inherit; }
.none { color: var(--soft); }
.host { margin: .6rem 0; padding: .2rem 1rem; border: 1px solid var(--line); border-radius: .4rem;
  background: var(--card); }
.host[open] { padding-bottom: .8rem; }
summary { padding: .5rem 0; cursor: pointer; }
summary h3 { display: inline; margin: 0 .6rem 0 0; }
article { margin: .8rem 0; padding: .2rem 0 .2rem 1rem; border-left: 3px solid var(--line); }
ul, ol { margin: .3rem 0; padding-left: 1.4rem; }
li, td, p, h4 { overflow-wrap: anywhere; }
h3, th { overflow-wrap: break-word; }
.name { white-space: nowrap; }
.message { min-width: 16rem; }
.note { color: var(--soft); }
figure { margin: .6rem 0; }
figcaption { font: .85rem/1.4 ui-monospace, monospace; color: var(--soft); overflow-wrap: anywhere; }
pre { margin: .2rem 0 0; padding: .6rem .8rem; overflow-x: auto; border: 1px solid var(--line); border-radius: .3rem;
  font: .85rem/1.45 ui-monospace, monospace; }
pre span { display: block; min-height: 1em; }
.add { color: var(--good); background: var(--good-ground); }
.del { color: var(--bad); background: var(--bad-ground); }
.at { color: var(--soft); }
.pair { display: grid; grid-template-columns: max-content 1fr; gap: .1rem .8rem; margin: .2rem 0 0; }
.pair dt { color: var(--soft); }
.pair dd { margin: 0; overflow-wrap: anywhere; }
code { font: .9em ui-monospace, monospace; white-space: pre-wrap; }
@media (max-width: 40rem) { .matrix th:first-child { position: static; } }
@media print {
  body { padding: 0; max-width: none; font-size: 10pt; }
  .host, tr, figure { break-inside: avoid; }
  .wide, pre { overflow: visible; }
  pre { white-space: pre-wrap; }
  .skip { display: none; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""
