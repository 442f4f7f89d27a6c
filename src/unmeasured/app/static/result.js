// The result: a diagram, tables that are asked for when they are looked at, replicates in the background, the whole report.
const $ = (id) => document.getElementById(id);
const PARTS = ["diagram", "loadings", "levels", "effects", "fit", "groups", "stability", "report"];
let state = null, ask = null, address = "", diagram = null, part = "diagram", shown = {}, level = null, found = "";

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  Object.assign(element, attributes);
  element.append(...children);
  return element;
};

// A table of the server: cells are what is shown and what is sorted by.
const tableOf = ({ title, heads, rows, left, words }) => {
  const body = make("tbody"), isWord = (k) => (left.includes(k) ? "word" : "");
  for (const row of rows) {
    body.append(make("tr", {}, ...row.map(([text, value], k) => {
      const td = make("td", { className: isWord(k), textContent: text });
      td.dataset.value = value ?? "";
      return td;
    })));
  }
  const head = make("tr", {}, ...heads.map((text, k) => {
    const th = make("th", { className: isWord(k), scope: "col" });
    if (text) th.append(make("button", { type: "button", textContent: text }));
    return th;
  }));
  const box = make("div", { className: "wide", tabIndex: 0 }, make("table", { className: "sortable" }, make("thead", {}, head), body));
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", title);
  return [make("h3", { textContent: title }), box, ...(words ? [make("p", { className: "caption", textContent: words })] : [])];
};

// Item partitions: one at a time, from the narrowest latents to the broadest.
const levelsOf = ({ levels, selected }) => {
  if (level === null || level >= levels.length) level = selected;
  const choices = make("div", { className: "switch" }, ...levels.map((one, k) => {
    const button = make("button", { type: "button", textContent: one.name, title: one.note });
    button.dataset.level = k;
    button.setAttribute("aria-pressed", k === level);
    button.addEventListener("click", () => { level = k; drawPart(); });
    return button;
  }));
  choices.setAttribute("role", "group");
  choices.setAttribute("aria-label", "Item partitions, the one with most latents first");
  const now = levels[level], cards = now.latents.map(({ name, items }) =>
    make("div", { className: "card" }, make("h4", { textContent: name }), make("p", { textContent: items.join(", ") })));
  const rest = now.alone.length ? [make("p", { textContent: `With no latent: ${now.alone.join(", ")}.` })] : [];
  return [choices, make("p", { className: "caption", textContent: now.note }), make("div", { className: "cards" }, ...cards), ...rest];
};

const drawTables = (record) => {
  const sentences = record.sentences.map((text) => make("p", { textContent: text }));
  const levels = record.levels ? levelsOf(record) : [];
  $("part-tables").replaceChildren(...levels, ...sentences, ...record.tables.flatMap(tableOf));
  unmeasuredSorting($("part-tables"));
};
const drawDiagram = (data) => {
  $("views").hidden = Object.keys(data).length < 2;
  document.querySelectorAll("#views [data-view]").forEach((button) => { button.hidden = !(button.dataset.view in data); });
  $("pairs-switch").hidden = !data.full?.pairs;
  $("frequency-label").hidden = !state.result.has_stability || state.result.is_edited;
  // As in the report, a narrow screen begins with what fits on it.
  const isNarrow = window.innerWidth < 640 && data.latents;
  if (isNarrow) data.latents = data.latents.narrow ?? data.latents;
  if (diagram) { diagram.show(data); return; }
  diagram = unmeasuredDiagram($("diagram"), $("stage"), $("tip"), data);
  const tools = unmeasuredTools(diagram, $("part-diagram"));
  if (isNarrow) tools.choose("view", "latents");
};

// Which result it is: what was made of another one is asked for again.
const version = () => JSON.stringify([state.name, state.result, state.edit.what, state.edit.now, state.edit.renamed]);

const drawPart = async () => {
  const wanted = part, of = version();
  for (const name of PARTS) {
    const tab = $(`tab-${name}`);
    tab.setAttribute("aria-selected", name === part);
    tab.setAttribute("aria-controls", "part");
    tab.tabIndex = name === part ? 0 : -1;
  }
  $("tab-groups").hidden = !state.result.has_groups;
  $("part").setAttribute("aria-labelledby", `tab-${part}`);
  $("part-diagram").hidden = part !== "diagram";
  $("part-report").hidden = part !== "report";
  $("part-tables").hidden = ["diagram", "report"].includes(part);
  $("stability-tools").hidden = part !== "stability";
  if (part === "report") {
    if (shown.report !== of) {
      shown.report = of;
      $("report-status").textContent = "The report is being made.";
      $("report").src = `${address}/report?${Date.now()}`;
    }
    return;
  }
  try {
    if (shown[part]?.of !== of) {
      if (part !== "diagram") $("part-tables").replaceChildren(make("p", { className: "caption", textContent: "Being made." }));
      shown[part] = { of, record: await ask(part === "diagram" ? "diagram" : `part/${part}`) };
    }
    if (wanted !== part || of !== version()) return; // something else is looked at by now
    const { record, isDrawn } = shown[part];
    if (part !== "diagram") drawTables(record);
    else if (!isDrawn) { drawDiagram(record); shown.diagram.isDrawn = true; }
  } catch (error) {
    delete shown[part];
    $("part-tables").hidden = false;
    $("part-tables").replaceChildren(make("p", { textContent: error.message }));
  }
};

// The answer in sentences stands above all parts, and is what the diagram says to those who do not see it.
const drawLead = async () => {
  const of = version();
  if (shown.lead === of) return;
  shown.lead = of;
  try {
    const { sentences } = await ask("part/lead");
    if (of !== version()) return;
    $("lead").replaceChildren(...sentences.flatMap((text) => [make("span", { textContent: text }), " "]));
    $("diagram").setAttribute("aria-label", `Path diagram. ${$("lead").textContent}`);
  } catch (error) {
    $("lead").textContent = error.message;
    delete shown.lead;
  }
};

const open = (name) => { part = name; drawPart(); };
PARTS.forEach((name) => $(`tab-${name}`).addEventListener("click", () => open(name)));
$("tabs").addEventListener("keydown", (event) => {
  const seen = PARTS.filter((name) => !$(`tab-${name}`).hidden), k = seen.indexOf(part), n = seen.length;
  const to = { ArrowRight: (k + 1) % n, ArrowLeft: (k + n - 1) % n, Home: 0, End: n - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  open(seen[to]);
  $(`tab-${seen[to]}`).focus();
});
$("report").addEventListener("load", () => { $("report-status").textContent = ""; });

export const drawResult = (now, asking, where) => {
  [state, ask, address] = [now, asking, where];
  drawLead();
  $("stopped").textContent = state.result.stopped;
  $("stopped").hidden = !state.result.stopped;
  $("is-edited").hidden = !state.result.is_edited;
  const answer = JSON.stringify([state.name, state.result.indices]);
  if (answer !== found) [found, part, level] = [answer, "diagram", null]; // another answer
  drawPart();
};
