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
  const head = ["Instance", "Status", "Compute time"].map((name) => el("th", { scope: "col" }, name));
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
    if (!stage) return;
    if (event.key === "Enter" || event.key === " ") showStage(Number(stage.dataset.stage));
    else if (event.key.startsWith("Arrow")) focusOn(beside(stage, event.key.slice(5)) || stage);
    else return;
    event.preventDefault();
  });

  /** One stage at a time can be reached by Tab: a thousand stops would bar the way. */
  function focusOn(stage) {
    view.querySelectorAll('.stage[tabindex="0"]').forEach((old) => old.setAttribute("tabindex", -1));
    stage.setAttribute("tabindex", 0);
    stage.scrollIntoView({ block: "nearest", inline: "nearest" });
    stage.focus({ preventScroll: true });
  }

  /** The nearest stage in a direction: in the same column, or in the nearest one on that side. */
  function beside(stage, side) {
    const place = (e) => e.getAttribute("transform").match(/\d+/g).map(Number);
    const [x, y] = place(stage);
    const sign = side === "Right" || side === "Down" ? 1 : -1;
    const upright = side === "Up" || side === "Down";
    let [best, least] = [null, Infinity];
    for (const other of view.querySelectorAll(".stage")) {
      const [dx, dy] = [place(other)[0] - x, place(other)[1] - y];
      const ahead = upright ? dx === 0 && dy * sign > 0 : dx * sign > 0;
      const far = upright ? Math.abs(dy) : Math.abs(dx) * 1e6 + Math.abs(dy);
      if (ahead && far < least) [best, least] = [other, far];
    }
    return best;
  }

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
    focusOn(stage);
    stage.scrollIntoView({ block: "center", inline: "center" });
  });
}
