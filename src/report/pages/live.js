// Pages that are served: how the newest run gets on.
if (byId("live")) {
  const source = new EventSource("/events");
  source.addEventListener("message", (event) => {
    const run = JSON.parse(event.data);
    const done = run.ran + run.cached + run.failed + run.skipped;
    const ended = run.outcome !== "unfinished";
    const of = run.total === null || ended ? "" : ` of ${run.total}`;
    byId("live-what").replaceChildren(
      el("a", { href: `/run/${run.run}` }, `run ${run.run}`),
      ` of ${run.pipeline} ${run.told}: ${ended ? run.outcome : "under way"}, ${done}${of} stages`);
    const bar = byId("live-bar");
    bar.max = ended ? Math.max(done, 1) : Math.max(run.total || done + 1, 1);
    bar.value = done;
    byId("live-counts").textContent =
      `${run.ran} ran, ${run.cached} cached, ${run.failed} failed, ${run.skipped} skipped; began ${run.started}`;
    byId("live-recent").replaceChildren(...run.recent.map((label) => el("li", {}, label)));
    document.documentElement.dataset.live = `${run.run} ${run.outcome} ${done}`;
  });
}
