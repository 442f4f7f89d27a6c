// What is known: items in groups, by dragging or from a list, and tiers of groups.
const $ = (id) => document.getElementById(id);
let known = { groups: {}, tiers: [] }, save = null, items = [], labels = {};

const tierOf = (name) => known.tiers.findIndex((tier) => tier.includes(name)) + 1;
const send = () => {
  const groups = Object.fromEntries(Object.entries(known.groups).filter(([, list]) => list.length));
  return save({ groups, tiers: known.tiers.filter((tier) => tier?.length) });
};
const put = (item, group) => {
  for (const list of Object.values(known.groups)) if (list.includes(item)) list.splice(list.indexOf(item), 1);
  if (group) known.groups[group].push(item);
  show();
  send();
};

const chip = (item) => {
  const element = document.createElement("span"), name = document.createElement("span"), select = document.createElement("select");
  element.className = "chip";
  element.dataset.item = item;
  name.textContent = item;
  if (labels[item]) element.title = labels[item];
  select.setAttribute("aria-label", `Group of ${item}`);
  select.add(new Option("no group", ""));
  for (const group of Object.keys(known.groups)) select.add(new Option(group, group));
  select.value = Object.keys(known.groups).find((group) => known.groups[group].includes(item)) ?? "";
  select.addEventListener("change", () => put(item, select.value));
  element.append(name, select);
  name.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    element.classList.add("dragged");
    const target = (e) => document.elementFromPoint(e.clientX, e.clientY)?.closest(".drop-target");
    const over = (e) => {
      document.querySelectorAll(".drop-target.over").forEach((box) => box.classList.remove("over"));
      target(e)?.classList.add("over");
    };
    const drop = (e) => {
      window.removeEventListener("pointermove", over);
      const box = target(e);
      element.classList.remove("dragged");
      document.querySelectorAll(".drop-target.over").forEach((b) => b.classList.remove("over"));
      if (box) put(item, box.dataset.group);
    };
    window.addEventListener("pointermove", over);
    window.addEventListener("pointerup", drop, { once: true });
  });
  return element;
};

const box = (group) => {
  const element = document.createElement("div"), row = document.createElement("div"), name = document.createElement("input");
  const tier = document.createElement("select"), remove = document.createElement("button"), chips = document.createElement("div");
  element.className = "box drop-target";
  element.dataset.group = group;
  row.className = "row";
  name.type = "text";
  name.value = group;
  name.setAttribute("aria-label", "Name of the group");
  name.addEventListener("change", () => {
    const wanted = name.value.trim();
    if (!wanted || wanted in known.groups) { name.value = group; return; }
    known.groups = Object.fromEntries(Object.entries(known.groups).map(([k, v]) => [k === group ? wanted : k, v]));
    known.tiers = known.tiers.map((list) => list.map((k) => (k === group ? wanted : k)));
    show();
    send();
  });
  tier.setAttribute("aria-label", `Tier of ${group}`);
  tier.add(new Option("no tier", "0"));
  for (let k = 1; k <= Math.max(Object.keys(known.groups).length, 1); k += 1) tier.add(new Option(`tier ${k}`, String(k)));
  tier.value = String(tierOf(group));
  tier.addEventListener("change", () => {
    known.tiers = known.tiers.map((list) => list.filter((k) => k !== group));
    const place = Number(tier.value) - 1;
    while (known.tiers.length <= place) known.tiers.push([]);
    if (place >= 0) known.tiers[place].push(group);
    send();
  });
  remove.type = "button";
  remove.className = "lone";
  remove.textContent = "Remove";
  remove.addEventListener("click", () => {
    delete known.groups[group];
    known.tiers = known.tiers.map((list) => list.filter((k) => k !== group));
    show();
    send();
  });
  chips.className = "chips";
  chips.append(...known.groups[group].map(chip));
  row.append(name, tier, remove);
  element.append(row, chips);
  return element;
};

const show = () => {
  const placed = new Set(Object.values(known.groups).flat());
  $("groups-known").replaceChildren(...Object.keys(known.groups).map(box));
  $("loose").replaceChildren(...items.filter((item) => !placed.has(item)).map(chip));
};

$("new-group").addEventListener("click", () => {
  let k = Object.keys(known.groups).length + 1;
  while (`group ${k}` in known.groups) k += 1;
  known.groups[`group ${k}`] = [];
  show();
  document.querySelector("#groups-known .box:last-child input").focus();
});

export const drawKnown = (state, saving) => {
  save = saving;
  items = state.columns.filter((column) => column.role === "item").map((column) => column.name);
  labels = Object.fromEntries(state.columns.map((column) => [column.name, column.label]));
  // Groups that are still empty are known to this page only.
  const empty = Object.fromEntries(Object.entries(known.groups).filter(([, list]) => !list.length));
  known = { groups: { ...structuredClone(state.knowledge.groups ?? {}), ...empty }, tiers: structuredClone(state.knowledge.tiers ?? []) };
  show();
};
