"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const frame = document.getElementById("picture");
  const svg = frame.querySelector("svg");
  const details = document.getElementById("details");
  const search = document.getElementById("search");
  const found = document.getElementById("found");
  const all = svg.viewBox.baseVal;
  const whole = [all.x, all.y, all.width, all.height];
  let view = whole.slice();

  // What is seen: a part of the drawing. Never farther than all of it, never nearer than 40 pixels.
  const show = () => svg.setAttribute("viewBox", view.join(" "));
  const scale = () => {
    const box = svg.getBoundingClientRect();
    return Math.max(view[2] / Math.max(1, box.width), view[3] / Math.max(1, box.height));
  };
  const zoom = (factor, x, y) => {
    const width = Math.min(whole[2] * 2, Math.max(40, view[2] * factor));
    const by = width / view[2];
    view = [x - (x - view[0]) * by, y - (y - view[1]) * by, width, view[3] * by];
    show();
  };
  const middle = () => [view[0] + view[2] / 2, view[1] + view[3] / 2];
  const move = (x, y) => { view[0] += x * view[2]; view[1] += y * view[3]; show(); };
  const reset = () => { view = whole.slice(); show(); };
  // A large drawing begins at its root, in a size that can be read.
  const begin = () => {
    const box = svg.getBoundingClientRect();
    reset();
    if (scale() <= 1.6 || !box.width || !box.height) { return; }
    const root = svg.querySelector(".box.root rect");
    const height = box.height * 1.45;
    const y = root ? +root.getAttribute("y") + root.getAttribute("height") / 2 + 24 - height / 2 : 0;
    view = [0, y, box.width * 1.45, height];
    show();
  };
  const point = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY);
    return at.matrixTransform(svg.getScreenCTM().inverse());
  };

  const element = (name, text) => {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  };
  let shown = null;
  const tell = (part) => {
    const said = part && data[part.id];
    if (!said || part === shown) { return; }
    if (shown) { shown.classList.remove("shown"); }
    shown = part;
    part.classList.add("shown");
    details.replaceChildren(element("h2", said.title));
    if (said.facts) {
      const list = document.createElement("dl");
      for (const [name, value] of said.facts) {
        list.append(element("dt", name), element("dd", value));
      }
      details.append(list);
    } else {
      const list = document.createElement("ul");
      for (const call of said.calls) { list.append(element("li", call)); }
      if (said.more) { list.append(element("li", `and ${said.more} more`)); }
      details.append(list);
    }
  };

  let held = null;
  frame.addEventListener("pointerdown", (event) => {
    held = [event.clientX, event.clientY];
    frame.setPointerCapture(event.pointerId);
    frame.classList.add("held");
  });
  frame.addEventListener("pointermove", (event) => {
    if (!held) { return; }
    const by = scale();
    view[0] -= (event.clientX - held[0]) * by;
    view[1] -= (event.clientY - held[1]) * by;
    held = [event.clientX, event.clientY];
    show();
  });
  for (const ending of ["pointerup", "pointercancel"]) {
    frame.addEventListener(ending, () => { held = null; frame.classList.remove("held"); });
  }
  frame.addEventListener("wheel", (event) => {
    event.preventDefault();
    const at = point(event);
    zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) / 400), at.x, at.y);
  }, { passive: false });
  svg.addEventListener("pointerover", (event) => tell(event.target.closest(".box, .arrow")));

  const boxes = [...svg.querySelectorAll(".box")];
  for (const box of boxes) {
    box.setAttribute("tabindex", "0");
    box.setAttribute("role", "button");
    box.setAttribute("aria-label", data[box.id].title);
    box.addEventListener("focus", () => { tell(box); bring(box); });
  }
  // Into what is seen, without a change of its size.
  function bring(part) {
    const box = part.getBBox();
    const group = svg.querySelector("g").transform.baseVal.consolidate().matrix;
    const x = box.x + group.e, y = box.y + group.f;
    if (x < view[0] || x + box.width > view[0] + view[2]) { view[0] = x + box.width / 2 - view[2] / 2; }
    if (y < view[1] || y + box.height > view[1] + view[3]) { view[1] = y + box.height / 2 - view[3] / 2; }
    show();
  }

  const arrows = [...svg.querySelectorAll(".arrow")];
  let hits = [], at = 0;
  const seek = () => {
    const wanted = search.value.trim().toLowerCase();
    hits = arrows.filter((arrow) => {
      const hit = wanted !== "" && data[arrow.id].calls.some((call) => call.toLowerCase().includes(wanted));
      arrow.classList.toggle("hit", hit);
      return hit;
    });
    svg.classList.toggle("searched", wanted !== "");
    at = -1;
    found.textContent = wanted === "" ? "" : `${hits.length} ${hits.length === 1 ? "arrow" : "arrows"}`;
    if (hits.length) { next(1); }
  };
  const next = (step) => {
    if (!hits.length) { return; }
    at = (at + step + hits.length) % hits.length;
    tell(hits[at]);
    bring(hits[at]);
  };
  search.addEventListener("input", seek);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); next(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { search.value = ""; seek(); frame.focus(); }
  });

  const keys = {
    "+": () => zoom(0.8, ...middle()), "=": () => zoom(0.8, ...middle()),
    "-": () => zoom(1.25, ...middle()), "0": reset,
    ArrowLeft: () => move(-0.1, 0), ArrowRight: () => move(0.1, 0),
    ArrowUp: () => move(0, -0.1), ArrowDown: () => move(0, 0.1),
    "/": () => search.focus(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.target === search || event.ctrlKey || event.metaKey || event.altKey) { return; }
    const act = keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  document.getElementById("nearer").addEventListener("click", keys["+"]);
  document.getElementById("farther").addEventListener("click", keys["-"]);
  document.getElementById("whole").addEventListener("click", reset);
  // Paper shows all of it.
  let kept = null;
  addEventListener("beforeprint", () => { kept = view; reset(); });
  addEventListener("afterprint", () => { if (kept) { view = kept; show(); } });
  begin();
})();
