/* Comfort on the screen Write: everything works without it. It saves two seconds after the last
   letter and at each press, keeps what the server has not taken in the browser, counts words,
   takes pictures that are dropped or pasted, and leads from a finding to its line. */

const form = document.querySelector("#write");
const { title, text, at } = form.elements;
const state = document.querySelector("[data-state]");
const button = document.querySelector("[data-save]");
const LIMIT = Number(form.dataset.limit);
const isFormer = new URLSearchParams(location.search).has("version");
// `isHeld`: nothing is saved by itself until somebody types (true), or "until a press".
let edits = 0, saved = 0, timer, isSaving = false, isHeld = false, isSignedOut = false, theirBase;

const key = () => `write ${form.getAttribute("action")}`;
const isNew = () => form.elements.base.value === "";

function say(words, isFault = false) {
  state.textContent = words;
  state.classList.toggle("fault", isFault);
  button.hidden = !isFault;
}

// What was typed stays in the browser until the server has it, without the token of the form.
function keep() {
  const typed = [...new FormData(form)].filter(([name, value]) =>
    typeof value === "string" && name !== "form.token");
  try {
    localStorage.setItem(key(), JSON.stringify(typed));
  } catch { /* the storage is full or switched off */ }
}

function restore() {
  let typed;
  try {
    typed = JSON.parse(localStorage.getItem(key()) ?? "[]");
  } catch { return; }
  const fields = typed.filter(([name]) => form.elements.namedItem(name));
  const isOther = fields.some(([name, value]) =>
    form.elements[name].type !== "hidden" && form.elements[name].value !== normal(value));
  if (!isOther) return localStorage.removeItem(key());
  for (const [name, value] of fields) form.elements[name].value = normal(value);
  changed();
  say("Restored from this browser, not saved yet");
}

const normal = (value) => value.replaceAll("\r\n", "\n"); // as FormData has it

function later() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    // A title that is not finished would become the address.
    if (isNew() && document.activeElement === title) later();
    else if (!isHeld) save();
  }, 2_000);
}

function changed() {
  edits += 1;
  keep();
  count();
  later();
}

async function read(address, options) {
  const answer = await fetch(address, options);
  return [answer, new DOMParser().parseFromString(await answer.text(), "text/html")];
}

async function save(submitter, file) {
  clearTimeout(timer);
  if (isSaving) return later();
  isSaving = true;
  const now = edits;
  try {
    if (isSignedOut) await renew();
    const sent = new FormData(form, submitter);
    sent.delete("photo");
    sent.delete("picture");
    if (file) sent.set("picture", file, file.name || "picture.png");
    const before = key();
    const [answer, page] = await read(form.action, { method: "POST", body: sent });
    const fresh = page.querySelector("#write");
    if (answer.ok && answer.redirected && !fresh) {
      saved = now;
      localStorage.removeItem(before);
      location.assign(answer.url);
    } else if (answer.ok && fresh) {
      saved = now;
      take(fresh, page, sent, answer.url, Boolean(file));
      localStorage.removeItem(before);
      if (edits > now) keep();
      say(`${page.querySelector("[data-state]").textContent} ${clock()}`);
    } else refuse(answer, fresh, page);
  } catch {
    say("Not saved: no connection. It is kept in this browser", true);
  } finally {
    isSaving = false;
  }
  if (edits > saved && !isHeld && !isSignedOut) later();
}

const clock = () => new Date().toTimeString().slice(0, 5);

// Take what the server has made of the form, but no field in which somebody typed meanwhile.
function take(fresh, page, sent, address, isWithText) {
  form.setAttribute("action", fresh.getAttribute("action"));
  for (const field of fresh.elements) {
    const own = field.name && field.type !== "file" && form.elements.namedItem(field.name);
    if (!own || (own === text && !isWithText)) continue;
    if (own.type === "hidden" || own.value === normal(sent.get(own.name) ?? "")) {
      if (own.value !== field.value) own.value = field.value;
    }
  }
  const place = "[data-fresh], summary";
  const others = [...fresh.querySelectorAll(place)];
  [...form.querySelectorAll(place)].forEach((each, n) => each.replaceChildren(...others[n].childNodes));
  document.title = page.title;
  const { pathname } = new URL(address);
  if (pathname !== location.pathname) history.replaceState(null, "", pathname);
  count();
}

