// Copyright (c) 2026 bettercompute
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
//
// One host in a panel, what leads to a part of the fleet, colours, paper. Stands behind report_page_rows.js, and uses its names.

// -- one host, in a panel: its part of the page, with the stories in the place of the links to them

const NAMELESS = "<its name>"; // stands for a host's own name where several hosts say the same
const panel = document.createElement("dialog");
panel.id = "panel";
panel.setAttribute("aria-labelledby", "panel-name");
const one = make("div", "", { id: "one" }); // what is printed of one host
document.body.append(panel, one);

function named(node, name) {
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode;
    if (text.data.includes(NAMELESS)) text.data = text.data.replaceAll(NAMELESS, name);
  }
  return node;
}

function inside(row, unit) {
  const content = make("div", "", { className: "inside" });
  for (const child of byId(row.part).children) {
    if (child.matches("summary")) continue;
    if (!child.matches(".units")) {
      content.append(child.cloneNode(true));
      continue;
    }
    for (const link of child.querySelectorAll("a")) {
      const story = named(byId(link.hash.slice(1)).querySelector("article").cloneNode(true), row.name);
      if (link.textContent === unit) story.classList.add("here");
      content.append(story);
    }
  }
  return content;
}

function open(row, unit) {
  const top = make("div", "", { className: "top" });
  const doing = make("div");
  const place = found.indexOf(row);
  for (const [word, next] of [["Previous", found[place - 1]], ["Next", found[place + 1]]]) {
    const button = make("button", word, { type: "button", disabled: place < 0 || !next });
    button.addEventListener("click", () => {
      open(next, unit);
      [...panel.querySelectorAll(".top button")].find((each) => each.textContent === word && !each.disabled)?.focus();
    });
    doing.append(button);
  }
  const close = make("button", "Close", { type: "button", autofocus: true });
  close.addEventListener("click", () => panel.close());
  doing.append(close);
  top.append(make("h2", row.name, { id: "panel-name" }), row.line.cells[1].firstChild.cloneNode(true), doing);
  panel.replaceChildren(top, inside(row, unit));
  if (!panel.open) panel.showModal();
  panel.scrollTop = 0;
  const here = panel.querySelector(".here");
  if (here) panel.scrollTop = here.offsetTop - top.offsetHeight - 8;
  view.host = row.name;
  write();
}

panel.addEventListener("close", () => {
  view.host = "";
  write();
});
panel.addEventListener("click", (event) => {
  if (event.target === panel) panel.close(); // beside it
});

body.addEventListener("click", (event) => {
  const cell = event.target.closest("th, td");
  if (!cell || getSelection().toString() || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const row = rows.find((each) => each.line === cell.parentNode);
  if (row && (event.target.closest("a") || cell.cellIndex < 2)) open(row, columns[cell.cellIndex]);
});
body.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !found[at.row]) return;
  event.preventDefault();
  open(found[at.row], columns[at.column]);
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("a.name");
  if (!link || body.contains(link) || event.ctrlKey || event.metaKey) return;
  const row = rows.find((each) => each.part === link.hash.slice(1));
  if (!row) return;
  event.preventDefault();
  open(row);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || panel.open || event.target.closest("input, select, textarea")) return;
  event.preventDefault();
  form.elements.q.focus();
  form.elements.q.select();
});

// -- what leads to a part of the fleet

function leads(place, fragment, label) {
  const button = make("button", place.textContent, { type: "button", className: "plain" });
  button.setAttribute("aria-label", label);
  button.addEventListener("click", () => show(fragment));
  place.replaceChildren(button);
}
for (const tile of document.querySelectorAll(".tile")) {
  const [word, count] = tile.children;
  if (count.textContent === "0") tile.classList.add("zero");
  else leads(count, tile.dataset.show, `${count.textContent} ${word.textContent}: show them`);
}
for (const pool of document.querySelectorAll("[data-pool]:not(tr)")) {
  leads(pool, new URLSearchParams({ pool: pool.dataset.pool }).toString(), `${pool.dataset.pool}: show its hosts`);
}
for (const title of document.querySelectorAll("h3[data-show]")) {
  const button = make("button", "show in the table", { type: "button", className: "plain quiet" });
  button.addEventListener("click", () => show(title.dataset.show));
  title.append(" ", button);
}

// -- light and dark

const theme = make("select", "", { id: "theme" });
theme.append(...["as the system", "light", "dark"].map((word) => make("option", word)));
function paint(word) {
  if (word === "light" || word === "dark") document.documentElement.dataset.theme = word;
  else delete document.documentElement.dataset.theme;
}
theme.addEventListener("change", () => {
  paint(theme.value);
  try {
    localStorage.setItem("bcd-report-theme", theme.value);
  } catch {
    // A browser that keeps nothing for a file: the choice is for this page.
  }
});
try {
  theme.value = localStorage.getItem("bcd-report-theme") ?? theme.value;
} catch {
  // As above.
}
if (theme.selectedIndex < 0) theme.selectedIndex = 0;
paint(theme.value);
const switcher = make("label", "Colours ");
switcher.append(theme);
document.querySelector("header").append(switcher);

// -- paper

addEventListener("beforeprint", () => {
  more(found.length);
  if (!panel.open) return;
  one.replaceChildren(...[...panel.children].map((child) => child.cloneNode(true)));
  one.querySelector("#panel-name")?.removeAttribute("id");
  document.body.classList.add("single");
});
addEventListener("afterprint", () => {
  document.body.classList.remove("single");
  one.replaceChildren();
});

// -- begin

function begin() {
  const fragment = location.hash.slice(1);
  if (fragment && !fragment.includes("=")) {
    const row = rows.find((each) => each.part === fragment);
    if (row) open(row);
    return;
  }
  read(fragment);
  const row = rows.find((each) => each.name === view.host);
  if (row) open(row);
  else if (panel.open) panel.close();
}
form.hidden = false;
draw();
begin();
addEventListener("hashchange", begin);
