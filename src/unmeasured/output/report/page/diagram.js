"use strict";
// The diagram of the report and of the application: the values and the curves of diagram/picture.py, so that a page and
// the files agree. unmeasuredDiagram(svg, stage, tip, views) draws one of several views and returns what tools need.
const unmeasuredDiagram = (svg, stage, tip, given) => {
  const FONT = 10, SMALL = 8.5, LINE = 1.2, FACE = '"DejaVu Sans", Verdana, sans-serif';
  const advance = { ".": 0.32, " ": 0.32, "\u2212": 0.84 };
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const state = { view: Object.keys(given)[0], style: "colour", loading: null, path: 0, frequency: 0, pairs: false, zoom: 1, paper: false };
  let views = structuredClone(given), dragged = null;

  const make = (tag, attributes, parent) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (parent) parent.append(element);
    return element;
  };
  const look = () => (state.style === "colour" && dark.matches && !state.paper ? "dark" : state.style);
  const ink = () => (look() === "dark" ? "#e4e4e4" : "#222");
  const sheet = () => (look() === "dark" ? "#16181d" : "#fff");

  // Which edges are shown -----------------------------------------------------------------------------------

  const threshold = () => state.loading ?? given[state.view].least;
  // Below the threshold of the first picture there is one with all edges, laid out for these, and one with pairs as well.
  const base = () => {
    const view = given[state.view];
    if (state.pairs && view.pairs) return view.pairs;
    return view.all && threshold() < view.least ? view.all : view;
  };
  const shows = (edge) => {
    // A little slack: half of the replicates is not below one half.
    if (edge.frequency !== undefined && edge.frequency < state.frequency - 1e-9) return false;
    if (edge.kind === "pair") return true;
    return edge.kind === "path" ? edge.strength >= state.path : edge.main || edge.strength >= threshold();
  };
  const key = (source, target) => JSON.stringify([source, target]);

  // Layout: columns and orders stay, so nothing comes to cross or to overlap; places follow what is shown. ---

  const isotonic = (values, weights) => {
    const blocks = [];
    values.forEach((value, i) => {
      blocks.push({ sum: value * weights[i], weight: weights[i], count: 1 });
      while (blocks.length > 1) {
        const [a, b] = blocks.slice(-2);
        if (a.sum / a.weight <= b.sum / b.weight) break;
        blocks.splice(-2, 2, { sum: a.sum + b.sum, weight: a.weight + b.weight, count: a.count + b.count });
      }
    });
    return blocks.flatMap((block) => Array(block.count).fill(block.sum / block.weight));
  };

  const relayGrid = (grid, shown, nodes, edges) => {
    const lines = grid.lines.filter(([, , source, target]) => shown.has(key(source, target)));
    const used = new Set(lines.flatMap(([a, b]) => [a, b]));
    grid.slots.forEach((slot, k) => { if (slot.node) used.add(k); });
    const columns = grid.columns.map((column) => column.filter((k) => used.has(k)));
    const beside = new Map([...used].map((k) => [k, []]));
    for (const [a, b, source, target] of lines) {
      const bare = !grid.slots[a].node + !grid.slots[b].node;
      const labelled = bare === 1 && (grid.slots[a].label || grid.slots[b].label);
      const weight = edges.get(key(source, target)).kind === "pair" ? 1 : labelled ? 12 : [1, 2, 8][bare];
      beside.get(a).push([b, weight]);
      beside.get(b).push([a, weight]);
    }
    const apart = (a, b) => {
      const first = grid.slots[a], second = grid.slots[b], half = (first.wide + second.wide) / 2;
      const home = first.node && second.node && nodes.get(first.node).home;
      return half + (!first.node || !second.node || (home && home === nodes.get(second.node).home) ? 5 : 23);
    };
    const across = new Map([...used].map((k) => [k, grid.slots[k].across]));
    for (let sweep = 0; sweep < 40; sweep += 1) {
      for (const column of sweep % 2 ? columns.toReversed() : columns) {
        if (!column.length) continue;
        const offsets = [0];
        column.slice(1).forEach((k, i) => offsets.push(offsets[i] + apart(column[i], k)));
        const weights = column.map((k) => beside.get(k).reduce((sum, [, w]) => sum + w, 0.05));
        const wanted = column.map((k, i) =>
          beside.get(k).reduce((sum, [other, w]) => sum + w * across.get(other), 0.05 * across.get(k)) / weights[i] - offsets[i]);
        isotonic(wanted, weights).forEach((value, i) => across.set(column[i], value + offsets[i]));
      }
    }
    const ends = [...used].flatMap((k) => [across.get(k) - grid.slots[k].wide / 2, across.get(k) + grid.slots[k].wide / 2]);
    const top = Math.min(...ends);
    used.forEach((k) => across.set(k, across.get(k) - top));
    return { grid, columns, lines, across, breadth: Math.max(...ends) - top };
  };

  const relay = () => {
    const fresh = base(), view = structuredClone(fresh);
    views[state.view] = view;
    const shown = new Set(view.edges.filter(shows).map((e) => key(e.source, e.target)));
    if (shown.size === view.edges.length) return;
    const nodes = new Map(view.nodes.map((node) => [node.id, node])), down = view.flow === "down";
    const edges = new Map(view.edges.map((edge) => [key(edge.source, edge.target), edge]));
    const parts = fresh.grids.map((grid) => relayGrid(grid, shown, nodes, edges));
    let y = parts.length ? fresh.grids[0].y : 0, shelf = 0, x = parts.length ? fresh.grids[0].x : 0, height = 0, width = 0;
    for (const part of parts) {
      const length = Math.max(...part.grid.slots.filter((s) => s.node).map((s) => s.along + s.long / 2));
      const [wide, tall] = down ? [part.breadth, length] : [length, part.breadth];
      if (part.grid.shelf !== shelf) { y += height + 26; x = fresh.grids[0].x; height = 0; shelf = part.grid.shelf; }
      place(part, x, y, nodes, edges, down);
      x += wide + 26;
      height = Math.max(height, tall);
      width = Math.max(width, x - 26);
    }
    const bottom = y + height + 16, shift = bottom - Math.min(...fresh.legend.map((entry) => entry.y), fresh.remark_y);
    view.legend = fresh.legend.map((entry) => ({ ...entry, y: entry.y + shift }));
    view.remark_y = fresh.remark_y + shift;
    view.height = fresh.height + shift;
    view.width = Math.max(width + 14, ...fresh.legend.map((entry) => entry.x + 26 + 5.4 * entry.text.length));
    const total = given[state.view].total, drawn = view.edges.filter((edge) => edge.kind !== "pair" && shows(edge)).length;
    view.remark = [`Not drawn: ${total - drawn} of ${total} loadings and paths.`];
  };

  // Nodes, ports and routes of one part: as _Part.edges in diagram/layout.py.
  const place = (part, x, y, nodes, edges, down) => {
    const { grid, across } = part, at = (along, side) => (down ? [x + side, y + along] : [x + along, y + side]);
    const beside = new Map();
    for (const [a, b, source, target] of part.lines) {
      const name = key(source, target);
      if (!beside.has(name)) beside.set(name, new Map());
      for (const [one, other] of [[a, b], [b, a]]) beside.get(name).set(one, [...(beside.get(name).get(one) || []), other]);
    }
    grid.slots.forEach((slot, k) => {
      if (!slot.node) return;
      const node = nodes.get(slot.node), [px, py] = at(slot.along, across.get(k));
      for (const inner of nodes.values()) if (inner.parent === node.id) { inner.x += px - node.x; inner.y += py - node.y; }
      node.x = px;
      node.y = py;
    });
    const widest = new Map();
    part.columns.forEach((column) => column.forEach((k) => widest.set(k, Math.max(...column.map((o) => grid.slots[o].long)))));
    const ports = new Map(), routes = [];
    for (const [name, neighbours] of beside) {
      const edge = edges.get(name), chain = [[...neighbours.keys()].find((k) => grid.slots[k].node === edge.source)];
      for (let k = chain[0]; k !== undefined;) {
        k = neighbours.get(k).find((other) => !chain.slice(-2).includes(other));
        if (k !== undefined) chain.push(k);
      }
      routes.push([edge, chain]);
      for (const [k, other] of [[chain[0], chain[1]], [chain.at(-1), chain.at(-2)]]) {
        const side = grid.slots[other].along > grid.slots[k].along ? 1 : -1, port = `${k} ${side}`;
        if (!ports.has(port)) ports.set(port, []);
        ports.get(port).push([across.get(other), name]);
      }
    }
    const where = new Map();
    for (const [port, entries] of ports) {
      const [k, side] = port.split(" ").map(Number), slot = grid.slots[k], node = nodes.get(slot.node);
      const step = Math.min(10, (0.72 * slot.wide) / entries.length);
      entries.sort((a, b) => a[0] - b[0]).forEach(([, name], i) => {
        const off = step * (i - (entries.length - 1) / 2);
        const reach = (slot.long / 2) * (node.kind === "latent" ? Math.sqrt(Math.max(1 - (2 * off / slot.wide) ** 2, 0)) : 1);
        where.set(`${name} ${k}`, [slot.along + side * reach, across.get(k) + off]);
      });
    }
    for (const [edge, chain] of routes) {
      const name = key(edge.source, edge.target), along = (k) => grid.slots[k].along;
      edge.points = chain.flatMap((k, i) => {
        const slot = grid.slots[k], half = widest.get(k) / 2;
        if (slot.node) {
          const port = where.get(`${name} ${k}`), way = along(chain[i ? i - 1 : 1]) > slot.along ? 1 : -1;
          const stub = [slot.along + way * half, port[1]];
          const route = (slot.long / 2 < half - 0.5 ? [port, stub] : [port]).map((point) => at(...point));
          return i ? route.reverse() : route;
        }
        if (slot.label) edge.label_at = at(slot.along, across.get(k));
        const before = along(chain[i - 1]), after = along(chain[i + 1]), sign = slot.along > before ? 1 : -1;
        const ends = (after > slot.along) === (before > slot.along) ? [-1, 0, -1] : half ? [-1, 1] : [0];
        return ends.map((s) => at(slot.along + s * sign * half, across.get(k)));
      });
    }
  };

  // Drawing -------------------------------------------------------------------------------------------------

  const text = (x, y, size, words, parent, anchor = "middle") => {
    const element = make("text", { x, y: y + size * 0.35, "font-size": size, "text-anchor": anchor, fill: ink() }, parent);
    element.textContent = words;
    return element;
  };
  const paint = (paints) => ({
    stroke: paints.stroke, fill: paints.fill, "stroke-width": paints.width,
    ...(paints.dashed ? { "stroke-dasharray": `${4 * paints.width} ${2.2 * paints.width}` } : {}),
    ...(paints.dotted ? { "stroke-dasharray": `${1.1 * paints.width} ${1.7 * paints.width}` } : {}),
  });
  const shape = (node, paints, parent) => {
    const corner = { x: node.x - node.width / 2, y: node.y - node.height / 2, width: node.width, height: node.height };
    if (node.kind === "latent") make("ellipse", { cx: node.x, cy: node.y, rx: node.width / 2, ry: node.height / 2, ...paints }, parent);
    else make("rect", { ...corner, ...(node.kind === "group" ? { rx: Math.min(12, node.height / 3) } : {}), ...paints }, parent);
  };
  const drawNode = (node, parent) => {
    const group = make("g", { class: "node", "data-id": node.id, tabindex: 0, role: "img", "aria-label": node.hint }, parent);
    shape(node, paint(node.looks[look()]), group);
    const lines = [...node.lines.map((line) => [line, FONT]), ...node.notes.map((line) => [line, SMALL])];
    const tall = lines.reduce((sum, [, size]) => sum + size * LINE, 0);
    let y = node.kind === "group" ? node.y + node.height / 2 - 9 - tall : node.y - tall / 2;
    for (const [line, size] of lines) {
      text(node.x, y + (size * LINE) / 2, size, line, group);
      y += size * LINE;
    }
    listen(group, node);
  };

  const path = (points, down) => {
    let d = `M${points[0].map((v) => v.toFixed(2)).join(" ")}`;
    for (let k = 1; k < points.length; k += 1) {
      const [x0, y0] = points[k - 1], [x1, y1] = points[k], mx = (x0 + x1) / 2, my = (y0 + y1) / 2;
      const numbers = down ? [x0, my, x1, my, x1, y1] : [mx, y0, mx, y1, x1, y1];
      d += `C${numbers.map((v) => v.toFixed(2)).join(" ")}`;
    }
    return d;
  };
  const head = (points, down, width) => {
    const [x0, y0] = points.at(-2), [x, y] = points.at(-1), length = 6 + 1.2 * width, half = 2.2 + 0.9 * width;
    const [dx, dy] = down ? [0, y >= y0 ? 1 : -1] : [x >= x0 ? 1 : -1, 0], bx = x - length * dx, by = y - length * dy;
    return {
      foot: [x - 0.8 * length * dx, y - 0.8 * length * dy],
      corners: [[x, y], [bx - half * dy, by + half * dx], [bx + half * dy, by - half * dx]],
    };
  };
  // As arrow_heads in diagram/picture.py: one head for a cause, two for a residual pair.
  const line = (points, down, looks, directed, parent) => {
    const route = [...points], heads = [];
    if (directed || looks.dotted) heads.push(head(points, down, looks.width));
    if (heads.length) route[route.length - 1] = heads[0].foot;
    if (looks.dotted) {
      heads.push(head(points.toReversed(), down, looks.width));
      route[0] = heads[1].foot;
    }
    const d = path(route, down);
    make("path", { d, ...paint({ ...looks, fill: "none" }) }, parent);
    for (const one of heads) make("polygon", { points: one.corners.map((p) => p.join(",")).join(" "), fill: looks.stroke }, parent);
    return d;
  };
  const drawEdge = (edge, down, lines, labels) => {
    const ends = { "data-source": edge.source, "data-target": edge.target };
    const group = make("g", { class: "edge", ...ends, tabindex: 0, role: "img", "aria-label": edge.hint }, lines);
    const d = line(edge.points, down, edge.looks[look()], edge.directed, group);
    group.prepend(make("path", { d, class: "hit", stroke: "#000", "stroke-opacity": 0, "stroke-width": 10, fill: "none" }));
    listen(group, edge);
    if (!edge.label) return;
    const [x, y] = edge.label_at, label = make("g", { class: "label", ...ends }, labels);
    // Free space at both ends: a minus sign that touches a dashed line would pass as one of its dashes.
    const width = SMALL * [...edge.label].reduce((sum, c) => sum + (advance[c] || 0.64), 0) + 8;
    make("rect", { x: x - width / 2, y: y - SMALL * 0.65, width, height: SMALL * 1.3, fill: sheet() }, label);
    text(x, y, SMALL, edge.label, label).style.whiteSpace = "pre"; // by property: a strict policy forbids the attribute
    listen(label, edge);
  };
  const drawKey = (entry, parent) => {
    const x = entry.x + 10, y = entry.y, looks = entry.looks[look()];
    if (["latent", "observed", "shared", "group"].includes(entry.sample)) {
      const kind = entry.sample === "shared" ? "observed" : entry.sample;
      shape({ kind, x, y, width: 20, height: 11 }, paint(looks), parent);
    } else line([[x - 10, y], [x + 10, y]], false, looks, entry.sample === "arrow", parent);
    text(entry.x + 26, y, SMALL, entry.text, parent, "start");
  };

  const draw = () => {
    const view = views[state.view], down = view.flow === "down";
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${view.width} ${view.height}`);
    // The sheet fills the space it has, but letters stay readable: below seven tenths it is scrolled, not shrunk.
    const fit = Math.min(Math.max((stage.clientWidth - 2) / view.width, 0.7), 1.35);
    svg.setAttribute("width", view.width * fit * state.zoom);
    const frames = make("g", {}, svg), lines = make("g", {}, svg), shapes = make("g", {}, svg), labels = make("g", {}, svg);
    view.nodes.forEach((node) => drawNode(node, node.kind === "group" ? frames : shapes));
    view.edges.filter(shows).forEach((edge) => drawEdge(edge, down, lines, labels));
    const legend = make("g", { class: "legend" }, svg);
    view.legend.forEach((entry) => drawKey(entry, legend));
    view.remark.forEach((words, k) => text(14, view.remark_y + SMALL * LINE * k, SMALL, words, legend, "start"));
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
    if (thing.source) return;
    element.addEventListener("pointerdown", (event) => grab(event, thing));
    element.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: [-8, 0], ArrowRight: [8, 0], ArrowUp: [0, -8], ArrowDown: [0, 8] }[event.key];
      if (!by || !event.shiftKey) return;
      event.preventDefault();
      move(company(thing), ...by);
      svg.querySelector(`.node[data-id=${JSON.stringify(thing.id)}]`).focus();
    });
  };
  const where = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  // A group moves with its latents, and a latent or a group with its indicators.
  const company = (node) => {
    const all = views[state.view].nodes, whole = node.parent ? all.find((other) => other.id === node.parent) : node;
    return all.filter((other) => other === whole || other.parent === whole.id || other.home === whole.id);
  };
  const grab = (event, node) => {
    event.preventDefault();
    dragged = { from: where(event), nodes: company(node) };
    leave();
  };
  const move = (nodes, dx, dy) => {
    const view = views[state.view], moved = new Set(nodes.map((node) => node.id)), down = view.flow === "down";
    for (const node of nodes) { node.x += dx; node.y += dy; }
    for (const edge of view.edges) {
      const [first, last] = [moved.has(edge.source), moved.has(edge.target)];
      if (!first && !last) continue;
      const shifted = edge.points.map(([x, y]) => [x + dx, y + dy]);
      if (first && last) {
        edge.points = shifted;
        edge.label_at = [edge.label_at[0] + dx, edge.label_at[1] + dy];
        continue;
      }
      // The end that moved takes its port along; the route in between becomes one curve.
      edge.points = [first ? shifted[0] : edge.points[0], last ? shifted.at(-1) : edge.points.at(-1)];
      edge.label_at = [0, 1].map((k) => (edge.points[0][k] + edge.points[1][k]) / 2);
    }
    const corner = (node) => [node.x + node.width / 2 + 14, node.y + node.height / 2 + 14];
    view.width = Math.max(view.width, ...nodes.map((node) => corner(node)[0]));
    view.height = Math.max(view.height, ...nodes.map((node) => corner(node)[1]));
    draw();
  };
  const onMove = (event) => {
    if (!dragged) return;
    const to = where(event), bounded = (v, least) => Math.max(v, least);
    const left = Math.min(...dragged.nodes.map((n) => n.x - n.width / 2)), top = Math.min(...dragged.nodes.map((n) => n.y - n.height / 2));
    move(dragged.nodes, bounded(to.x - dragged.from.x, 2 - left), bounded(to.y - dragged.from.y, 2 - top));
    dragged.from = to;
  };
  const drop = () => { dragged = null; };
  window.addEventListener("pointermove", onMove);
  window.addEventListener("pointerup", drop);
  window.addEventListener("pointercancel", drop);
  window.addEventListener("resize", draw);
  dark.addEventListener("change", draw);
  window.addEventListener("beforeprint", () => { state.paper = true; draw(); });
  window.addEventListener("afterprint", () => { state.paper = false; draw(); });
  stage.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1);
  }, { passive: false });

  // Tools ---------------------------------------------------------------------------------------------------

  const zoom = (factor) => { state.zoom = Math.min(Math.max(state.zoom * factor, 0.3), 6); draw(); };
  const set = (changes) => {
    const filters = ["loading", "path", "frequency", "pairs"].some((name) => name in changes);
    Object.assign(state, changes);
    if (filters || "view" in changes) relay();
    draw();
  };
  const reset = () => { views = structuredClone(given); state.zoom = 1; relay(); draw(); };
  const show = (other) => {
    given = other;
    views = structuredClone(given);
    if (!(state.view in views)) state.view = Object.keys(views)[0];
    relay();
    draw();
  };
  const asText = () => {
    const view = views[state.view];
    state.paper = true;
    draw();
    const copy = svg.cloneNode(true);
    state.paper = false;
    draw();
    copy.querySelectorAll(".hit").forEach((e) => e.remove());
    copy.querySelectorAll("[tabindex]").forEach((e) => e.removeAttribute("tabindex"));
    copy.setAttribute("width", view.width);
    copy.setAttribute("height", view.height);
    copy.setAttribute("font-family", FACE);
    return new XMLSerializer().serializeToString(copy);
  };
  const save = (blob, ending) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `diagram-${state.view}.${ending}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const saveSvg = () => save(new Blob([asText()], { type: "image/svg+xml" }), "svg");
  const savePng = () => {
    const view = views[state.view], image = new Image(), canvas = document.createElement("canvas");
    canvas.width = 3 * view.width;
    canvas.height = 3 * view.height;
    image.addEventListener("load", () => {
      const context = canvas.getContext("2d");
      context.fillStyle = "#fff";
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(blob, "png"), "image/png");
    });
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(asText())}`;
  };
  draw();
  return { state, set, zoom, reset, show, saveSvg, savePng, least: threshold };
};

// The tools above a diagram: buttons and sliders by their ids, so that the report and the application share them.
const unmeasuredTools = (diagram, root = document) => {
  const find = (name) => root.querySelector(`#${name}`);
  const press = (name, value) => root.querySelectorAll(`[data-${name}]`).forEach((b) => b.setAttribute("aria-pressed", b.dataset[name] === value));
  const figure = (value) => (value ? value.toFixed(2).replace(/^0/, "") : "0");
  const sliders = () => {
    find("threshold").value = diagram.least();
    find("threshold-value").textContent = figure(diagram.least());
  };
  const choose = (name, value) => { diagram.set({ [name]: value }); press(name, value); sliders(); };
  for (const name of ["view", "style"]) {
    root.querySelectorAll(`[data-${name}]`).forEach((b) => b.addEventListener("click", () => choose(name, b.dataset[name])));
  }
  find("threshold").addEventListener("input", (event) => { diagram.set({ loading: Number(event.target.value) }); sliders(); });
  find("path-threshold").addEventListener("input", (event) => {
    diagram.set({ path: Number(event.target.value) });
    find("path-threshold-value").textContent = figure(diagram.state.path);
  });
  const pairs = find("show-pairs");
  if (pairs) pairs.addEventListener("click", () => {
    if (!diagram.state.pairs && diagram.state.view === "latents") choose("view", "full"); // which have no items
    diagram.set({ pairs: !diagram.state.pairs });
    pairs.setAttribute("aria-pressed", diagram.state.pairs);
  });
  const often = find("frequency");
  if (often) often.addEventListener("input", () => {
    diagram.set({ frequency: Number(often.value) });
    find("frequency-value").textContent = `${Math.round(100 * often.value)}%`;
  });
  find("zoom-in").addEventListener("click", () => diagram.zoom(1.25));
  find("zoom-out").addEventListener("click", () => diagram.zoom(0.8));
  find("reset").addEventListener("click", diagram.reset);
  find("save-svg").addEventListener("click", diagram.saveSvg);
  find("save-png").addEventListener("click", diagram.savePng);
  press("view", diagram.state.view);
  sliders();
  return { choose };
};

// Tables that sort by a click on a heading.
const unmeasuredSorting = (root = document) => {
  const value = (row, k) => {
    const raw = row.cells[k].dataset.value, number = Number(raw);
    return raw !== "" && !Number.isNaN(number) ? number : raw;
  };
  root.querySelectorAll("table.sortable").forEach((table) => {
    table.querySelectorAll("th button").forEach((button) => button.addEventListener("click", () => {
      const heading = button.closest("th"), k = heading.cellIndex, body = table.tBodies[0];
      const up = heading.getAttribute("aria-sort") !== "ascending";
      const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
      const rows = [...body.rows].sort((a, b) => (up ? 1 : -1) * compare(value(a, k), value(b, k)));
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      body.append(...rows);
    }));
  });
};
