// Long tables in pages. Without a script all rows are there.
const ROWS = 25;

for (const table of document.querySelectorAll("table.paged")) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length <= ROWS) continue;
  const nav = el("nav", { class: "pages", "aria-label": `Pages of the table` });
  table.parentElement.after(nav);
  const go = (page) => {
    rows.forEach((row, at) => { row.hidden = at < page * ROWS || at >= (page + 1) * ROWS; });
    pager(nav, page, Math.ceil(rows.length / ROWS), go);
  };
  go(0);
}
