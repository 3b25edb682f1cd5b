// Copyright (c) 2026 bettercompute
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The matrix: filter, order, and the keys that walk it. Every row is in the page already; of a large fleet only as many
// are shown as were scrolled to, so that a keystroke costs the same with a thousand hosts as with a hundred.
"use strict";

const SOME = 100; // rows that are shown at a time
const RANKS = ["failed", "unreachable", "unknown", "progressing", "converged", ""];
const CHOICES = ["q", "state", "pool", "site", "class", "unit", "why", "is"];

const byId = (id) => document.getElementById(id);
const table = byId("matrix");
const body = table.tBodies[0];
const form = byId("filter");
const empty = document.querySelector(".empty");
const heads = [...table.tHead.rows[0].cells];
const columns = heads.map((head) => head.textContent);
const natural = new Intl.Collator(undefined, { numeric: true });
const make = (tag, text, more) => Object.assign(document.createElement(tag), { textContent: text ?? "" }, more);

const rows = [...body.rows].map((line, place) => ({
  line,
  place,
  name: line.cells[0].textContent,
  part: line.querySelector("a").hash.slice(1),
  facts: line.dataset,
  why: (line.dataset.why ?? "").split(" "),
  is: (line.dataset.is ?? "").split(" "),
  text: null,
}));
const view = Object.fromEntries([...CHOICES, "sort", "host"].map((key) => [key, ""]));
let found = rows; // what the filter leaves, in order
let shown = 0; // how many of it are in the table
let at = { row: 0, column: 0 }; // the cell that Tab leads to

// -- what a row says

// The host's part of the page, and the stories that it leads to: a search finds an allocation, or a word of a message.
const stories = new Map();
function storyOf(link) {
  const id = link.hash.slice(1);
  if (!stories.has(id)) stories.set(id, byId(id).querySelector("article").textContent);
  return stories.get(id);
}
function textOf(row) {
  if (row.text === null) {
    const part = byId(row.part);
    row.text = [part.textContent, ...[...part.querySelectorAll(".units a")].map(storyOf)].join("\n").toLowerCase();
  }
  return row.text;
}

function rank(row, column) {
  const cell = row.line.cells[column];
  return column === 1 ? RANKS.indexOf(row.facts.state) : RANKS.indexOf(cell.className);
}

function isOfUnit(row) {
  const cell = row.line.cells[columns.indexOf(view.unit)];
  return cell !== undefined && !["converged", ""].includes(cell.className);
}

function fits(row, sought) {
  for (const key of ["state", "pool", "site", "class"]) {
    if (view[key] && (row.facts[key] ?? "") !== view[key]) return false;
  }
  if (view.is && !row.is.includes(view.is)) return false;
  if (view.why) {
    const ends = view.unit ? (each) => each === `${view.unit}:${view.why}` : (each) => each.endsWith(`:${view.why}`);
    if (!row.why.some(ends)) return false;
  } else if (view.unit && !isOfUnit(row)) return false;
  return sought.every((word) => textOf(row).includes(word));
}

// -- the table

function ordered(some) {
  const down = view.sort.startsWith("-");
  const column = columns.indexOf(view.sort.replace(/^-/, ""));
  if (column < 0) return some;
  const isText = column === 0 || columns[column] === "pool";
  const key = isText ? (row) => row.line.cells[column].textContent : (row) => rank(row, column);
  const keyed = some.map((row) => [key(row), row]);
  const compare = isText ? natural.compare : (one, other) => one - other;
  keyed.sort((one, other) => (down ? -1 : 1) * compare(one[0], other[0]) || one[1].place - other[1].place);
  return keyed.map((pair) => pair[1]);
}

// More rows come before their end is in sight: of the table where that scrolls, or of the page.
function follow() {
  const end = () => body.lastElementChild.getBoundingClientRect().bottom;
  while (shown < found.length && end() < 2 * innerHeight) more();
}
table.parentNode.addEventListener("scroll", follow, { passive: true });
addEventListener("scroll", follow, { passive: true });

function more(count = SOME) {
  const next = found.slice(shown, shown + count);
  for (const [number, row] of next.entries()) {
    row.line.setAttribute("aria-rowindex", shown + number + 2);
    for (const link of row.line.querySelectorAll("a")) link.tabIndex = -1;
  }
  shown += next.length;
  body.append(...next.map((row) => row.line));
}

