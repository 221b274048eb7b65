// The graph: a click or Enter on a stage shows it, the field finds it.
function showStage(number) {
  const stage = data.stages[number];
  if (stage.steps.length === 1) return showStep(stage.steps[0]);
  const row = (at) => {
    const step = data.steps[at];
    return el("tr", {},
      el("th", { scope: "row" }, el("button", { type: "button", class: "cell", click: () => showStep(at) }, step.label)),
      el("td", {}, step.status), el("td", { class: "number" }, step.took === undefined ? "" : took(step.took)));
  };
  const head = ["Instance", "Status", "Time to make"].map((name) => el("th", { scope: "col" }, name));
  openPanel(`${stage.name}: ${stage.steps.length} instances`,
    el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, stage.steps.map(row))));
}

if (byId("graph-view")) {
  const view = byId("graph-view");
  view.addEventListener("click", (event) => {
    const stage = event.target.closest("[data-stage]");
    if (stage) showStage(Number(stage.dataset.stage));
  });
  view.addEventListener("keydown", (event) => {
    const stage = event.target.closest("[data-stage]");
    if (!stage || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    showStage(Number(stage.dataset.stage));
  });
  // The lines of the stage that is looked at stand out.
  const light = (event) => {
    const stage = event.target.closest("[data-stage]");
    const number = stage ? stage.dataset.stage : "";
    view.querySelectorAll(".edges .lit").forEach((line) => line.classList.remove("lit"));
    if (stage) view.querySelectorAll(`[data-from="${number}"], [data-to="${number}"]`).forEach((line) => line.classList.add("lit"));
  };
  view.addEventListener("pointerover", light);
  view.addEventListener("focusin", light);
  byId("graph-find").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = byId("graph-name").value.trim();
    let at = data.stages.findIndex((stage) => stage.name === name);
    if (at < 0) at = data.stages.findIndex((stage) => stage.name.includes(name));
    view.querySelectorAll(".found").forEach((old) => old.classList.remove("found"));
    if (at < 0) return say(`no stage ${name}`);
    const stage = view.querySelector(`[data-stage="${at}"]`);
    stage.classList.add("found");
    stage.scrollIntoView({ block: "center", inline: "center" });
    stage.focus({ preventScroll: true });
  });
}
