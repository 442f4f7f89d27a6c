// The model to edit: cytoscape draws it, the server fits every change.
const $ = (id) => document.getElementById(id);
const FACE = "DejaVu Sans, Verdana, sans-serif";
const dark = window.matchMedia("(prefers-color-scheme: dark)");
let graph = null, state = null, act = null, moved = {}, place = "";

const colour = () => (dark.matches ? { ink: "#e4e4e4", sheet: "#16181d", latent: "#2a2f55", minus: "#ff9a66", picked: "#7cc4ff", added: "#5fce8b" }
  : { ink: "#222", sheet: "#fff", latent: "#e3e0f5", minus: "#b23a00", picked: "#0b6bcb", added: "#117733" });
const style = () => {
  const c = colour();
  return [
    { selector: "node", style: { label: "data(id)", "text-valign": "center", "text-wrap": "wrap", "text-max-width": 110, "font-size": 10, "font-family": FACE, color: c.ink,
      "background-color": c.sheet, "border-color": c.ink, "border-width": 1, width: "data(wide)", height: "data(tall)", shape: "rectangle" } },
    { selector: "node.latent", style: { shape: "ellipse", "background-color": c.latent } },
    { selector: "edge", style: { label: "data(label)", "font-size": 8.5, "font-family": FACE, color: c.ink, "text-background-color": c.sheet, "text-background-opacity": 1, "text-background-padding": 2,
      "curve-style": "bezier", "target-arrow-shape": "triangle", "arrow-scale": 0.7, width: "data(width)", "line-color": c.ink, "target-arrow-color": c.ink } },
    { selector: "edge.beside", style: { label: "", "target-label": "data(label)", "target-text-offset": "data(offset)" } },
    { selector: "edge.undirected", style: { "target-arrow-shape": "none" } },
    { selector: "edge.routed", style: { "curve-style": "round-segments", "edge-distances": "node-position", "segment-weights": "data(weights)",
      "segment-distances": "data(distances)", "segment-radii": "data(radii)" } },
    { selector: "node.covariate", style: { "border-style": "double", "border-width": 3 } },
    { selector: "node.outcome", style: { "border-style": "dashed" } },
    { selector: "edge.pair", style: { "curve-style": "unbundled-bezier", "control-point-distances": "data(bulge)", "control-point-weights": 0.5, "line-style": "dotted", "source-arrow-shape": "triangle",
      "source-arrow-color": c.ink } },
    { selector: "edge.minus", style: { "line-style": "dashed", "line-color": c.minus, "target-arrow-color": c.minus, "source-arrow-color": c.minus } },
    { selector: "edge.added", style: { "line-color": c.added, "target-arrow-color": c.added, "source-arrow-color": c.added } },
    { selector: ":selected", style: { "border-color": c.picked, "border-width": 3, "line-color": c.picked, "target-arrow-color": c.picked } },
  ];
};