function draw() {
  const sought = view.q.toLowerCase().split(/\s+/).filter(Boolean);
  found = ordered(rows.filter((row) => fits(row, sought)));
  shown = 0;
  body.replaceChildren();
  more();
  table.setAttribute("aria-rowcount", found.length + 1);
  const hosts = `${rows.length} host${rows.length === 1 ? "" : "s"}`;
  byId("count").textContent = found.length === rows.length ? hosts : `${found.length} of ${hosts}`;
  if (empty) empty.hidden = found.length > 0;
  heads.forEach((head, column) => {
    const is = view.sort.replace(/^-/, "") === columns[column];
    if (is) head.setAttribute("aria-sort", view.sort.startsWith("-") ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
  stop(0, 0);
}

// -- the view, and the fragment that says it, so that it can be sent to somebody

function write() {
  const said = new URLSearchParams(Object.entries(view).filter((pair) => pair[1]));
  history.replaceState(null, "", `#${said}`);
}

function read(fragment) {
  const said = new URLSearchParams(fragment);
  for (const key of Object.keys(view)) view[key] = said.get(key) ?? "";
  for (const key of [...CHOICES, "sort"]) if (form.elements[key]) form.elements[key].value = view[key];
  draw();
}

function show(fragment) {
  read(fragment === "all" ? "" : fragment);
  write();
  byId("hosts").scrollIntoView({ block: "start" });
}

form.addEventListener("input", (event) => {
  view[event.target.name] = event.target.value;
  draw();
  write();
});
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => {
  for (const key of [...CHOICES, "sort"]) view[key] = "";
  draw();
  write();
});

function sortBy(name) {
  const next = { [name]: `-${name}`, [`-${name}`]: "" };
  view.sort = next[view.sort] ?? name;
  form.elements.sort.value = view.sort;
  draw();
  write();
}

heads.forEach((head, column) => {
  const button = make("button", columns[column], { type: "button", className: "plain" });
  button.addEventListener("click", () => sortBy(columns[column]));
  head.dataset.word = columns[column]; // on paper
  head.replaceChildren(button);
});

const sorter = make("div", "", { className: "field sorter" });
const order = make("select", "", { name: "sort", id: "f-sort" });
order.append(make("option", "failed first", { value: "" }), ...columns.map((name) => make("option", name, { value: name })));
sorter.append(make("label", "Order", { htmlFor: "f-sort" }), order);
form.querySelector("button").before(sorter);

// -- keys: one stop for Tab, arrows from there

let stopped; // the cell that has it
function stop(row, column) {
  at = { row, column };
  const cell = found[row]?.line.cells[column];
  if (cell === stopped) return; // it would lose the focus
  stopped?.removeAttribute("tabindex");
  stopped = cell;
  cell?.setAttribute("tabindex", "0");
}

const MOVES = {
  ArrowUp: () => [at.row - 1, at.column],
  ArrowDown: () => [at.row + 1, at.column],
  ArrowLeft: () => [at.row, at.column - 1],
  ArrowRight: () => [at.row, at.column + 1],
  PageUp: () => [at.row - 10, at.column],
  PageDown: () => [at.row + 10, at.column],
  Home: (event) => [event.ctrlKey ? 0 : at.row, 0],
  End: (event) => [event.ctrlKey ? found.length - 1 : at.row, columns.length - 1],
};

body.addEventListener("keydown", (event) => {
  const move = MOVES[event.key];
  if (!move || event.altKey || event.metaKey) return;
  event.preventDefault();
  const [row, column] = move(event);
  const next = Math.max(0, Math.min(found.length - 1, row));
  if (next >= shown) more(next - shown + SOME);
  stop(next, Math.max(0, Math.min(columns.length - 1, column)));
  stopped?.focus();
});
body.addEventListener("focusin", (event) => {
  const cell = event.target.closest("th, td");
  if (cell) stop(found.findIndex((row) => row.line === cell.parentNode), cell.cellIndex);
});
table.setAttribute("role", "grid");
table.parentNode.removeAttribute("tabindex");
