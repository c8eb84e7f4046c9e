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
  const bytes = (one) => Uint8Array.from(atob(one.value), (char) => char.charCodeAt(0));
  // An exception of the program, or of the text of the file, decides nothing.
  const judged = () => {
    try {
      return globalThis.tccCheck(bytes(held));
    } catch (error) {
      return error instanceof RangeError ? "DECLINED: too large for this browser" : "REJECTED: no artifact";
    }
  };
  const other = (line) =>
    line.startsWith("DECLINED: ")
      ? ["!", "doubtful", "DECLINED",
        `The proved program declines this artifact, which is no sign of a fault: ${line.slice(10)}.`]
      : ["\u2717", "bad", "INVALID", line.startsWith("REJECTED: ")
        ? `The artifact in this page does not hold. The proved program says ${line}.`
        : "The artifact in this page is another than the one this page is about."];
  if (held && globalThis.tccCheck) {
    const line = judged();
    const same = line.startsWith("VALID: ") && line.endsWith(`; digest ${held.dataset.digest}`);
    tell("proved-verdict", same
      ? ["\u2713", "good", "VALID", `Checked by a proved program, in this browser, just now: ${line.slice(7)}.`]
      : other(line));
  }
})();
