// Pages that are served: how the newest run gets on.
if (byId("live")) {
  const words = { died: "its process was killed or crashed", unfinished: "no end is recorded" };
  byId("live-reload").addEventListener("click", () => location.reload());
  const source = new EventSource("/events");
  source.addEventListener("message", (event) => {
    const run = JSON.parse(event.data);
    const done = run.ran + run.cached + run.failed + run.skipped;
    const ended = run.outcome !== "under way";
    const whole = run.outcome === "ok" || run.outcome === "failed";
    const of = run.total === null || whole ? "" : ` of ${run.total}`;
    byId("live-what").replaceChildren(el("span", {},
      el("a", { href: `/run/${run.run}` }, `run ${run.run}`),
      ` of ${[run.pipeline, run.invocation].filter(Boolean).join(" ")}: ${words[run.outcome] || run.outcome}, ${done}${of} stages`));
    const bar = byId("live-bar");
    bar.max = whole ? Math.max(done, 1) : Math.max(run.total || done + (ended ? 0 : 1), 1);
    bar.value = done;
    byId("live-counts").textContent =
      `${run.ran} ran, ${run.cached} cached, ${run.failed} failed, ${run.skipped} skipped; started ${run.started}`;
    const listed = document.querySelector(`[data-run="${run.run}"]`);
    byId("live-stale").hidden = listed !== null && listed.dataset.outcome === run.outcome;
    const queue = run.queue;
    byId("live-queue").hidden = !queue;
    if (queue) {
      const more = queue.running - queue.jobs.length;
      byId("live-queued").textContent =
        `In the queue: ${queue.waiting} waiting, ${queue.running} running, ${queue.done} done`;
      byId("live-jobs").replaceChildren(
        ...queue.jobs.map(([stage, node, since]) => el("li", {}, `${stage} on ${node} since ${since}`)),
        ...(more > 0 ? [el("li", {}, `and ${more} more`)] : []));
    }
    byId("live-recent").replaceChildren(...run.recent.map((label) => el("li", {}, label)));
    document.documentElement.dataset.live = `${run.run} ${run.outcome} ${done}`;
  });
}
