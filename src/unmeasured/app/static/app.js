// The page of the application. What is true is on the server; this draws it and sends what was done.
import { drawKnown } from "./known.js";
import { drawEdit } from "./edit.js";

const $ = (id) => document.getElementById(id);
const STEPS = ["data", "columns", "known", "search", "result", "edit", "export"];
const EXPORTS = {
  report: "The report, one page to send", lavaan: "The model for lavaan", r: "An R script that fits it with lavaan", word: "Tables for Word",
  latex: "Tables for LaTeX", csv: "Tables as CSV", methods: "A paragraph on methods and limitations", svg: "The diagram as SVG", pdf: "The diagram as PDF", png: "The diagram as PNG",
  json: "The result as JSON", project: "The whole project, to open again here",
};
let project = sessionStorage.getItem("project"), state = {}, growing = null, stream = null, shownReport = "";

// Talking to the server -------------------------------------------------------------------------------------

const say = (sentence) => { $("message").textContent = sentence; $("message").hidden = !sentence; };

const ask = async (path, body, raw = false) => {
  const options = body === undefined ? {} : { method: "POST", body: raw ? body : JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(`api/${path}`, options);
  } catch {
    throw new Error("The application does not answer. Was it closed? Start it again with: unmeasured serve");
  }
  const record = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(record.error), { status: answer.status });
  return record;
};

// Do something on the server and show what became of it; a mistake is a sentence above the page. One thing after
// another, and only the last answer is drawn: an earlier one knows nothing of what was done since.
let last = Promise.resolve(), latest = 0;
const act = (path, body, raw) => {
  latest += 1;
  const mine = latest;
  last = last.then(() => acted(mine, path, body, raw));
  return last;
};
const acted = async (mine, path, body, raw) => {
  try {
    const answer = await ask(`${project}/${path}`, body ?? {}, raw);
    say("");
    if (mine === latest) take(answer);
    return true;
  } catch (error) {
    say(error.message);
    return false;
  }
};

const take = (answer) => { state = answer; draw(); };

// Steps -----------------------------------------------------------------------------------------------------

const step = () => (STEPS.includes(location.hash.slice(1)) ? location.hash.slice(1) : "data");
const allowed = (name) => name === "data" || (state.columns?.length && !["result", "edit", "export"].includes(name)) || Boolean(state.result);
const go = (name) => { location.hash = name; };

const draw = () => {
  const now = allowed(step()) ? step() : "data";
  for (const name of STEPS) {
    const button = document.querySelector(`[data-step=${name}]`);
    $(name).hidden = name !== now;
    button.disabled = !allowed(name);
    if (name === now) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
  }
  $("project-name").textContent = state.name ? `${state.name}: ${state.columns.length} columns, ${state.is_matrix ? "N =" : "rows:"} ${state.n}` : "";
  ({ columns: drawColumns, known: () => drawKnown(state, saveKnown), search: drawSearch, result: drawResult, edit: () => drawEdit(state, act), export: drawExport })[now]?.();
  if (now !== "result") shownReport = "";
};

// Data ------------------------------------------------------------------------------------------------------

const opened = async (done) => { if (await done) go(state.result ? "result" : "columns"); };
const upload = (file) => opened(act(`file?name=${encodeURIComponent(file.name)}`, file, true));
$("file").addEventListener("change", (event) => { if (event.target.files[0]) upload(event.target.files[0]); event.target.value = ""; });
$("drop").addEventListener("dragover", (event) => { event.preventDefault(); $("drop").classList.add("over"); });
$("drop").addEventListener("dragleave", () => $("drop").classList.remove("over"));
$("drop").addEventListener("drop", (event) => {
  event.preventDefault();
  $("drop").classList.remove("over");
  if (event.dataTransfer.files[0]) upload(event.dataTransfer.files[0]);
});
$("use-matrix").addEventListener("click", () => opened(act("matrix", { text: $("matrix").value, n: Number($("matrix-n").value) || null })));

// Columns ---------------------------------------------------------------------------------------------------

const cell = (row, content, word = false) => {
  const td = row.insertCell();
  if (word) td.className = "word";
  td.append(content);
  return td;
};
const figure = (value) => (value === null ? "" : Number(value.toPrecision(6)).toString());
const codes = (text) => text.split(/[,;\s]+/).filter(Boolean);
let pending = null;

