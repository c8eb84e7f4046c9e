"use strict";
// What the page says it says without this.  Here: a filter for rows, all open and all closed, a
// readout of charts under the pointer and the arrow keys, and where the page holds an artifact, or a
// session's ledger, the verdict of the proved program about it.  Texts are set as texts alone.
(() => {
  const make = (tag, parent, text) => {
    const made = document.createElement(tag);
    made.textContent = text;
    parent.append(made);
    return made;
  };

  for (const box of document.querySelectorAll("[data-rows]")) {
    const rows = [...box.querySelectorAll("details.row, tr.row")];
    const groups = [...box.querySelectorAll("details.group")];
    const bar = document.createElement("div");
    bar.className = "tools";
    const field = make("input", bar, "");
    field.type = "search";
    field.placeholder = "Show only rows with this text";
    field.setAttribute("aria-label", field.placeholder);
    const said = make("span", bar, "");
    said.setAttribute("role", "status");
    field.addEventListener("input", () => {
      const sought = field.value.toLowerCase();
      let shown = 0;
      for (const row of rows) {
        row.hidden = !row.textContent.toLowerCase().includes(sought);
        shown += row.hidden ? 0 : 1;
      }
      for (const group of groups) {
        group.hidden = !group.querySelector(".row:not([hidden])");
        group.open = sought !== "" && !group.hidden;
      }
      said.textContent = sought === "" ? "" : `${shown} of ${rows.length}`;
    });
    if (groups.length > 0) {
      for (const [name, open] of [["Open all", true], ["Close all", false]]) {
        const button = make("button", bar, name);
        button.type = "button";
        button.addEventListener("click", () => {
          for (const group of groups) group.open = open;
        });
      }
    }
    box.prepend(bar);
  }

  for (const chart of document.querySelectorAll("svg.chart[data-points]")) {
    const points = JSON.parse(chart.dataset.points);
    const spot = chart.querySelector(".spot");
    const out = chart.closest("figure").querySelector(".readout");
    if (points.length === 0 || !spot || !out) continue;
    let at = -1;
    const show = (index) => {
      at = Math.max(0, Math.min(points.length - 1, index));
      const [x, label] = points[at];
      spot.setAttribute("x1", x);
      spot.setAttribute("x2", x);
      spot.removeAttribute("visibility");
      out.textContent = label;
    };
    chart.addEventListener("pointermove", (event) => {
      const box = chart.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * chart.viewBox.baseVal.width;
      let best = 0;
      for (let i = 1; i < points.length; i += 1) {
        if (Math.abs(points[i][0] - x) < Math.abs(points[best][0] - x)) best = i;
      }
      show(best);
    });
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 }[event.key];
      if (step === undefined && event.key !== "Home" && event.key !== "End") return;
      event.preventDefault();
      show(event.key === "Home" ? 0 : event.key === "End" ? points.length - 1 : at + step);
    });
  }

  const paint = (banner, [sign, mood, word, said]) => {
    banner.classList.remove("good", "bad", "doubtful");
    banner.classList.add(mood);
    banner.querySelector(".sign").textContent = sign;
    banner.querySelector("strong").textContent = word;
    return said;
  };
  const tell = (id, found) => {
    const banner = document.getElementById(id);
    banner.querySelector(".said p").textContent = paint(banner, found);
    if (found[1] !== "bad") return;
    const top = document.getElementById("verdict").closest(".verdict");
    make("p", top.querySelector("strong").parentElement, paint(top, found));
    if (!document.title.startsWith("INVALID: ")) document.title = `INVALID: ${document.title}`;
  };
  const held = document.getElementById("proved-file");
  const kept = document.getElementById("proved-ledger");
  const bytes = (one) => Uint8Array.from(atob(one.value), (char) => char.charCodeAt(0));
  // What the program or the text of a file throws decides nothing.
  const judged = (what, judge) => {
    try {
      return judge();
    } catch (error) {
      return error instanceof RangeError ? "DECLINED: too large for this browser" : `REJECTED: no ${what}`;
    }
  };
  const checked = "Checked by a proved program, in this browser, just now: ";
  // Of a line that is not the one that is due; `own`: about the file that this page is about.
  const other = (what, line, own) =>
    own && line.startsWith("DECLINED: ")
      ? ["!", "doubtful", "DECLINED",
        `The proved program declines this ${what}, which is no sign of a fault: ${line.slice(10)}.`]
      : ["\u2717", "bad", "INVALID", line.startsWith("REJECTED: ")
        ? `The ${what} in this page does not hold. The proved program says ${line}.`
        : own
          ? `The proved program says otherwise of the ${what} in this page: ${line}.`
          : `The ${what} in this page is another than the one this page is about.`];
  if (held && globalThis.tccCheck) {
    const line = judged("artifact", () => globalThis.tccCheck(bytes(held)));
    const same = line.startsWith("VALID: ") && line.endsWith(`; digest ${held.dataset.digest}`);
    tell("proved-verdict", same
      ? ["\u2713", "good", "VALID", `${checked}${line.slice(7)}.`]
      : other("artifact", line, line.startsWith("DECLINED: ")));
    if (kept) {
      const { due, head } = kept.dataset;
      const [word, claim] = due.split(": ");
      const said = same
        ? judged("ledger", () => globalThis.tccSession(bytes(held), bytes(kept)))
        : "DECLINED: the artifact in this page is not VALID for it";
      const own = judged("ledger", () => atob(kept.value)).endsWith(`"~":"${head}"}\n`);
      tell("proved-session", own && said === due
        ? [...(word === "VALID" ? ["\u2713", "good"] : ["!", "doubtful"]), word,
          `${checked}${claim}, of the records that this page is about.`]
        : other("ledger", said, own));
    }
  }
})();
