// Loads the page again when the site has changed, and shows over it what has to be fixed.

const shown = document.currentScript.dataset.version;
const address = `/.preview/events?page=${encodeURIComponent(location.pathname)}`;

function build(name, className, ...children) {
  const element = document.createElement(name);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

function list(troubles) {
  const items = troubles.map(({ place, message }) => {
    const item = build("li", "");
    if (place) item.append(build("code", "", place));
    item.append(message);
    return item;
  });
  return build("ol", "", ...items);
}

function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function drawErrors(errors) {
  const close = build("button", "", "Hide");
  close.type = "button";
  const title = build("h2", "", `${count(errors.length, "error")} to fix`);
  const box = build("section", "preview-errors", close, title, list(errors));
  box.setAttribute("role", "alert");
  box.lang = "en";
  box.dir = "ltr";
  close.addEventListener("click", () => box.remove());
  return box;
}

function drawNotes(warnings, others) {
  const elsewhere = others ? `${count(others, "warning")} in other files: run check` : "";
  const here = warnings.length ? `${count(warnings.length, "warning")} here` : "";
  const title = build("summary", "", [here, elsewhere].filter(Boolean).join("; "));
  const box = build("details", "preview-notes", title, list(warnings));
  box.lang = "en";
  box.dir = "ltr";
  box.open = document.querySelector(".preview-notes")?.open ?? false;
  return box;
}

function draw({ errors, warnings, others }) {
  const boxes = [];
  if (warnings.length || others) boxes.push(drawNotes(warnings, others));
  if (errors.length) boxes.push(drawErrors(errors));
  document.querySelectorAll(".preview-errors, .preview-notes").forEach((box) => box.remove());
  document.body.append(...boxes);
}

const events = new EventSource(address);
events.addEventListener("state", ({ data }) => {
  const state = JSON.parse(data);
  if (state.version === shown) draw(state);
  else location.reload();
});
addEventListener("pagehide", () => events.close());
