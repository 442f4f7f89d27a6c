"use strict";
// The diagram: the same curves as in diagram/picture.py, so that dragging and the files agree.
(() => {
  const views = JSON.parse(document.getElementById("diagram-data").textContent);
  const svg = document.getElementById("diagram");
  const stage = document.getElementById("stage");
  const tip = document.getElementById("tip");
  const FONT = 10, SMALL = 8.5, FACE = '"DejaVu Sans", Verdana, sans-serif';
  const advance = { ".": 0.32, " ": 0.32, "\u2212": 0.84 };
  const fresh = JSON.stringify(views);
  // A narrow screen begins with what fits on it.
  const state = { view: window.innerWidth < 640 ? "latents" : "full", style: "colour", least: 0, zoom: 1 };

  const make = (tag, attributes, parent) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (parent) parent.append(element);
    return element;
  };

  // Geometry ------------------------------------------------------------------------------------------------

  const border = (node, [x, y]) => {
    const dx = x - node.x, dy = y - node.y, a = node.width / 2, b = node.height / 2;
    if (!dx && !dy) return [node.x, node.y];
    const scale = node.kind === "latent"
      ? 1 / Math.hypot(dx / a, dy / b)
      : Math.min(dx ? a / Math.abs(dx) : Infinity, dy ? b / Math.abs(dy) : Infinity);
    return [node.x + dx * scale, node.y + dy * scale];
  };

  const curve = (source, target, edge) => {
    let end = [target.x, target.y];
    const toBox = edge.kind === "loading" && target.kind === "observed";
    if (toBox) end = [target.x + Math.sign(source.x - target.x || 1) * target.width / 2, target.y];
    const dx = end[0] - source.x, dy = end[1] - source.y;
    const control = [source.x + dx / 2 - dy * edge.bend, source.y + dy / 2 + dx * edge.bend];
    return [border(source, control), control, toBox ? end : border(target, control)];
  };

  const onCurve = ([p, q, r], t) =>
    [0, 1].map((k) => (1 - t) ** 2 * p[k] + 2 * t * (1 - t) * q[k] + t ** 2 * r[k]);

  const head = ([, [cx, cy], [x, y]], width) => {
    const far = Math.hypot(x - cx, y - cy) || 1, dx = (x - cx) / far, dy = (y - cy) / far;
    const length = 6 + 1.2 * width, half = 2.2 + 0.9 * width;
    const bx = x - length * dx, by = y - length * dy;
    return {
      foot: [x - 0.8 * length * dx, y - 0.8 * length * dy],
      corners: [[x, y], [bx - half * dy, by + half * dx], [bx + half * dy, by - half * dx]],
    };
  };

  // Drawing -------------------------------------------------------------------------------------------------

  const text = (x, y, size, words, parent, anchor = "middle") => {
    const element = make("text", { x, y: y + size * 0.35, "font-size": size, "text-anchor": anchor, fill: "#222" }, parent);
    element.textContent = words;
    return element;
  };

  const paint = (look) => ({
    stroke: look.stroke, fill: look.fill, "stroke-width": look.width, ...(look.dashed ? { "stroke-dasharray": `${4 * look.width} ${2.2 * look.width}` } : {}),
  });

  const drawNode = (node, parent) => {
    const group = make("g", { class: "node", "data-id": node.id, tabindex: 0, role: "img", "aria-label": node.hint }, parent);
    const look = paint(node.looks[state.style]);
    const corner = { x: node.x - node.width / 2, y: node.y - node.height / 2, width: node.width, height: node.height };
    if (node.kind === "latent") make("ellipse", { cx: node.x, cy: node.y, rx: node.width / 2, ry: node.height / 2, ...look }, group);
    else make("rect", { ...corner, ...(node.kind === "group" ? { rx: 14 } : {}), ...look }, group);
    const lines = node.kind === "latent" && node.note ? [...node.lines, node.note] : node.lines;
    lines.forEach((line, k) => {
      const small = k >= node.lines.length;
      text(node.x, node.y + 1.2 * FONT * (k - (lines.length - 1) / 2), small ? SMALL : FONT, line, group);
    });
    listen(group, node);
  };

  const drawEdge = (edge, nodes, lines, labels) => {
    if (edge.kind === "loading" && !edge.own && edge.strength < state.least) return;
    const look = edge.looks[state.style], points = curve(nodes.get(edge.source), nodes.get(edge.target), edge);
    const tipOf = edge.directed ? head(points, look.width) : null;
    const [start, control, end] = [points[0], points[1], tipOf ? tipOf.foot : points[2]].map((p) => p.map((v) => v.toFixed(2)).join(" "));
    const d = `M${start} Q${control} ${end}`;
    const ends = { "data-source": edge.source, "data-target": edge.target };
    const group = make("g", { class: "edge", ...ends, tabindex: 0, role: "img", "aria-label": edge.hint }, lines);
    make("path", { d, class: "hit", stroke: "#000", "stroke-opacity": 0, "stroke-width": 12, fill: "none" }, group);
    make("path", { d, ...paint({ ...look, fill: "none" }) }, group);
    if (tipOf) make("polygon", { points: tipOf.corners.map((p) => p.join(",")).join(" "), fill: look.stroke }, group);
    listen(group, edge);
    if (!edge.label) return;
    const [x, y] = onCurve(points, edge.at), label = make("g", { class: "label", ...ends }, labels);
    // Room at both ends: a minus sign that touches a dashed line would pass as one of its dashes.
    const width = SMALL * [...edge.label].reduce((sum, c) => sum + (advance[c] || 0.64), 0) + 4;
    make("rect", { x: x - width / 2, y: y - SMALL * 0.65, width, height: SMALL * 1.3, fill: "#fff", "fill-opacity": 0.92 }, label);
    text(x, y, SMALL, edge.label, label).setAttribute("style", "white-space: pre");
    listen(label, edge);
  };

  const draw = () => {
    const view = views[state.view], nodes = new Map(view.nodes.map((node) => [node.id, node]));
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${view.width} ${view.height}`);
    // The sheet fills the room it has, but letters stay readable: below seven tenths it is scrolled, not shrunk.
    const fit = Math.min(Math.max((stage.clientWidth - 2) / view.width, 0.7), 1.35);
    svg.setAttribute("width", view.width * fit * state.zoom);
    const frames = make("g", {}, svg), lines = make("g", {}, svg), shapes = make("g", {}, svg), labels = make("g", {}, svg);
    view.nodes.forEach((node) => drawNode(node, node.kind === "group" ? frames : shapes));
    view.edges.forEach((edge) => drawEdge(edge, nodes, lines, labels));
    svg.classList.remove("picked");
  };

  // Pointing and dragging -----------------------------------------------------------------------------------

  const showTip = (thing, x, y) => {
    tip.textContent = thing.hint;
    tip.hidden = !thing.hint;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - box.width - 4))}px`;
    tip.style.top = `${y + 18 + box.height > window.innerHeight ? Math.max(4, y - box.height - 10) : y + 18}px`;
  };

  const pick = (thing) => {
    const id = thing.parent || thing.id;
    const touches = (e) => thing.source ? e.dataset.source === thing.source && e.dataset.target === thing.target
      : e.dataset.source === id || e.dataset.target === id;
    svg.querySelectorAll("[data-source]").forEach((e) => e.classList.toggle("picked", touches(e)));
    svg.classList.add("picked");
  };

  const leave = () => { tip.hidden = true; svg.classList.remove("picked"); };

  let dragged = null;
  const listen = (element, thing) => {
    element.addEventListener("pointerenter", (event) => { if (!dragged) { pick(thing); showTip(thing, event.clientX, event.clientY); } });
    element.addEventListener("pointermove", (event) => { if (!dragged) showTip(thing, event.clientX, event.clientY); });
    element.addEventListener("pointerleave", () => { if (!dragged) leave(); });
    element.addEventListener("focus", () => {
      const box = element.getBoundingClientRect();
      pick(thing);
      showTip(thing, box.left + box.width / 2, box.top + box.height / 2);
    });
    element.addEventListener("blur", leave);
    if (!thing.source) element.addEventListener("pointerdown", (event) => grab(event, thing));
  };

  const place = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());

  const grab = (event, node) => {
    event.preventDefault();
    const all = views[state.view].nodes, whole = node.parent ? all.find((other) => other.id === node.parent) : node;
    // A group and the latents inside it move together.
    dragged = { from: place(event), nodes: all.filter((other) => other === whole || other.parent === whole.id) };
    leave();
  };

  window.addEventListener("pointermove", (event) => {
    if (!dragged) return;
    const to = place(event), view = views[state.view];
    for (const node of dragged.nodes) {
      node.x = Math.min(Math.max(node.x + to.x - dragged.from.x, node.width / 2), view.width - node.width / 2);
      node.y = Math.min(Math.max(node.y + to.y - dragged.from.y, node.height / 2), view.height - node.height / 2);
    }
    dragged.from = to;
    draw();
  });
  window.addEventListener("pointerup", () => { dragged = null; });
  window.addEventListener("pointercancel", () => { dragged = null; });

  // Tools ---------------------------------------------------------------------------------------------------

  const choose = (key, value) => {
    state[key] = value;
    document.querySelectorAll(`[data-${key}]`).forEach((b) => b.setAttribute("aria-pressed", b.dataset[key] === value));
    draw();
  };
  for (const key of ["view", "style"]) {
    document.querySelectorAll(`[data-${key}]`).forEach((b) => b.addEventListener("click", () => choose(key, b.dataset[key])));
  }
  document.getElementById("threshold").addEventListener("input", (event) => {
    state.least = Number(event.target.value);
    document.getElementById("threshold-value").textContent = state.least ? state.least.toFixed(2).replace(/^0/, "") : "0";
    draw();
  });
  const zoom = (factor) => { state.zoom = Math.min(Math.max(state.zoom * factor, 0.3), 6); draw(); };
  document.getElementById("zoom-in").addEventListener("click", () => zoom(1.25));
  document.getElementById("zoom-out").addEventListener("click", () => zoom(0.8));
  document.getElementById("reset").addEventListener("click", () => {
    Object.assign(views, JSON.parse(fresh));
    state.zoom = 1;
    draw();
  });
  stage.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1);
  }, { passive: false });
  window.addEventListener("resize", draw);

  const asText = () => {
    const view = views[state.view], copy = svg.cloneNode(true);
    copy.querySelectorAll(".hit").forEach((e) => e.remove());
    copy.querySelectorAll("[tabindex]").forEach((e) => e.removeAttribute("tabindex"));
    copy.setAttribute("width", view.width);
    copy.setAttribute("height", view.height);
    copy.setAttribute("font-family", FACE);
    copy.removeAttribute("style");
    return new XMLSerializer().serializeToString(copy);
  };
  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  document.getElementById("save-svg").addEventListener("click", () => {
    save(new Blob([asText()], { type: "image/svg+xml" }), `diagram-${state.view}.svg`);
  });
  document.getElementById("save-png").addEventListener("click", () => {
    const view = views[state.view], image = new Image(), canvas = document.createElement("canvas");
    canvas.width = 3 * view.width;
    canvas.height = 3 * view.height;
    image.addEventListener("load", () => {
      const context = canvas.getContext("2d");
      context.fillStyle = "#fff";
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(blob, `diagram-${state.view}.png`), "image/png");
    });
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(asText())}`;
  });
  choose("view", state.view);
})();

// Tables that sort, and the text to copy.
(() => {
  const value = (row, k) => {
    const raw = row.cells[k].dataset.value, number = Number(raw);
    return raw !== "" && !Number.isNaN(number) ? number : raw;
  };
  document.querySelectorAll("table.sortable").forEach((table) => {
    table.querySelectorAll("th").forEach((head, k) => head.querySelector("button").addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending", body = table.tBodies[0];
      const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
      const rows = [...body.rows].sort((a, b) => (up ? 1 : -1) * compare(value(a, k), value(b, k)));
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      body.append(...rows);
    }));
  });
  const copy = document.getElementById("copy");
  copy.addEventListener("click", () => {
    // Not every browser lets a page from a file at the clipboard; selecting and copying works in all.
    const range = document.createRange();
    range.selectNodeContents(document.getElementById("lavaan"));
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    copy.textContent = document.execCommand("copy") ? "Copied" : "Selected: press Ctrl+C";
    setTimeout(() => { copy.textContent = "Copy"; }, 2000);
  });
})();
