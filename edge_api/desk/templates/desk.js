/* Comfort at the desk: everything works without it. Hooks in the pages:
   [data-row]        a link of a list, for j, k and Enter (without any: a[rel=next], a[rel=prev])
   [data-key="e"]    pressed by that key, or given the focus if one types in it
   form[data-autosave], which says in [data-saved] that it is saved, or beside its button
   [data-checks]     the id of a choice that is made by filling the field
   [data-copy]       copied by a button beside it; [data-insert], a button or a select */

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const one = (selector, within = document) => within.querySelector(selector);

const line = one(".desk-line nav");
const current = line && one("[aria-current]", line);
if (current) line.scrollLeft = current.offsetLeft - (line.clientWidth - current.offsetWidth) / 2;

const KEYS = {
  j: "next", k: "former", o: "open it (or Enter)", e: "Done", r: "answer", "/": "search",
  "?": "this list",
};

addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.isComposing || target.isContentEditable || target.closest("dialog")) return;
  if (target.matches("textarea, select, input:not([type=checkbox], [type=radio])")) return;
  if (Object.hasOwn(KEYS, key) && act(key, target)) event.preventDefault();
});

function act(key, target) {
  if (key === "?") return list();
  const rows = all("[data-row]");
  const place = rows.indexOf(rows.find((row) => holder(row).contains(target)));
  if (key === "o") return use(rows[place]);
  if (rows.length && (key === "j" || key === "k")) {
    const to = rows[place < 0 ? 0 : place + (key === "j" ? 1 : -1)];
    to?.focus();
    return Boolean(to);
  }
  if (key === "j" || key === "k") return use(one(`main a[rel=${key === "j" ? "next" : "prev"}]`));
  if (rows.length && key === "e") return place >= 0 && use(one("[data-key=e]", holder(rows[place])));
  return use(one(`[data-key="${key}"]`) ?? (key === "/" && one("main input[type=search]")));
}

const holder = (row) => row.closest("li, tr") ?? row;

function use(found) {
  if (found?.matches("input, textarea, select")) found.focus();
  else found?.click();
  return Boolean(found);
}

function list() {
  const dialog = make("dialog", { className: "keys", ariaLabel: "Keys" });
  const names = make("dl");
  for (const [key, text] of Object.entries(KEYS)) {
    const name = make("dt");
    name.append(make("kbd", { textContent: key }));
    names.append(name, make("dd", { textContent: text }));
  }
  const form = make("form", { method: "dialog" });
  form.append(make("button", { textContent: "Close", className: "quiet" }));
  dialog.append(names, form);
  dialog.addEventListener("close", () => dialog.remove());
  one("main").append(dialog);
  dialog.showModal();
  return true;
}

function make(name, values = {}) {
  return Object.assign(document.createElement(name), values);
}

for (const form of all("form[data-autosave]")) {
  const button = one("button:not([name])", form);
  const said = one("[data-saved]", form) ?? make("span", { className: "small" });
  said.role = "status";
  if (!said.isConnected) (button ?? form.lastElementChild).after(said);
  let timer, saving, isChanged = false;

  const show = (text, isFailed = false) => {
    said.textContent = text;
    said.classList.toggle("fault", isFailed);
    if (button) button.hidden = !isFailed;
  };
  const save = async (keepalive = false) => {
    clearTimeout(timer);
    if (!isChanged || (saving && !keepalive)) return;
    isChanged = false;
    const sent = new URLSearchParams(new FormData(form));
    try {
      // A form of the desk leads on to a page, which nobody looks at here.
      saving = fetch(form.action, { method: "POST", body: sent, redirect: "manual", keepalive });
      const answer = await saving;
      if (!answer.ok && answer.type !== "opaqueredirect") throw new Error(answer.status);
      for (const [name, text] of sent) {
        const was = form.elements.namedItem(`was.${name}`);
        if (was) was.value = text;
      }
      show(`saved ${new Date().toTimeString().slice(0, 5)}`);
    } catch ({ message }) {
      isChanged = true;
      const why = message === "409" ? ", since it was changed meanwhile" : "";
      show(`not saved${why}: press the button`, true);
      return;
    } finally {
      saving = undefined;
    }
    if (isChanged) later();
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(save, 2_000);
  };
  show("");
  addEventListener("input", ({ target }) => {
    if (target.form !== form) return; // a field may stand elsewhere
    isChanged = true;
    said.textContent = "";
    later();
  });
  form.addEventListener("submit", () => {
    isChanged = false;
    clearTimeout(timer);
  });
  addEventListener("pagehide", () => save(true));
}

for (const field of all("[data-checks]")) {
  field.oninput = () => { one(`#${field.dataset.checks}`).checked = true; };
}

for (const element of navigator.clipboard ? all("[data-copy]") : []) {
  const button = make("button", { type: "button", className: "quiet", textContent: "Copy" });
  element.after(button);
  button.addEventListener("click", async () => {
    const text = element.dataset.copy || element.value || element.textContent.trim();
    const isCopied = await navigator.clipboard.writeText(text).then(() => true, () => false);
    button.textContent = isCopied ? "Copied" : "Mark it and copy it";
  });
}

for (const element of all("[data-insert]")) {
  const isList = element.matches("select");
  element.addEventListener(isList ? "change" : "click", () => {
    const text = isList ? element.value : element.dataset.insert;
    const field = one(element.dataset.into || "textarea", element.form ?? document);
    if (!field || !text) return;
    field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.focus();
    if (isList) element.selectedIndex = 0;
  });
}
