// What the columns are: items, covariates, outcomes, groups; their kinds, reversed items, missing codes; and what the check finds.
const $ = (id) => document.getElementById(id);
const ROLES = { item: "an item", covariate: "a covariate", outcome: "an outcome", group: "groups of people", omit: "left out" };
const KINDS = { auto: "auto", continuous: "continuous", ordinal: "ordinal" };
const MANY = {
  "role item": "items", "role covariate": "covariates", "role outcome": "outcomes", "role omit": "left out",
  "kind auto": "ordinal or not by their values", "kind continuous": "continuous", "kind ordinal": "ordinal",
  "is_reversed true": "reversed", "is_reversed false": "not reversed", codes: "missing where",
};
let state = null, act = null, ask = null, pending = null, kinds = {};

const cell = (row, content, word = false) => {
  const td = row.insertCell();
  if (word) td.className = "word";
  td.append(content);
  return td;
};
const figure = (value) => (value === null ? "" : Number(value.toPrecision(6)).toString());
const codes = (text) => text.split(/[,;\s]+/).filter(Boolean);
const select = (id, label, values, words) => {
  const element = document.createElement("select");
  element.id = id;
  element.setAttribute("aria-label", label);
  for (const value of values) element.add(new Option(words[value], value));
  return element;
};

// What a control of a row shows and whether it can be used.
const refresh = (column, k) => {
  const row = $("column-table").tBodies[0].rows[k], isItem = column.role === "item", isUsed = isItem || column.role === "outcome";
  row.classList.toggle("omitted", column.role === "omit");
  $(`role-${k}`).value = column.role;
  const kind = $(`kind-${k}`), taken = kinds[column.name];
  kind.value = column.kind;
  kind.disabled = !isUsed || state.is_matrix || state.options.cor !== "auto";
  kind.options[0].textContent = column.kind === "auto" && isUsed && taken ? `auto: ${taken === "scores" ? "ranks" : taken}` : KINDS.auto;
  $(`is_reversed-${k}`).checked = column.is_reversed;
  $(`is_reversed-${k}`).disabled = !isItem;
  const missing = $(`codes-${k}`);
  if (document.activeElement !== missing) missing.value = column.codes.map(figure).join(", ");
  missing.disabled = !column.is_number || state.is_matrix || column.role === "group";
};

const build = (column, k) => {
  const row = $("column-table").tBodies[0].insertRow(), name = document.createElement("span");
  row.dataset.column = column.name;
  name.textContent = column.name;
  const first = cell(row, name, true);
  if (column.label) {
    const label = document.createElement("div");
    label.className = "label-text";
    label.textContent = column.label;
    first.append(label);
  }
  const groups = state.roles.includes("group") && column.n_values >= 2 && column.n_values <= 50;
  const roles = state.roles.filter((role) => (role === "group" ? groups : role === "omit" || column.is_number));
  const role = select(`role-${k}`, `${column.name} is`, roles, ROLES);
  cell(row, role, true);
  cell(row, column.n_values ? String(column.n_values) : "");
  cell(row, column.low === null ? "" : `${figure(column.low)} to ${figure(column.high)}`);
  cell(row, column.n_missing ? String(column.n_missing) : "");
  const kind = select(`kind-${k}`, `${column.name} is taken as`, Object.keys(KINDS), KINDS);
  cell(row, kind, true);
  const box = document.createElement("input");
  box.type = "checkbox";
  box.id = `is_reversed-${k}`;
  box.setAttribute("aria-label", `${column.name} is reversed`);
  cell(row, box, true);
  const missing = document.createElement("input");
  missing.className = "small";
  missing.id = `codes-${k}`;
  missing.setAttribute("aria-label", `Missing codes of ${column.name}`);
  cell(row, missing, true);
  const change = () => save([{ name: column.name, role: role.value, kind: kind.value, is_reversed: box.checked, codes: codes(missing.value) }]);
  for (const control of [role, kind, box, missing]) control.addEventListener("change", change);
};

export const drawColumns = (now, acting, asking) => {
  [state, act, ask] = [now, acting, asking];
  $("cor").value = state.options.cor;
  $("missing").value = state.options.missing;
  $("cor").disabled = $("missing").disabled = state.is_matrix;
  $("sheet-label").hidden = state.sheets.length < 2;
  $("sheet").replaceChildren(...state.sheets.map((name) => new Option(name, name)));
  $("sheet").value = state.sheet;
  const body = $("column-table").tBodies[0];
  // The same columns are updated where they stand: a table made anew would take a click away that is on its way.
  const same = JSON.stringify([state.name, state.sheet, state.columns.map((c) => [c.name, c.label, c.low, c.high])]);
  if (body.dataset.of !== same) {
    body.dataset.of = same;
    body.replaceChildren();
    kinds = {};
    state.columns.forEach(build);
  }
  state.columns.forEach(refresh);
  check();
};

const save = (columns) => act("columns", { columns, options: { cor: $("cor").value, missing: $("missing").value } });
for (const id of ["cor", "missing"]) $(id).addEventListener("change", () => save([]));
$("sheet").addEventListener("change", () => act("sheet", { sheet: $("sheet").value }));
for (const [value, words] of Object.entries(MANY)) $("many-what").add(new Option(words, value));
$("many-what").addEventListener("change", () => { $("many-codes").hidden = $("many-what").value !== "codes"; });
$("set-many").addEventListener("click", () => {
  const [key, value] = $("many-what").value.split(" ");
  const given = { codes: codes($("many-codes").value), is_reversed: value === "true" }[key] ?? value;
  act("columns/many", { pattern: $("pattern").value, [key]: given });
});

const check = () => {
  clearTimeout(pending);
  pending = setTimeout(async () => {
    const list = document.createElement("ul"), add = (text, kind) => {
      const item = document.createElement("li");
      item.className = kind;
      item.textContent = text;
      list.append(item);
    };
    try {
      const found = await ask("check");
      found.column_errors.forEach((text) => add(text, "bad"));
      found.findings.filter((f) => !f.ok).forEach((f) => add(`${f.topic}: ${f.text}`, "bad"));
      found.remarks.forEach((remark) => add(remark, "note"));
      found.findings.filter((f) => f.ok).forEach((f) => add(`${f.topic}: ${f.text}`, "good"));
      kinds = found.kinds;
      state.columns.forEach(refresh);
    } catch (error) {
      add(error.message, "bad");
    }
    $("findings").replaceChildren(list);
  }, 150);
};
