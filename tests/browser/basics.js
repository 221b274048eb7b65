// What an auditor of accessibility looks at first: a language, a title, one h1, headings without
// gaps, names for fields, buttons and pictures, ids that are unique, and text that can be read.
(() => {
  const problems = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  if (!document.documentElement.lang) problems.push("no language");
  if (!document.title) problems.push("no title");
  if (all("h1").length !== 1) problems.push(`${all("h1").length} h1`);
  if (all("main").length !== 1) problems.push("not one main");
  let level = 0;
  for (const heading of all("main h1, main h2, main h3, main h4")) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) problems.push(`h${next} after h${level}: ${heading.textContent}`);
    level = next;
  }
  const ids = all("[id]").map((e) => e.id);
  const twice = ids.filter((id, at) => ids.indexOf(id) !== at);
  if (twice.length) problems.push(`ids twice: ${twice}`);
  for (const e of all("input, select, textarea")) {
    if (!e.labels.length && !e.getAttribute("aria-label")) problems.push(`no label: ${e.outerHTML}`);
  }
  for (const e of all("button, a[href], summary, [role=button]")) {
    if (!(e.getAttribute("aria-label") || e.textContent).trim()) problems.push(`no name: ${e.outerHTML}`);
  }
  for (const e of all("img")) if (!e.hasAttribute("alt")) problems.push(`no alt: ${e.outerHTML}`);
  for (const e of all("table")) if (!e.querySelector("th")) problems.push("a table without headers");

  // Contrast of text, by the formula of WCAG 2: 4.5 to 1.
  const parse = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  for (const e of all("main *, header *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const box = e.getBoundingClientRect();
    if (!own || e.closest("svg") || box.width < 2 || e.closest(".unseen, datalist, option")) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) problems.push(`contrast ${ratio.toFixed(2)}: ${e.outerHTML.slice(0, 120)}`);
  }
  return problems.join("\n");
})()
