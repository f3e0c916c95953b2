"use strict";
// Keeps a page as its run is. Markup comes only from this console, which escapes every text.
(() => {
  const address = document.documentElement.dataset.events;
  const live = document.getElementById("live");
  const said = document.getElementById("said");
  const tell = text => { said.textContent = text; };

  const ages = () => {
    for (const time of document.querySelectorAll("time[data-at]")) {
      const seconds = Math.max(0, Date.now() / 1000 - Number(time.dataset.at));
      const [size, unit] = seconds < 60 ? [1, "s"] : seconds < 3600 ? [60, "min"]
        : seconds < 86400 ? [3600, "h"] : [86400, "d"];
      time.title ||= time.textContent;
      time.textContent = `${Math.floor(seconds / size)} ${unit} ago`;
    }
  };

  const parsed = (html, tag) => {
    const one = document.createElement(tag);
    one.innerHTML = html;
    return one;
  };

  // What the reader has opened or closed stays so, and what has the focus keeps it.
  const replace = (piece, html) => {
    const next = parsed(html, piece.tagName);
    for (const row of next.querySelectorAll("details[id]")) {
      const before = document.getElementById(row.id);
      if (before && piece.contains(before) && before.dataset.touched) {
        row.open = before.open;
        row.dataset.touched = "1";
      }
    }
    const active = document.activeElement;
    const holder = piece.contains(active) && active.closest("[id]");
    const isSummary = holder && active.tagName === "SUMMARY";
    piece.replaceChildren(...next.childNodes);
    const again = holder && document.getElementById(holder.id);
    if (again) (isSummary ? again.querySelector("summary") : again).focus({ preventScroll: true });
  };

  // A box stays as it is while its call waits: somebody may be typing into it.
  const ask = (all, count, changed) => {
    const known = [...all.children];
    const wanted = Array.from({ length: count }, (_, at) => changed[at] ?? [known[at].dataset.digest]);
    const digests = new Set(wanted.map(([digest]) => digest));
    for (const piece of known.filter(one => !digests.has(one.dataset.digest))) {
      const { done, ticket } = piece.firstElementChild.dataset;
      if (!done) tell(`${ticket} was decided`);
      piece.remove();
    }
    wanted.forEach(([digest, html], at) => {
      const same = known.find(one => one.dataset.digest === digest);
      if (same && all.children[at] === same) return;
      const piece = same ?? Object.assign(parsed(html, "div"), { className: "piece" });
      piece.dataset.digest = digest;
      all.insertBefore(piece, all.children[at] ?? null);
    });
    // The focus was on what is gone, or on a button that was disabled.
    if (document.activeElement === document.body) said.focus({ preventScroll: true });
  };

  const show = ({ section, count, changed }) => {
    const all = document.querySelector(`[data-section="${section}"]`);
    if (section === "asks") return ask(all, count, changed);
    const tag = all.tagName === "TBODY" ? "tr" : "div";
    while (all.children.length > count) all.lastElementChild.remove();
    while (all.children.length < count) {
      all.append(Object.assign(document.createElement(tag), { className: "piece" }));
    }
    for (const [at, [digest, html]] of Object.entries(changed)) {
      const piece = all.children[at];
      if (piece.dataset.digest === digest) continue;
      piece.dataset.digest = digest;
      replace(piece, html);
    }
    ages();
  };

  const decide = async button => {
    const box = button.closest(".ask");
    const result = box.querySelector("[role=status]");
    const buttons = box.querySelectorAll("button");
    for (const one of buttons) one.disabled = true;
    result.textContent = "is written down …";
    const { ticket, seal } = box.dataset;
    const why = box.querySelector("textarea").value;
    try {
      const answer = await fetch(box.dataset.address, {
        method: "POST",
        headers: { "Content-Type": "application/json", "Accept": "application/json" },
        body: JSON.stringify({ do: button.dataset.do, ticket, seal, why }),
      });
      const told = await answer.json();
      if (answer.ok) {
        box.dataset.done = "1";
        tell(`${ticket} is ${told.done === "approve" ? "approved" : "denied"}`);
        result.textContent = "";
        return;
      }
      result.textContent = told.error;
    } catch (error) {
      result.textContent = `not decided: ${error.message}`;
    }
    for (const one of buttons) one.disabled = false;
    button.focus();
  };

  const is = (state, text) => {
    live.className = state;
    live.textContent = text;
  };

  document.addEventListener("click", event => {
    const button = event.target.closest?.("button[data-do]");
    if (button) decide(button);
  });
  document.addEventListener("click", event => {
    const row = event.target.closest?.("summary")?.parentElement;
    if (row) row.dataset.touched = "1";
  });
  ages();
  setInterval(ages, 10000);
  if (!address) return;

  // A browser has few connections for one site: a page that nobody sees needs none.
  let events = null;
  const stop = () => {
    events?.close();
    events = null;
  };
  const start = () => {
    if (events && events.readyState !== EventSource.CLOSED) return;
    events = new EventSource(address);
    const own = events;
    events.onopen = () => is("is-live", "live");
    events.onerror = () => is("is-lost", own.readyState === EventSource.CLOSED
      ? "not live any more: load the page again" : "the connection is lost: trying again …");
    events.addEventListener("pieces", event => show(JSON.parse(event.data)));
    events.addEventListener("problem", event => {
      const problem = JSON.parse(event.data);
      is(problem ? "is-lost" : "is-live", problem || "live");
    });
  };
  addEventListener("pagehide", stop);
  addEventListener("pageshow", start);
  document.addEventListener("visibilitychange", () => (document.hidden ? stop : start)());
  start();
})();