const number = (value) => (value === null || value === undefined ? "" : `${value < 0 ? "−" : ""}${Math.abs(value).toFixed(2).replace(/^0/, "")}`);
// The route of an edge as the diagram draws it: its points by their way along the straight line, and off it.
const bends = (points, from, to) => {
  const dx = to.x - from.x, dy = to.y - from.y, length = Math.hypot(dx, dy) || 1;
  const all = points?.length ? points : [[from.x, from.y]];
  return {
    weights: all.map(([x, y]) => ((x - from.x) * dx + (y - from.y) * dy) / length ** 2),
    distances: all.map(([x, y]) => ((y - from.y) * dx - (x - from.x) * dy) / length),
    radii: all.map(() => 14),
  };
};
const size = (id, latent) => {
  const lines = Math.ceil((6.2 * id.length) / 110), wide = Math.min(6.2 * id.length, 110);
  return latent ? { wide: Math.max(1.25 * wide + 18, 56), tall: 14 * lines + 20 } : { wide: Math.max(wide + 12, 34), tall: 13 * lines + 8 };
};
const elements = (edit) => {
  const latents = new Set(edit.latents);
  const kind = (id) => (latents.has(id) ? "latent" : edit.covariates.includes(id) ? "covariate" : edit.outcomes.includes(id) ? "outcome" : "");
  let fresh = 0;
  const place = (id) => {
    if (moved[id]) return moved[id];
    if (edit.places[id]) return { x: edit.places[id][0], y: edit.places[id][1] };
    fresh += 1;
    return { x: 60 * fresh, y: -50 };
  };
  const nodes = [...edit.latents, ...edit.observed].map((id) => ({ data: { id, ...size(id, latents.has(id)) }, classes: kind(id), position: { ...place(id) } }));
  const at = Object.fromEntries(nodes.map((node) => [node.data.id, node.position]));
  const routes = new Map(edit.routes.map((route) => [JSON.stringify([route.source, route.target]), route.points]));
  // Latents of a group share all their indicators, and their edges cross: figures stand side by side before the indicator.
  const isRouted = (source, target) => routes.get(JSON.stringify([source, target]))?.length > 0;
  const crossing = (target) => edit.edges.filter((edge) => edge.target === target && !isRouted(edge.source, target)).map((edge) => edge.source);
  const edges = edit.edges.map(({ source, target, std, is_new, is_directed }) => {
    const others = edit.observed.includes(target) ? crossing(target) : [], at_end = others.length > 1 && others.includes(source);
    return {
      data: {
        ...bends(routes.get(JSON.stringify([source, target])), at[source], at[target]), id: JSON.stringify([source, target]), source, target, label: number(std),
        width: 0.8 + 2.2 * Math.min(Math.abs(std ?? 0), 1), offset: at_end ? 20 + 26 * others.indexOf(source) : 0 },
      classes: `${at_end ? "beside" : ""} ${isRouted(source, target) && !moved[source] && !moved[target] ? "routed" : ""} ${std < 0 ? "minus" : ""} ${is_new ? "added" : ""} ${is_directed ? "" : "undirected"}`,
    };
  });
  // The arc of a pair goes round the items, on the side where their latents are not.
  const bulge = (source, target) => {
    const from = at[source], to = at[target], dx = to.x - from.x, dy = to.y - from.y, length = Math.hypot(dx, dy) || 1;
    const causes = edit.edges.filter((edge) => [source, target].includes(edge.target)).map((edge) => at[edge.source]);
    const middle = (axis) => (from[axis] + to[axis]) / 2, mean = (axis) => causes.reduce((sum, p) => sum + p[axis], 0) / causes.length;
    const away = causes.length ? [middle("x") - mean("x"), middle("y") - mean("y")] : [1, 0];
    const [a, b] = [size(source, false), size(target, false)], isUpright = Math.abs(dx) < Math.abs(dy);
    const round = isUpright ? Math.max(a.wide, b.wide) : Math.max(a.tall, b.tall);
    return (-dy * away[0] + dx * away[1] >= 0 ? 1 : -1) * (round + 0.12 * length + 16);
  };
  const pairs = edit.pairs.map(({ source, target, std, is_new }) => ({
    data: { bulge: bulge(source, target), id: JSON.stringify([source, "~~", target]), source, target, label: number(std), width: 0.8 + 2.2 * Math.min(Math.abs(std ?? 0), 1) },
    classes: `pair ${std < 0 ? "minus" : ""} ${is_new ? "added" : ""}`,
  }));
  return [...nodes, ...edges, ...pairs];
};

const fill = (id, names, labels) => {
  const select = $(id), old = select.value, words = (name) => (labels[name] ? `${name}: ${labels[name]}` : name);
  select.replaceChildren(...names.map((name) => new Option(words(name), name)));
  if (names.includes(old)) select.value = old;
};

const picked = () => {
  const nodes = graph.nodes(":selected").map((node) => node.id()), edges = graph.edges(":selected");
  if (edges.length) { $("edge-source").value = edges[0].data("source"); $("edge-target").value = edges[0].data("target"); }
  else if (nodes.length === 1) $("edge-source").value = nodes[0];
  else if (nodes.length > 1) { $("edge-source").value = nodes[0]; $("edge-target").value = nodes[1]; }
};

const table = (edit) => {
  const words = { chi2: ["chi-square", 2], df: ["df", 0], pvalue: ["p", 3], rmsea: ["RMSEA", 3], cfi: ["CFI", 3], tli: ["TLI", 3], srmr: ["SRMR", 3], bic: ["BIC", 1], aic: ["AIC", 1] };
  const p = (v) => (v < 0.001 ? "< .001" : v > 0.9995 ? "> .999" : v.toFixed(3).replace(/^0/, ""));
  const show = (key, v, digits) => (v === null ? "" : key === "pvalue" ? p(v) : v.toFixed(digits).replace("-", "−"));
  const signed = (v, digits) => (Math.abs(v) < 0.5 * 10 ** -digits ? "0" : `${v > 0 ? "+" : "−"}${Math.abs(v).toFixed(digits)}`);
  const line = (title, cell, tag = "td") => {
    const row = document.createElement("tr");
    [title, ...Object.entries(words).map(([key, [, digits]]) => cell(key, digits))].forEach((text, k) => {
      const element = document.createElement(k ? tag : "th");
      element.textContent = text;
      if (k) element.dataset.index = Object.keys(words)[k - 1];
      else element.className = "word";
      element.scope = tag === "th" ? "col" : "row";
      row.append(element);
    });
    return row;
  };
  const { found, now } = edit;
  const change = line("change", (key, digits) => (found[key] === null || now[key] === null ? "" : signed(now[key] - found[key], digits)));
  change.className = "change";
  $("beside").tHead.replaceChildren(line("", (key) => words[key][0], "th"));
  $("beside").tBodies[0].replaceChildren(
    line("found", (key, digits) => show(key, found[key], digits)), line("now", (key, digits) => show(key, now[key], digits)), change);
  const took = edit.milliseconds ? `Fitted in ${edit.milliseconds < 10 ? edit.milliseconds.toFixed(1) : Math.round(edit.milliseconds)} ms.` : "";
  $("fit-status").textContent = edit.now.proper ? took : `${took} The fit is not a proper one: ${edit.status}.`;
  const changes = [...edit.added.map((text) => `added: ${text}`), ...edit.removed.map((text) => `removed: ${text}`), ...edit.renamed];
  if (!changes.length) changes.push("nothing yet");
  $("changes").replaceChildren(...changes.map((text) => { const item = document.createElement("li"); item.textContent = text; return item; }));
};

