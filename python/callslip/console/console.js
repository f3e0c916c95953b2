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

  // Rows stay as the reader has opened or closed them.
  const replace = (piece, html) => {
    const next = parsed(html, piece.tagName);
    for (const row of next.querySelectorAll("details[id]")) {
      const before = document.getElementById(row.id);
      if (before && piece.contains(before) && before.dataset.touched) {
        row.open = before.open;
        row.dataset.touched = "1";
      }
    }
    piece.replaceChildren(...next.childNodes);
  };

  // A long text says so if a part of it is out of sight, since a person approves all of it.
  const measure = () => {
    // All are measured before any is changed: else each change has the browser lay out the page.
    const measured = [...document.querySelectorAll(".ask pre")].map(text => {
      const isCut = text.scrollHeight > text.clientHeight + 1;
      const height = isCut ? parseFloat(getComputedStyle(text).lineHeight) : 1;
      const lines = Math.ceil((text.scrollHeight - text.clientHeight - 1) / height);
      return [text, isCut, `↑ ${lines} more lines: scroll to read all of it`];
    });
    for (const [text, isCut, told] of measured) {
      const note = text.nextElementSibling?.matches(".more") ? text.nextElementSibling : null;
      if (isCut && !note) {
        text.tabIndex = 0;
        text.after(Object.assign(document.createElement("p"), {
          className: "more", textContent: told,
        }));
      } else if (isCut) {
        note.textContent = told;
      } else {
        note?.remove();
      }
    }
  };

  // When a box goes, the next one comes under a pointer that is about to press.
  const KEPT = 3000;
  const QUIET = 1000;
  let quietUntil = 0;

  const leave = piece => {
    const box = piece.firstElementChild;
    const { ticket, done } = box.dataset;
    const text = done ? `${ticket} is ${done}` : `${ticket} does not wait any more`;
    // The page may have learnt that the call waits no more before its own decision was answered.
    if (piece.dataset.gone && !done) return;
    tell(text);
    const isFirst = !piece.dataset.gone;
    piece.dataset.gone = "1";
    if (isFirst) piece.style.minHeight = `${piece.offsetHeight}px`;
    const why = Object.assign(document.createElement("p"), { className: "soft", textContent: text });
    box.replaceChildren(why);
    if (!isFirst) return;
    setTimeout(() => {
      piece.remove();
      quietUntil = performance.now() + QUIET;
    }, KEPT);
  };

  // A box stays as it is while its call waits: somebody may be typing into it.
  let listed = [...document.querySelectorAll('[data-section="asks"] > .piece')];
  const ask = (all, count, changed) => {
    const sealOf = piece => piece.firstElementChild.dataset.seal;
    const known = listed;
    listed = Array.from({ length: count }, (_, at) => {
      if (!changed[at]) return known[at];
      const [digest, html] = changed[at];
      const next = Object.assign(parsed(html, "div"), { className: "piece" });
      next.dataset.digest = digest;
      const same = known.find(piece => sealOf(piece) === sealOf(next));
      if (!same) return next;
      if (same.dataset.digest !== digest && !same.dataset.gone) control(same, next);
      same.dataset.digest = digest;
      return same;
    });
    known.filter(piece => !listed.includes(piece)).forEach(leave);
    let before = null;
    for (const piece of listed) {
      if (!piece.isConnected && !piece.dataset.gone) {
        if (before?.isConnected) before.after(piece);
        else all.prepend(piece);
        quietUntil = performance.now() + QUIET;
      }
      before = piece;
    }
    // The focus was on what is gone, or on a button that was disabled.
    if (document.activeElement === document.body) said.focus({ preventScroll: true });
    measure();
  };

  // The same call may be decided here or not, as its file has another owner.
  const control = (piece, next) => {
    const [now, then] = [piece, next].map(one => one.querySelector(".controls"));
    const names = ["[data-why]", "[data-edit]"];
    const typed = names.map(name => now.querySelector(name)?.value);
    piece.typed = piece.typed?.map((text, at) => typed[at] ?? text) ?? typed;
    now.replaceChildren(...then.childNodes);
    names.forEach((name, at) => {
      const field = now.querySelector(name);
      if (field && piece.typed[at] !== undefined) field.value = piece.typed[at];
    });
  };

  const show = ({ section, count, changed }) => {
    const all = document.querySelector(`[data-section="${section}"]`);
    if (section === "asks") return ask(all, count, changed);
    const active = document.activeElement;
    const holder = all.contains(active) && active.closest("[id]");
    const isSummary = holder && active.tagName === "SUMMARY";
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
    // What had the focus may stand in another row now.
    const again = holder && !all.contains(active) && document.getElementById(holder.id);
    if (again) (isSummary ? again.querySelector("summary") : again).focus({ preventScroll: true });
    ages();
  };

  const decide = async button => {
    if (performance.now() < quietUntil) {
      tell("the page has just changed: press again");
      return;
    }
    const box = button.closest(".ask");
    const result = box.querySelector("[role=status]");
    const buttons = box.querySelectorAll("button");
    const why = box.querySelector("[data-why]").value;
    if (button.dataset.do === "approve" && why.trim()) {
      result.textContent = "A reason is for a denial: deny the call, or empty the field.";
      return;
    }
    // Arguments count as they are read: whoever has changed them has the field open.
    let changed = {};
    const edit = box.querySelector("[data-edit]");
    if (button.dataset.do === "approve" && edit.value !== edit.defaultValue) {
      if (!edit.closest("details").open) {
        result.textContent = "The arguments were changed: open them, and look at them again.";
        return;
      }
      try {
        changed = { arguments: JSON.parse(edit.value) };
      } catch (error) {
        result.textContent = `The arguments are not JSON: ${error.message}`;
        edit.focus();
        return;
      }
    }
    for (const one of buttons) one.disabled = true;
    result.textContent = "is written down …";
    const { ticket, seal } = box.dataset;
    try {
      const answer = await fetch(box.dataset.address, {
        method: "POST",
        headers: { "Content-Type": "application/json", "Accept": "application/json" },
        body: JSON.stringify({ do: button.dataset.do, ticket, seal, why, ...changed }),
      });
      const told = await answer.json()
        .catch(() => ({ error: `not decided: the server answered ${answer.status}` }));
      if (answer.ok) {
        box.dataset.done = told.done === "approve" ? "approved" : "denied";
        leave(box.parentElement);
        said.focus({ preventScroll: true });
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
  document.getElementById("out")?.addEventListener("click", async event => {
    const { address: out } = event.target.dataset;
    const headers = { "Content-Type": "application/json", "Accept": "application/json" };
    const answer = await fetch(out, { method: "POST", headers, body: "{}" }).catch(() => null);
    if (answer?.ok) location.assign(out.replace(/logout$/, ""));
    else tell("not signed out: the server did not answer");
  });
  document.addEventListener("click", event => {
    const row = event.target.closest?.("summary")?.parentElement;
    if (row) row.dataset.touched = "1";
  });
  // A link has the token behind its #, which is sent to no server, and so is in no log.
  const form = document.getElementById("in");
  const given = form && location.hash.match(/^#token=(.+)$/);
  if (given) {
    history.replaceState(null, "", location.pathname);
    form.elements.token.value = decodeURIComponent(given[1]);
    form.submit();
    return;
  }
  ages();
  measure();
  addEventListener("resize", measure);
  setInterval(ages, 10000);
  if (!address) return;

  // A browser has few connections for one site: a page that nobody sees needs none.
  let events = null;
  const stop = () => {
    events?.close();
    events = null;
  };
  const start = () => {
    if (document.hidden || (events && events.readyState !== EventSource.CLOSED)) return;
    events = new EventSource(address);
    const own = events;
    events.onopen = () => is("is-live", "live");
    events.onerror = () => {
      is("is-lost", "not live: too many pages are open, or the server is gone; trying again …");
      if (own.readyState === EventSource.CLOSED) setTimeout(start, 5000);
    };
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
