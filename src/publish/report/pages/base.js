// What all parts share: the data, elements, the panel. Text is only ever put in as text.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

/** What would be invisible, or turn the text around it, is written out: as the program does. */
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
function visible(text) {
  return text.replace(HIDDEN, (sign) => `⟨U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** An element with attributes and children; strings become text, functions listeners. */
function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(typeof child === "string" ? visible(child) : child);
  }
  return element;
}

const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

/** At most four decimals. */
function num(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  return size !== 0 && (size < 0.001 || size >= 1e9) ? value.toExponential(3) : String(Number(value.toFixed(4)));
}

function took(ms) {
  if (ms < 99.5) return `${ms.toFixed(1)} ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 120000) return `${Math.round(ms / 1000)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.floor(ms / 1000) % 60} s`;
}

function size(bytes) {
  if (bytes < 10000) return `${bytes} bytes`;
  if (bytes < 1e7) return `${Math.round(bytes / 1000)} kB`;
  return `${Math.round(bytes / 1e6)} MB`;
}

/** Tells people who cannot see what changed. */
function say(text) {
  byId("announcement").textContent = text;
}

function copy(text) {
  const area = el("textarea", { readonly: true });
  area.value = text;
  (document.querySelector("dialog[open]") || document.body).append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  say(done ? "copied" : "copying is not allowed here");
}

/** A digest, short to look at and whole to copy. */
function digest(text) {
  return el("span", { class: "digest" },
    el("code", { title: text }, text.slice(0, 16) + "…"),
    el("button", { type: "button", "aria-label": `Copy ${text}`, click: () => copy(text) }, "copy"));
}

function pairs(list) {
  const rows = list.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("table", { class: "params" }, el("tbody", {},
    rows.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, value)))));
}

/** Opens the panel; closing it gives the focus back to where it was. */
function openPanel(title, ...children) {
  byId("panel-title").textContent = visible(title);
  byId("panel-body").replaceChildren(...children.filter(Boolean));
  const panel = byId("panel");
  if (!panel.open) panel.showModal();
  panel.scrollTop = 0;
  byId("panel-title").focus();
}

byId("panel-close").addEventListener("click", () => byId("panel").close());
byId("panel").addEventListener("click", (event) => {
  if (event.target === byId("panel")) byId("panel").close();
});
byId("theme").addEventListener("click", () => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
});

/** Buttons for the pages of a list. */
function pager(nav, page, pages, go) {
  if (pages < 2) return nav.replaceChildren();
  const button = (text, to, off) =>
    el("button", { type: "button", disabled: off, click: () => go(to) }, text);
  nav.replaceChildren(
    button("First", 0, page === 0), button("Previous", page - 1, page === 0),
    el("span", {}, `page ${page + 1} of ${pages}`),
    button("Next", page + 1, page === pages - 1), button("Last", pages - 1, page === pages - 1));
}
