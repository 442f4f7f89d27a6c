// The page of the application. What is true is on the server; this draws it and sends what was done.
import { drawColumns } from "./columns.js";
import { drawKnown } from "./known.js";
import { drawResult } from "./result.js";
import { drawEdit } from "./edit.js";

const $ = (id) => document.getElementById(id);
const STEPS = ["data", "columns", "known", "search", "result", "edit", "export"];
const OPTIONS = ["n_latents", "max_group_size", "penalty", "tolerance", "time_limit"];
let project = sessionStorage.getItem("project"), state = {}, exportKinds = {}, growing = null, stream = null;

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

// Ask for something of this project that changes nothing.
const mine = (path) => ask(`${project}/${path}`);
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
  ({
    columns: () => drawColumns(state, act, mine), known: () => drawKnown(state, (known) => act("known", known)), search: drawSearch,
    result: () => { drawResult(state, mine, `api/${project}`); drawJob(); }, edit: () => drawEdit(state, act, project), export: drawExport,
  })[now]?.();
};

// Data ------------------------------------------------------------------------------------------------------

const opened = async (done) => { if (await done) go(state.result ? "result" : "columns"); };
const upload = (file) => opened(act(`file?name=${encodeURIComponent(file.name)}&header=${$("no-header").checked ? "no" : "yes"}`, file, true));
$("file").addEventListener("change", (event) => { if (event.target.files[0]) upload(event.target.files[0]); event.target.value = ""; });
$("drop").addEventListener("dragover", (event) => { event.preventDefault(); $("drop").classList.add("over"); });
$("drop").addEventListener("dragleave", () => $("drop").classList.remove("over"));
$("drop").addEventListener("drop", (event) => {
  event.preventDefault();
  $("drop").classList.remove("over");
  if (event.dataTransfer.files[0]) upload(event.dataTransfer.files[0]);
});
$("use-matrix").addEventListener("click", () => opened(act("matrix", { text: $("matrix").value, n: Number($("matrix-n").value) || null })));

// Search ----------------------------------------------------------------------------------------------------

const counted = (role, one, many) => {
  const n = state.columns.filter((column) => column.role === role).length;
  return n ? `${n} ${n === 1 ? one : many}` : "";
};
const drawSearch = () => {
  for (const id of OPTIONS) if (document.activeElement !== $(id)) $(id).value = state.options[id] ?? "";
  const parts = [counted("item", "item", "items"), counted("covariate", "covariate", "covariates"), counted("outcome", "outcome", "outcomes")];
  const by = state.columns.find((column) => column.role === "group"), groups = Object.keys(state.knowledge.groups ?? {}).length;
  $("plan").textContent = `Searched: ${parts.filter(Boolean).join(", ")}${by ? `, one structure for the groups of ${by.name}` : ""}${groups ? `; known: ${groups} group${groups === 1 ? "" : "s"} of items` : ""}.`;
  drawJob();
};
for (const id of OPTIONS) {
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
};
// A stream may be cut without a word, as when a machine sleeps; then asking tells.
setInterval(async () => {
  if (state.job?.status !== "running") return;
  const answer = await ask(`${project}/state`).catch(() => null);
  if (answer && answer.job.status !== "running") hear(answer.job);
}, 5000);

// Export ----------------------------------------------------------------------------------------------------

const drawExport = () => {
  $("export-of").textContent = state.result.is_edited
    ? "Of the model as you edited it; report and tables have the model found beside it. Undo in Edit leads back to the model found."
    : "Of the model found.";
  $("exports").replaceChildren(...Object.entries(exportKinds).map(([kind, words]) => {
    const item = document.createElement("li"), link = document.createElement("button");
    link.type = "button";
    link.className = "link";
    link.dataset.export = kind;
    link.textContent = words;
    link.addEventListener("click", () => download(kind, link));
    item.append(link);
    return item;
  }));
};
// By a request of the page, so that what cannot be made is a sentence here and no file.
const download = async (kind, link) => {
  link.disabled = true;
  try {
    const answer = await fetch(`api/${project}/export/${kind}`);
    if (!answer.ok) throw new Error((await answer.json()).error);
    const name = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition"))[1], file = document.createElement("a");
    file.href = URL.createObjectURL(await answer.blob());
    file.download = name;
    file.click();
    setTimeout(() => URL.revokeObjectURL(file.href), 10000);
    say("");
  } catch (error) {
    say(error.message);
  }
  link.disabled = false;
};

// Begin -----------------------------------------------------------------------------------------------------

document.querySelectorAll("[data-step]").forEach((b) => b.addEventListener("click", () => go(b.dataset.step)));
document.querySelectorAll("[data-go]").forEach((b) => b.addEventListener("click", () => go(b.dataset.go)));
window.addEventListener("hashchange", () => { say(""); draw(); });

const begin = async () => {
  try {
    const about = await ask("about");
    $("file").accept = about.files.join(",");
    exportKinds = about.exports;
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