const drawColumns = () => {
  $("cor").value = state.options.cor;
  $("missing").value = state.options.missing;
  $("cor").disabled = $("missing").disabled = state.is_matrix;
  const body = $("column-table").tBodies[0];
  // The same columns are updated where they stand: a table made anew would take a click away that is on its way.
  const same = JSON.stringify([state.name, state.columns.map((c) => [c.name, c.label, c.low, c.high])]);
  if (body.dataset.of === same) {
    state.columns.forEach((column, k) => {
      body.rows[k].classList.toggle("omitted", column.role === "omit");
      $(`role-${k}`).value = column.role;
      $(`is_reversed-${k}`).checked = column.is_reversed;
      $(`is_ordinal-${k}`).checked = column.is_ordinal;
      $(`is_ordinal-${k}`).disabled = !column.is_number || state.is_matrix || state.options.cor !== "auto";
      if (document.activeElement !== $(`codes-${k}`)) $(`codes-${k}`).value = column.codes.map(figure).join(", ");
    });
    check();
    return;
  }
  body.dataset.of = same;
  body.replaceChildren();
  state.columns.forEach((column, k) => {
    const row = body.insertRow();
    row.dataset.column = column.name;
    row.classList.toggle("omitted", column.role === "omit");
    const name = document.createElement("span");
    name.textContent = column.name;
    const first = cell(row, name, true);
    if (column.label) {
      const label = document.createElement("div");
      label.className = "label-text";
      label.textContent = column.label;
      first.append(label);
    }
    const role = document.createElement("select");
    role.id = `role-${k}`;
    role.setAttribute("aria-label", `${column.name} is`);
    for (const value of column.is_number ? state.roles : ["omit"]) role.add(new Option(value === "omit" ? "left out" : `an ${value}`.replace("an covariate", "a covariate"), value));
    role.value = column.role;
    cell(row, role, true);
    cell(row, column.n_values ? String(column.n_values) : "");
    cell(row, column.low === null ? "" : `${figure(column.low)} to ${figure(column.high)}`);
    cell(row, column.n_missing ? String(column.n_missing) : "");
    const boxes = ["is_ordinal", "is_reversed"].map((flag) => {
      const box = document.createElement("input");
      box.type = "checkbox";
      box.id = `${flag}-${k}`;
      box.checked = column[flag];
      box.disabled = !column.is_number || (flag === "is_ordinal" && (state.is_matrix || state.options.cor !== "auto"));
      box.setAttribute("aria-label", `${column.name} is ${flag === "is_ordinal" ? "ordinal" : "reversed"}`);
      cell(row, box, true);
      return box;
    });
    const missing = document.createElement("input");
    missing.className = "small";
    missing.id = `codes-${k}`;
    missing.value = column.codes.map(figure).join(", ");
    missing.disabled = !column.is_number || state.is_matrix;
    missing.setAttribute("aria-label", `Missing codes of ${column.name}`);
    cell(row, missing, true);
    const change = () => saveColumns([{ name: column.name, role: role.value, is_ordinal: boxes[0].checked, is_reversed: boxes[1].checked, codes: codes(missing.value) }]);
    for (const control of [role, ...boxes, missing]) control.addEventListener("change", change);
  });
  check();
};
const saveColumns = (columns) => act("columns", { columns, options: { cor: $("cor").value, missing: $("missing").value } });
for (const id of ["cor", "missing"]) $(id).addEventListener("change", () => saveColumns([]));
$("set-codes").addEventListener("click", () => {
  saveColumns(state.columns.filter((c) => c.is_number).map((c) => ({ name: c.name, codes: codes($("all-codes").value) })));
});

const check = () => {
  clearTimeout(pending);
  pending = setTimeout(async () => {
    const list = document.createElement("ul"), add = (text, good) => {
      const item = document.createElement("li");
      item.className = good ? "good" : "bad";
      item.textContent = text;
      list.append(item);
    };
    try {
      const found = await ask(`${project}/check`);
      const bad = found.findings.filter((f) => !f.ok), good = found.findings.filter((f) => f.ok);
      bad.forEach((f) => add(`${f.topic}: ${f.text}`, false));
      found.remarks.forEach((remark) => add(remark, false));
      good.forEach((f) => add(`${f.topic}: ${f.text}`, true));
    } catch (error) {
      add(error.message, false);
    }
    $("findings").replaceChildren(list);
  }, 150);
};

// Search ----------------------------------------------------------------------------------------------------