function refuse(answer, fresh, page) {
  isSignedOut = answer.status === 401 || (answer.status === 403 && !fresh);
  if (isSignedOut) {
    say("", true);
    const link = Object.assign(document.createElement("a"), {
      href: `/desk/sign-in/?to=${encodeURIComponent("/desk/posts/")}`,
      target: "_blank", textContent: "Sign in again", className: "fault",
    });
    state.append(link, ", nothing is lost");
    return;
  }
  const faults = [...page.querySelectorAll("[role=alert], [id$=-fault]")];
  say(faults.map((each) => each.textContent.trim()).at(-1) || "Not saved", true);
  isHeld = true; // until somebody types or presses
  const theirs = fresh?.querySelector(".theirs");
  if (!theirs) return;
  say(faults[0]?.textContent.trim(), true);
  form.querySelector(".theirs")?.remove();
  form.querySelector(".write-text").append(theirs);
  theirBase = fresh.elements.base.value; // for that press; a page that is loaded again asks again
  isHeld = "until a press"; // typing on must not replace what somebody else wrote
}

// After another sign-in, the form needs the token of that.
async function renew() {
  const [, page] = await read(form.action);
  const token = page.querySelector("#write [name='form.token']");
  if (token) form.elements["form.token"].value = token.value;
  isSignedOut = !token;
}

async function add(file) {
  if (!file || text.readOnly) return;
  if (file.size > LIMIT) return say(`${file.name} has more than ${Math.floor(LIMIT / 1e6)} MB, which is the limit: save it smaller`, true);
  let start = text.selectionStart;
  // A second picture does not go into the description of the first.
  if (/!\[[^\]\n]*$/.test(text.value.slice(0, start))) {
    start = text.value.indexOf(")", start) + 1 || start;
  }
  const place = text.value.slice(0, start);
  at.value = [...place].length;
  text.readOnly = true;
  say("Adding the picture…");
  while (isSaving) await new Promise((resolve) => setTimeout(resolve, 50));
  const former = text.value;
  await save(undefined, file);
  text.readOnly = false;
  at.value = "";
  if (text.value === former) return;
  const gap = text.value.indexOf("![](", place.trimEnd().length) + 2;
  text.focus();
  text.setSelectionRange(gap, gap);
}

async function addAll(files) {
  for (const file of [...files].filter(({ type }) => type.startsWith("image/"))) await add(file);
}

function count() {
  const words = text.value.split(/\s+/).filter(Boolean).length;
  const minutes = Math.max(1, Math.round(words / 220));
  const said = `${words.toLocaleString("en")} word${words === 1 ? "" : "s"}`;
  form.querySelector("[data-words]").textContent = said;
  form.querySelector("[data-count]").textContent = `${said} · ${minutes} min`;
}

form.classList.add("is-live");
button.hidden = !isFormer;
form.querySelector("[data-add]").hidden = true;
form.querySelector("[data-hint]").textContent = "or drop it, or paste it";
form.addEventListener("input", ({ target }) => {
  if (target.type === "file") return;
  if (isHeld === true) isHeld = false;
  if (isFormer) count(); // a press saves it, and nothing else
  else changed();
});
form.addEventListener("submit", (event) => {
  if (isFormer) return;
  event.preventDefault();
  isHeld = false;
  if (theirBase) form.elements.base.value = theirBase;
  theirBase = undefined;
  save(event.submitter);
});
title.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing) return;
  event.preventDefault();
  text.focus();
});
for (const name of ["picture", "photo"]) {
  form.elements[name].addEventListener("change", async ({ target }) => {
    await addAll(target.files);
    target.value = "";
  });
}
form.addEventListener("dragover", (event) => {
  if (event.dataTransfer.types.includes("Files")) event.preventDefault();
});
form.addEventListener("drop", (event) => {
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  addAll(event.dataTransfer.files);
});
text.addEventListener("paste", (event) => {
  if (!event.clipboardData.files.length) return;
  event.preventDefault();
  addAll(event.clipboardData.files);
});
form.addEventListener("click", (event) => {
  const line = Number(event.target.dataset.line);
  if (!line) return;
  event.preventDefault();
  const lines = text.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1);
  text.focus();
  text.setSelectionRange(start, start + lines[line - 1].length);
  const { top, height } = text.getBoundingClientRect();
  scrollTo({ top: scrollY + top + (height * (line - 1)) / lines.length - innerHeight / 3 });
});
addEventListener("visibilitychange", () => {
  if (edits > saved && !isHeld && (document.hidden || isSignedOut)) save();
});
if (!isFormer) restore();
