// On paper nothing can be scrolled or opened: before a page is printed the graph is cut into
// sheets that fit, and the provenance is written out.
const SHEET = [1150, 1500];
const MOST_SHEETS = 24;
const MOST_STEPS = 200;

const svgElement = (tag, attributes, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

/** Where to cut a row of boxes, given as [from, to], so that each part has room and no box is cut. */
function cuts(boxes, room) {
  const found = [0];
  for (const [from, to] of boxes.toSorted((a, b) => a[0] - b[0])) {
    if (to <= found[found.length - 1] + room) continue;
    let at = from - 8;
    for (let moved = true; moved;) {
      const cut = boxes.find((box) => box[0] < at && at < box[1]);
      moved = cut !== undefined && cut[0] - 8 > found[found.length - 1];
      if (moved) at = cut[0] - 8;
    }
    found.push(at);
  }
  return found;
}

/** The numbers of a transformation or a path. */
const numbers = (text) => text.match(/[\d.]+/g).map(Number);

function printGraph(place) {
  const svg = document.querySelector("#graph-view svg");
  const stages = [...svg.querySelectorAll(".stage")].map((element) => {
    const [x, y] = numbers(element.getAttribute("transform"));
    const box = element.querySelector("rect");
    return { element, box: [x, y, x + box.width.baseVal.value, y + box.height.baseVal.value] };
  });
  const lines = [...svg.querySelectorAll(".edges path")].map((element) => {
    const [x1, y1, , , , y2, x2] = numbers(element.getAttribute("d"));
    return { element, box: [Math.min(x1, x2), Math.min(y1, y2) - 1, Math.max(x1, x2), Math.max(y1, y2) + 1] };
  });
  const across = cuts(stages.map(({ box }) => [box[0], box[2]]), SHEET[0]);
  const down = cuts(stages.map(({ box }) => [box[1], box[3]]), SHEET[1]);
  const count = across.length * down.length;
  if (count > MOST_SHEETS) {
    place.append(el("p", {}, `The drawing of ${stages.length} stages would take ${count} sheets: the page has it. Steps are listed under Provenance.`));
    return;
  }
  across.forEach((left, column) => down.forEach((top, row) => {
    const right = across[column + 1] ?? svg.width.baseVal.value;
    const under = down[row + 1] ?? svg.height.baseVal.value;
    const inside = ({ box }) => box[2] > left && box[0] < right && box[3] > top && box[1] < under;
    const copies = (list) => list.filter(inside).map(({ element }) => element.cloneNode(true));
    // Only as high as what is on it.
    const seen = [...stages, ...lines].filter(inside).map(({ box }) => box);
    const above = Math.max(top, Math.min(...seen.map((box) => box[1])) - 8);
    const below = Math.min(under, Math.max(...seen.map((box) => box[3])) + 8);
    if (above >= below) return;
    const name = `Sheet ${column * down.length + row + 1} of ${count}: column ${column + 1}, row ${row + 1}`;
    place.append(el("figure", { class: "sheet" }, count > 1 ? el("figcaption", {}, name) : null,
      svgElement("svg", { viewBox: `${left} ${above} ${right - left} ${below - above}`, width: right - left, height: below - above },
        svgElement("g", { class: "edges" }, ...copies(lines)), ...copies(stages))));
  }));
}

/** The steps that a step was made of, itself first, each once. */
function ancestry(at) {
  const order = [];
  const seen = new Set([at]);
  for (const queue = [at]; queue.length;) {
    const next = queue.shift();
    order.push(next);
    for (const [, from] of grouped(data.steps[next].inputs || [])) {
      if (!seen.has(from)) { seen.add(from); queue.push(from); }
    }
  }
  return order;
}

function printProvenance(place) {
  const name = byId("prov-name").value.trim();
  const chosen = name ? findStep(name) : -1;
  const order = chosen >= 0 ? ancestry(chosen) : data.steps.map((_, at) => at);
  const line = (name, text) => el("div", {}, `${name} `, el("code", {}, text));
  const item = (at) => {
    const step = data.steps[at];
    const inputs = (step.inputs || []).map((input) => `${input.port}: ${input.step === null ? input.from : data.steps[input.step].label}`);
    const about = [step.kind, step.kind ? `${step.status}, run ${step.run}` : step.status, step.seed === undefined || step.seed === null ? null : `seed ${step.seed}`];
    return el("li", {}, el("b", {}, step.label), ` ${about.filter(Boolean).join(", ")}`,
      inputs.length ? el("div", {}, `reads ${[...new Set(inputs)].join(", ")}`) : null,
      (step.outputs || []).map((output) => line(output.name, output.digest)),
      step.code ? line("code", step.code) : null);
  };
  const shown = order.slice(0, MOST_STEPS);
  place.append(
    el("h3", {}, chosen >= 0 ? `What ${data.steps[chosen].label} was computed from` : "Every step"),
    shown.length < order.length ? el("p", {}, `The first ${shown.length} of ${order.length} steps are printed; the page has them all.`) : "",
    el("ul", { class: "printed-steps" }, shown.map(item)));
}

if (byId("graph-printed")) {
  window.addEventListener("beforeprint", () => {
    for (const [id, write] of [["graph-printed", printGraph], ["prov-printed", printProvenance]]) {
      byId(id).replaceChildren();
      write(byId(id));
    }
  });
  window.addEventListener("afterprint", () => {
    for (const id of ["graph-printed", "prov-printed"]) byId(id).replaceChildren();
  });
}