const saveKnown = (known) => act("known", known);

const drawSearch = () => {
  for (const id of ["max_group_size", "penalty", "tolerance", "time_limit"]) if (document.activeElement !== $(id)) $(id).value = state.options[id] ?? "";
  drawJob();
};
for (const id of ["max_group_size", "penalty", "tolerance", "time_limit"]) {
  $(id).addEventListener("change", () => act("columns", { columns: [], options: { [id]: $(id).value } }));
}
$("start").addEventListener("click", () => act("search"));
$("stop").addEventListener("click", () => act("stop"));
$("start-stability").addEventListener("click", () => act("stability", { replicates: Number($("replicates").value) }));
$("stop-stability").addEventListener("click", () => act("stop"));

const drawJob = () => {
  const job = state.job ?? { status: "idle" }, searching = job.status === "running" && job.task === "search";
  const repeating = job.status === "running" && job.task === "stability";
  $("start").disabled = searching || repeating;
  $("stop").hidden = !searching;
  $("start-stability").hidden = repeating;
  $("stop-stability").hidden = !repeating;
  $("stability-progress").textContent = repeating ? job.text : job.task === "stability" && job.status === "failed" ? job.sentence : "";
  $("progress").textContent = searching ? job.text : job.task === "search" && job.status === "failed" ? job.sentence : state.result ? "Done. The result is the next step." : "";
  $("growing").hidden = !(searching && job.sketch);
  if (searching && job.sketch) {
    if (growing) growing.show(job.sketch);
    else growing = unmeasuredDiagram($("growing-diagram"), $("growing-stage"), $("tip"), job.sketch);
  }
};

const listen = () => {
  stream?.close();
  stream = new EventSource(`api/${project}/events`);
  stream.onmessage = (event) => hear(JSON.parse(event.data));
};
const hear = async (job) => {
  const before = state.job;
  state.job = job;
  drawJob();
  if (before?.status !== "running" || job.status !== "done") return;
  take({ ...(await ask(`${project}/state`)), job });
  if (job.task === "search" && step() === "search") go("result");
  if (job.task === "stability") { shownReport = ""; draw(); }
};
// A stream may be cut without a word, as when a machine sleeps; then asking tells.
setInterval(async () => {
  if (state.job?.status !== "running") return;
  const answer = await ask(`${project}/state`).catch(() => null);
  if (answer && answer.job.status !== "running") hear(answer.job);
}, 5000);

// Result and export -----------------------------------------------------------------------------------------

const drawResult = () => {
  $("lead").textContent = state.result.lead.join(" ");
  drawJob();
  const version = JSON.stringify([state.result, state.edit.what, state.edit.now]);
  if (version !== shownReport) {
    shownReport = version;
    $("report-status").textContent = "The report is being made.";
    $("report").src = `api/${project}/report?${Date.now()}`;
  }
};
$("report").addEventListener("load", () => { $("report-status").textContent = ""; });
const drawExport = () => {
  $("exports").replaceChildren(...Object.entries(EXPORTS).map(([kind, words]) => {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = `api/${project}/export/${kind}`;
    link.download = "";
    link.dataset.export = kind;
    link.textContent = words;
    item.append(link);
    return item;
  }));
};

// Begin -----------------------------------------------------------------------------------------------------

document.querySelectorAll("[data-step]").forEach((b) => b.addEventListener("click", () => go(b.dataset.step)));
document.querySelectorAll("[data-go]").forEach((b) => b.addEventListener("click", () => go(b.dataset.go)));
window.addEventListener("hashchange", () => { say(""); draw(); });

const begin = async () => {
  try {
    const about = await ask("about");
    $("file").accept = about.files.join(",");
    $("datasets").replaceChildren(...Object.entries(about.datasets).map(([name, title]) => {
      const item = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      button.className = "link";
      button.dataset.dataset = name;
      button.textContent = title;
      button.addEventListener("click", () => opened(act("dataset", { name })));
      item.append(button);
      return item;
    }));
    let answer = null;
    if (project) answer = await ask(`${project}/state`).catch(() => null);
    if (!answer) {
      project = (await ask("project", {})).project;
      sessionStorage.setItem("project", project);
      answer = await ask(`${project}/state`);
    }
    take(answer);
    listen();
  } catch (error) {
    say(error.message);
  }
  document.body.dataset.ready = "yes";
};
begin();
