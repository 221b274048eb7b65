// How a number was made: the cell, the step behind it, and what that read, down to the data.

/** A step in full. */
function stepCard(step) {
  if (!step.kind) return el("p", {}, `${step.label} was not executed: ${step.status}.`);
  const machine = data.machines[step.machine] || {};
  const files = Object.entries(step.files);
  const code = Object.entries(data.codes[step.code] || {});
  const found = step.status === "hit" ? "found in the store, computed" : "computed";
  const { determinism, raw } = step.facts;
  const defaults = step.facts.defaults || [];
  const list = (entries) => el("ul", {}, entries.map(([name, sum]) => el("li", {}, el("code", {}, name), " ", digest(sum))));
  return el("div", { class: "card" },
    pairs([
      ["kind", step.kind], ["status", `${step.status}: ${found} in run ${step.run}, ${step.started}`],
      ["took", took(step.took) + (step.cpu === null ? "" : `, ${took(step.cpu)} of CPU time`)],
      ["work", step.work], ["memory", step.memory === null ? null : `at most ${size(step.memory)} in the process`],
      ["seed", step.seed === null ? "ignored" : String(step.seed)],
      ["promises", determinism], ["key", digest(step.key)], ["code", digest(step.code)],
      ["machine", `${machine.host}, ${machine.cpu_model}, ${count(machine.threads, "thread")}`],
      ["commit", machine.git_commit ? machine.git_commit + (machine.git_dirty ? ", with changes" : "") : null],
    ]),
    step.failure ? el("pre", { class: "trouble" }, step.failure) : null,
    el("h3", {}, "Outputs"),
    el("ul", {}, step.outputs.map((output) => el("li", {},
      `${output.name}: ${count(output.rows, "row")}, ${size(output.bytes)} `, digest(output.digest),
      el("div", { class: "aside" }, output.columns)))),
    el("h3", {}, "Parameters"),
    pairs(Object.entries(step.params).map(([name, value]) => [name, el("span", {}, el("code", {}, value), defaults.includes(name) ? el("span", { class: "aside" }, " default") : null)])),
    raw.length ? el("h3", {}, "Raw data") : null,
    raw.length ? el("ul", {}, raw.map((file) => el("li", {}, `${file.name}, ${size(file.bytes)} `, digest(file.checksum)))) : null,
    files.length ? el("h3", {}, "Files") : null, files.length ? list(files) : null,
    el("details", {}, el("summary", {}, `Code: ${count(code.length, "file")}`), list(code)),
    step.log ? el("details", {}, el("summary", {}, "Log"), el("pre", {}, step.log)) : null);
}

/** A step and below it what it read; opened on demand, for a chain may be long. */
function treeNode(at, port, open) {
  const step = data.steps[at];
  const body = el("div", {});
  const outside = (step.inputs || []).filter((input) => input.step === null);
  const fill = () => {
    if (body.childElementCount) return;
    body.append(
      el("details", {}, el("summary", {}, "parameters, code, digests, log"), stepCard(step)),
      el("ul", {},
        grouped(step.inputs || []).map(([name, at]) => el("li", {}, treeNode(at, name, false))),
        outside.map((input) => el("li", {}, el("span", { class: "port" }, `${input.port}: `), `${input.from} `, digest(input.digest)))));
  };
  const details = el("details", { toggle: fill },
    el("summary", {}, port ? el("span", { class: "port" }, `${port}: `) : null,
      el("b", {}, step.label), ` ${step.kind || ""} `,
      el("span", { class: "aside" }, step.outputs && step.outputs[0] ? step.outputs[0].digest.slice(0, 12) : step.status)),
    body);
  if (open) { fill(); details.open = true; }
  return details;
}

/** Inputs with their ports, each step once. */
function grouped(inputs) {
  const ports = new Map();
  for (const input of inputs) {
    if (input.step === null) continue;
    const known = ports.get(input.step);
    if (known === undefined) ports.set(input.step, input.port);
    else if (!known.split(", ").includes(input.port)) ports.set(input.step, `${known}, ${input.port}`);
  }
  return [...ports].map(([at, port]) => [port, at]);
}

function derivation(at) {
  return el("ul", { class: "tree" }, el("li", {}, treeNode(at, "", true)));
}

function showStep(at) {
  const step = data.steps[at];
  openPanel(step.label, el("h3", {}, "How it was computed"), derivation(at), el("h3", {}, "This step"), stepCard(step));
}

/** The inputs that a cell was measured on: of its port, and of its axes if it names any. */
function measuredOn(cell, step) {
  if (!cell.source) return [];
  const inputs = step.inputs.filter((input) => input.port === cell.source.port);
  const fits = (input) => Object.entries(cell.source.axes)
    .every(([axis, value]) => input.axes[axis] === undefined || input.axes[axis] === value);
  const fitting = inputs.filter(fits);
  return fitting.length ? fitting : inputs;
}

function showCell(number) {
  const cell = data.cells[number];
  const step = data.steps[cell.step];
  const several = cell.values.length > 1;
  const inputs = measuredOn(cell, step);
  const shown = cell.sd === null ? num(cell.mean) : `${num(cell.mean)}, sd ${num(cell.sd)} over ${count(cell.executions, "execution")}`;
  const interval = cell.interval === null ? null : `${num(cell.interval.low)} to ${num(cell.interval.high)} (${cell.method})`;
  const difference = cell.paper === null || cell.mean === null ? null : num(cell.mean - cell.paper);
  openPanel(`${cell.table}: ${cell.row}, ${cell.col}`,
    pairs([
      ["value", shown], ["95% interval", interval], ["paper", cell.paper === null ? null : num(cell.paper)], ["difference", difference],
      ["measured", cell.source ? `${cell.source.metric} of ${cell.source.port}` : null],
      ["on", cell.n === null ? null : `${cell.n} rows`],
    ]),
    several ? el("h3", {}, "Seeds") : null,
    several ? pairs(cell.values.map((one) => [one.seed === null ? "" : `seed ${one.seed}`, num(one.value)])) : null,
    el("h3", {}, "How it was computed"),
    inputs.length ? el("ul", { class: "tree" }, grouped(inputs).map(([port, at], n) => el("li", {}, treeNode(at, port, n === 0)))) : null,
    inputs.length ? el("h3", {}, "Put into the table by") : null,
    derivation(cell.step));
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-cell], button[data-step]");
  if (!button) return;
  if (button.dataset.cell !== undefined) showCell(Number(button.dataset.cell));
  else showStep(Number(button.dataset.step));
});

/** Finds a step by its name, or by how it begins. */
function findStep(name) {
  const exact = data.steps.findIndex((step) => step.label === name);
  return exact >= 0 ? exact : data.steps.findIndex((step) => step.label.startsWith(name));
}

if (byId("prov-find")) {
  byId("prov-names").append(...data.steps.slice(0, 500).map((step) => el("option", { value: step.label })));
  byId("prov-find").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = byId("prov-name").value.trim();
    const at = name ? findStep(name) : data.steps.length - 1;
    byId("prov-tree").replaceChildren(at < 0 ? el("p", {}, `no stage ${name}`) : derivation(at));
  });
}
