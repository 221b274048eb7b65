// Adversarial examples: filters, search, pages. A row is
// [id, [class, before, after], success, attacked, words changed, words, changes, p before, p after, pieces, steps, outcome].
// Outcome is a position in the table's texts of outcomes. Pieces and steps are of edits of characters: what became of each changed word, and the word around each edit.
const PAGE = 20;

function startExamples() {
  const { tables, words } = data.examples;
  let table = tables[0];
  let found = [];
  let page = 0;
  const texts = new Map();

  const name = (number) => (number === null ? "?" : table.classes[number] || `class ${number}`);

  /** The words of both sides, in lower case, for the search. */
  function text(row) {
    let text = texts.get(row);
    if (text === undefined) {
      const put = row[6].flatMap((change) => change[2]);
      text = [row[0], ...row[5].concat(put).map((word) => words[word])].join(table.joiner).toLowerCase();
      texts.set(row, text);
    }
    return text;
  }

  function filter() {
    const outcome = byId("ex-outcome").value;
    const wanted = byId("ex-class").value;
    const least = byId("ex-least").value === "" ? -Infinity : Number(byId("ex-least").value);
    const most = byId("ex-most").value === "" ? Infinity : Number(byId("ex-most").value);
    const search = byId("ex-search").value.trim().toLowerCase();
    found = table.rows.filter((row) => (outcome === "all" || String(row[11]) === outcome)
      && (wanted === "all" || String(row[1][0]) === wanted)
      && row[4] >= least && row[4] <= most
      && (search === "" || text(row).includes(search)));
    page = 0;
    show();
  }

  /** Characters of a word: 0 as they were, 1 flipped, 2 on this side only. */
  function piece(mark, text, after) {
    if (mark === 0) return text;
    const title = mark === 1 ? "flipped" : after ? "inserted" : "deleted";
    return el(after ? "ins" : "del", { title, class: mark === 1 ? "flip" : "alone" }, text);
  }

  function side(label, row, after) {
    const parts = [];
    let at = 0;
    const plain = (to) => { if (to > at) parts.push(row[5].slice(at, to).map((word) => words[word]).join(table.joiner) + table.joiner); at = to; };
    for (const [number, [from, gone, put]] of row[6].entries()) {
      plain(from);
      if (row[9][number]) {
        parts.push(el("span", { class: "word" }, row[9][number][after ? 1 : 0].map(([mark, text]) => piece(mark, text, after))), table.joiner);
        at = from + gone;
        continue;
      }
      const list = after ? put : row[5].slice(from, from + gone);
      if (list.length) parts.push(el(after ? "ins" : "del", {}, list.map((word) => words[word]).join(table.joiner)), table.joiner);
      at = from + gone;
    }
    plain(row[5].length);
    // The words have a direction of their own, and keep it to themselves.
    return el("p", {}, el("span", { class: "side" }, label), el("bdi", {}, parts));
  }

  function likely(row, from, label) {
    const p = row[from][row[1][0]];
    if (p === undefined) return null;
    return el("span", { class: "likely" }, `${label} ${p.toFixed(3)} `,
      el("meter", { min: 0, max: 1, value: p, "aria-label": `probability of the true class ${label}` }));
  }

  function item(row) {
    const [label, before, after] = row[1];
    const verdict = table.outcomes[row[11]];
    const drawing = document.querySelector(`[data-drawing="${tables.indexOf(table)}-${table.rows.indexOf(row)}"]`);
    return el("li", { class: "example" },
      el("header", {},
        el("b", {}, row[0]),
        el("span", { class: `verdict ${row[2] ? "not-reproduced" : before === label && after === label && row[3] ? "reproduced" : ""}` }, verdict),
        el("span", {}, `actual ${name(label)}: predicted ${name(before)}, then ${name(after)}`),
        el("span", { class: "aside" }, !row[3] ? "not attacked" : row[5].length ? `${count(row[4], "word")} changed` : "changed"),
        el("span", { class: "likely" }, `P(${name(label)}) `, likely(row, 7, "before"), " ", likely(row, 8, "after"))),
      drawing ? drawing.cloneNode(true) : row[5].length ? null : el("p", { class: "aside" }, "Not drawn: only the first signals of each attack are."),
      row[5].length ? [side("Before", row, false), side("After", row, true)] : null,
      row[10].length > 1 ? el("p", { class: "aside" }, "In order: ", row[10].map(([before, after]) => `${before} → ${after}`).join(", ")) : null);
  }

  function show() {
    const pages = Math.ceil(found.length / PAGE);
    const part = table.total > table.rows.length ? ` (${table.rows.length} of its ${table.total} rows are on this page, evenly sampled)` : "";
    byId("ex-count").textContent = visible(`${found.length} of ${table.rows.length} examples of ${table.name}${part}`);
    const [first, last] = [Math.min(page * PAGE + 1, found.length), Math.min((page + 1) * PAGE, found.length)];
    byId("ex-printed").textContent = `Examples ${first} to ${last} of ${found.length} are printed, of one attack of ${tables.length}; the page has them all.`;
    byId("ex-list").replaceChildren(...found.slice(page * PAGE, (page + 1) * PAGE).map(item));
    pager(byId("ex-pages"), page, pages, (to) => { page = to; show(); byId("examples").scrollIntoView(); });
  }

  function choose() {
    table = tables[Number(byId("ex-attack").value)];
    const classes = [...new Set(table.rows.map((row) => row[1][0]))].filter((number) => number !== null).sort((a, b) => a - b);
    const outcomes = [...new Set(table.rows.map((row) => row[11]))].sort((a, b) => a - b);
    byId("ex-outcome").replaceChildren(el("option", { value: "all" }, "all"), ...outcomes.map((number) => el("option", { value: number }, table.outcomes[number])));
    byId("ex-class").replaceChildren(el("option", { value: "all" }, "all"), ...classes.map((number) => el("option", { value: number }, name(number))));
    // Signals have no words to count.
    const worded = table.rows.some((row) => row[5].length);
    for (const id of ["ex-least", "ex-most"]) {
      byId(id).closest("label").hidden = !worded;
      if (!worded) byId(id).value = "";
    }
    filter();
  }

  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("ex-attack").addEventListener("change", choose);
  for (const id of ["ex-outcome", "ex-class"]) byId(id).addEventListener("change", filter);
  for (const id of ["ex-least", "ex-most", "ex-search"]) byId(id).addEventListener("input", filter);
  choose();
}

if (byId("ex-list") && data.examples.tables.length) startExamples();
