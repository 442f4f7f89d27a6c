// What is known: items in groups; groups, covariates and outcomes in tiers. By dragging, or from lists.
const $ = (id) => document.getElementById(id);
let known = { groups: {}, tiers: [] }, project = "", save = null, items = [], others = [], labels = {};

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  Object.assign(element, attributes);
  element.append(...children);
  return element;
};
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
const putInTier = (name, tier) => {
  known.tiers = known.tiers.map((list) => list.filter((k) => k !== name));
  while (known.tiers.length < tier) known.tiers.push([]);
  if (tier > 0) known.tiers[tier - 1].push(name);
  known.tiers = known.tiers.filter((list) => list.length);
  show();
  send();
};

// Drag an element by a handle onto one of the targets; near the ends of the screen the page scrolls along.
const draggable = (handle, element, targets, dropped) => handle.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  event.preventDefault();
  element.classList.add("dragged");
  const target = (e) => document.elementFromPoint(e.clientX, e.clientY)?.closest(targets);
  const clear = () => document.querySelectorAll(".over").forEach((box) => box.classList.remove("over"));
  const over = (e) => {
    clear();
    target(e)?.classList.add("over");
    if (e.clientY < 40) window.scrollBy(0, -12);
    if (e.clientY > window.innerHeight - 40) window.scrollBy(0, 12);
  };
  const end = (e) => {
    window.removeEventListener("pointermove", over);
    window.removeEventListener("pointerup", end);
    window.removeEventListener("pointercancel", end);
    element.classList.remove("dragged");
    clear();
    const box = e.type === "pointerup" ? target(e) : null;
    if (box) dropped(box);
  };
  window.addEventListener("pointermove", over);
  window.addEventListener("pointerup", end);
  window.addEventListener("pointercancel", end);
});

const chip = (item) => {
  const name = make("span", { textContent: item }), select = make("select");
  if (labels[item]) name.append(make("small", { textContent: labels[item] }));
  const element = make("span", { className: "chip" }, name, select);
  element.dataset.item = item;
  select.setAttribute("aria-label", `Group of ${item}`);
  select.add(new Option("no group", ""));
  for (const group of Object.keys(known.groups)) select.add(new Option(group, group));
  select.value = Object.keys(known.groups).find((group) => known.groups[group].includes(item)) ?? "";
  select.addEventListener("change", () => {
    put(item, select.value);
    document.querySelector(`.chip[data-item="${CSS.escape(item)}"] select`)?.focus();
  });
  draggable(name, element, ".drop-target", (box) => put(item, box.dataset.group));
  return element;
};

const tierList = (name) => {
  const tier = make("select");
  tier.setAttribute("aria-label", `Tier of ${name}`);
  tier.add(new Option("no tier", "0"));
  for (let k = 1; k <= known.tiers.length + 1; k += 1) tier.add(new Option(`tier ${k}`, String(k)));
  tier.value = String(tierOf(name));
  tier.addEventListener("change", () => {
    putInTier(name, Number(tier.value));
    document.querySelector(`[data-member="${CSS.escape(name)}"] .row select`)?.focus();
  });
  return tier;
};
const handleOf = (name) => make("span", { className: "handle", title: `Drag ${name} into a tier`, ariaHidden: "true", textContent: "⠿" });

const box = (group) => {
  const name = make("input", { type: "text", value: group }), handle = handleOf(group);
  const remove = make("button", { type: "button", className: "lone", textContent: "Remove" });
  name.setAttribute("aria-label", "Name of the group");
  name.addEventListener("change", () => {
    const wanted = name.value.trim();
    if (!wanted || wanted in known.groups || others.includes(wanted)) { name.value = group; return; }
    known.groups = Object.fromEntries(Object.entries(known.groups).map(([k, v]) => [k === group ? wanted : k, v]));
    known.tiers = known.tiers.map((list) => list.map((k) => (k === group ? wanted : k)));
    show();
    send();
  });
  remove.addEventListener("click", () => {
    delete known.groups[group];
    putInTier(group, 0);
  });
  const chips = make("div", { className: "chips" }, ...known.groups[group].map(chip));
  const element = make("div", { className: "box drop-target" }, make("div", { className: "row" }, handle, name, tierList(group), remove), chips);
  if (!known.groups[group].length) chips.append(make("span", { className: "caption", textContent: "Drop items here." }));
  element.dataset.group = element.dataset.member = group;
  draggable(handle, element, ".tier", (place) => putInTier(group, Number(place.dataset.tier)));
  return element;
};
const role = (name) => {
  const handle = handleOf(name);
  const element = make("div", { className: "box small-box" }, make("div", { className: "row" }, handle, make("span", { textContent: name }), tierList(name)));
  element.dataset.member = name;
  draggable(handle, element, ".tier", (place) => putInTier(name, Number(place.dataset.tier)));
  return element;
};

const show = () => {
  const members = [...Object.keys(known.groups), ...others], placed = new Set(Object.values(known.groups).flat());
  const sections = [...Array(members.length ? known.tiers.length + 2 : 1).keys()].map((k) => {
    const inside = members.filter((name) => tierOf(name) === k), isLast = k === known.tiers.length + 1;
    const words = k === 0 ? "No tier" : isLast ? `Tier ${k}: drop here what comes ${k === 1 ? "first" : "later"}` : `Tier ${k}`;
    const section = make("section", { className: "tier" }, make("h3", { textContent: words }));
    section.append(make("div", { className: "boxes" }, ...inside.map((name) => (name in known.groups ? box(name) : role(name)))));
    section.dataset.tier = String(k);
    section.classList.toggle("empty", !inside.length);
    section.hidden = k === 0 && !inside.length && !members.length;
    return section;
  });
  $("tiers").replaceChildren(...sections);
  $("tiers").dataset.of = JSON.stringify([known, items, others]);
  $("loose").replaceChildren(...items.filter((item) => !placed.has(item)).map(chip));
};

$("new-group").addEventListener("click", () => {
  let k = Object.keys(known.groups).length + 1;
  while (`group ${k}` in known.groups) k += 1;
  known.groups[`group ${k}`] = [];
  show();
  document.querySelector(`[data-group="group ${k}"] input`).focus();
});

export const drawKnown = (state, saving) => {
  save = saving;
  items = state.columns.filter((column) => column.role === "item").map((column) => column.name);
  others = state.columns.filter((column) => ["covariate", "outcome"].includes(column.role)).map((column) => column.name);
  labels = Object.fromEntries(state.columns.map((column) => [column.name, column.label]));
  const now = JSON.stringify(state.columns.map((column) => column.name));
  if (now !== project) known = { groups: {}, tiers: [] };
  project = now;
  // Groups that are still empty, and the tiers these are in, are known to this page only.
  const empty = Object.fromEntries(Object.entries(known.groups).filter(([name, list]) => !list.length && !others.includes(name)));
  const next = { groups: { ...structuredClone(state.knowledge.groups ?? {}), ...empty }, tiers: structuredClone(state.knowledge.tiers ?? []) };
  if (Object.keys(empty).some((name) => tierOf(name))) next.tiers = known.tiers;
  const isSame = JSON.stringify([next, items, others]) === $("tiers").dataset.of;
  known = next;
  if (!isSame) show(); // what is drawn already keeps the focus
};
