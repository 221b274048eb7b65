// Long tables in pages. Without a script all rows are there.
const ROWS = 25;

for (const table of document.querySelectorAll("table.paged")) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length <= ROWS) continue;
  const nav = el("nav", { class: "pages", "aria-label": `Pages of the table` });
  const printed = el("p", { class: "paper-only note" });
  table.parentElement.after(nav, printed);
  const go = (page) => {
    rows.forEach((row, at) => { row.hidden = at < page * ROWS || at >= (page + 1) * ROWS; });
    pager(nav, page, Math.ceil(rows.length / ROWS), go);
    printed.textContent = `Rows ${page * ROWS + 1} to ${Math.min((page + 1) * ROWS, rows.length)} of ${rows.length} are printed; the page has them all.`;
  };
  go(0);
}