// As much of the model in view as can be read, from its top; but only where the space for it has changed: an edit should not move what is looked at.
let space = "";
const fitted = () => {
  const now = `${graph.width()} ${window.innerHeight}`;
  if (now !== space) {
    // As tall as the model is where it fills the width, but no taller than the screen.
    const { w, h } = graph.elements().boundingBox(), tall = (graph.width() * h) / Math.max(w, 1) + 40;
    $("canvas").style.height = `${Math.round(Math.min(Math.max(tall, 320), 0.7 * window.innerHeight))}px`;
    graph.resize();
    graph.fit(undefined, 14);
    const least = 0.62;
    if (graph.zoom() < least) {
      const box = graph.elements().boundingBox();
      graph.zoom(least);
      // From its beginning where it is too wide or too tall.
      const from = (room, low, high) => (least * (high - low) > room - 28 ? 14 - least * low : room / 2 - (least / 2) * (low + high));
      graph.pan({ x: from(graph.width(), box.x1, box.x2), y: from(graph.height(), box.y1, box.y2) });
    }
  }
  space = now;
};
const ends = () => ({ source: $("edge-source").value, target: $("edge-target").value });
// The latent that got a name is the one to go on with.
const named = async (done, name) => { if (await done) { $("latent-name").value = ""; $("edge-source").value = name; } };
const wired = () => {
  $("undo").addEventListener("click", () => act("undo"));
  $("redo").addEventListener("click", () => act("redo"));
  const zoom = (by) => graph.zoom({ level: by * graph.zoom(), renderedPosition: { x: graph.width() / 2, y: graph.height() / 2 } });
  $("edit-in").addEventListener("click", () => zoom(1.25));
  $("edit-out").addEventListener("click", () => zoom(0.8));
  $("edit-fit").addEventListener("click", () => graph.fit(undefined, 14));
  $("add-edge").addEventListener("click", () => act("edit", { kind: "add", ...ends() }));
  $("remove-edge").addEventListener("click", () => act("edit", { kind: "remove", ...ends() }));
  $("reverse-edge").addEventListener("click", () => act("edit", { kind: "reverse", ...ends() }));
  $("rename").addEventListener("click", () => {
    const source = $("edge-source").value, name = $("latent-name").value.trim();
    if (moved[source]) { moved[name] = moved[source]; keepPlaces(); }
    named(act("edit", { kind: "rename", source, name }), name);
  });
  $("new-latent").addEventListener("click", () => {
    const items = graph.nodes(":selected").map((node) => node.id()).filter((id) => state.edit.observed.includes(id));
    const name = $("latent-name").value.trim();
    named(act("edit", { kind: "new", name, items }), name);
  });
  $("drop-latent").addEventListener("click", () => act("edit", { kind: "drop", source: $("edge-source").value }));
  document.addEventListener("keydown", (event) => {
    const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement?.tagName);
    if (!$("edit").hidden && event.key === "Delete" && !isTyping && graph?.edges(":selected").length) act("edit", { kind: "remove", ...ends() });
    if ($("edit").hidden || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    event.preventDefault();
    act(event.shiftKey ? "redo" : "undo");
  });
  dark.addEventListener("change", () => graph?.style(style()));
  window.addEventListener("resize", () => { if (graph && !$("edit").hidden) { graph.resize(); fitted(); } });
};
let isWired = false;

// Where nodes were dragged to stays through a reload, as all else does.
const keepPlaces = () => sessionStorage.setItem(place, JSON.stringify(moved));

export const drawEdit = (now, acting, project) => {
  state = now;
  act = acting;
  const here = `places ${project} ${now.name} ${now.result.indices.bic}`;
  if (here !== place) {
    place = here;
    moved = JSON.parse(sessionStorage.getItem(place) ?? "{}");
    space = "";
  }
  const edit = state.edit;
  if (!isWired) { wired(); isWired = true; }
  fill("edge-source", [...edit.latents, ...edit.observed], edit.labels);
  fill("edge-target", [...edit.observed, ...edit.latents], edit.labels);
  for (const name of ["undo", "redo"]) {
    $(name).disabled = !edit[name];
    $(name).title = edit[name] ? `${name}: ${edit[name]}` : "";
  }
  table(edit);
  if (!graph) {
    graph = cytoscape({ container: $("canvas"), style: style(), elements: elements(edit), layout: { name: "preset" }, selectionType: "additive" });
    graph.on("select unselect", picked);
    graph.on("dragfree", "node", (event) => {
      moved[event.target.id()] = { ...event.target.position() };
      event.target.connectedEdges().removeClass("routed");
      keepPlaces();
    });
  } else {
    graph.elements().remove();
    graph.add(elements(edit));
    graph.resize();
  }
  fitted();
};
