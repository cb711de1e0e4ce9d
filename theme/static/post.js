/* What a post does beyond being read: its contents say where one is, and code can be copied.
   Without this file the contents are links and the code is there to select. */

const TOLD_MS = 2_000;
const { words = "{}" } = document.querySelector('[data-module*="/post."]').dataset;
const said = JSON.parse(words);

openContents();
followSections();
offerCopies();

/* Beside the text there is room for them; above it they would push it down. */
function openContents() {
  const contents = document.querySelector(".contents-list");
  if (contents && matchMedia("(min-width: 62em)").matches) contents.open = true;
}

/* Marks the entry of the section that is being read: the last whose heading has come by. */
function followSections() {
  const links = new Map();
  for (const link of document.querySelectorAll(".contents-list a")) {
    const heading = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (heading) links.set(heading, link);
  }
  if (!links.size) return;
  const passed = new Set();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, boundingClientRect, rootBounds } of entries) {
        const isPassed = boundingClientRect.top < (rootBounds?.bottom ?? innerHeight / 3);
        if (isPassed) passed.add(target);
        else passed.delete(target);
      }
      mark([...links.keys()].findLast((heading) => passed.has(heading)));
    },
    // A heading has come by once it is in the upper third, and stays so above the screen.
    { rootMargin: "9999999px 0px -66% 0px" },
  );
  for (const heading of links.keys()) observer.observe(heading);

  function mark(current) {
    for (const [heading, link] of links) {
      if (heading === current) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    }
    if (current) keepInSight(links.get(current));
  }
}

/* Scrolls the list alone, never the page. */
function keepInSight(link) {
  const list = link.closest("nav");
  const above = link.getBoundingClientRect().top - list.getBoundingClientRect().top;
  if (above < 0 || above > list.clientHeight - link.clientHeight) {
    list.scrollTop += above - list.clientHeight / 2;
  }
}

/* Gives each piece of code a button; one region tells all of them, for who does not see it. */
function offerCopies() {
  const blocks = document.querySelectorAll(".prose pre");
  if (!blocks.length || !navigator.clipboard) return;
  const status = document.createElement("p");
  status.className = "unseen";
  status.setAttribute("role", "status");
  document.querySelector("main").append(status);
  for (const block of blocks) offerCopy(block, status);
}

function offerCopy(block, status) {
  const frame = block.closest(".highlight") ?? wrap(block);
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = say("Copy");
  const file = frame.closest("figure.code")?.querySelector("figcaption")?.textContent.trim();
  button.setAttribute("aria-label", say(file ? "Copy %(file)s" : "Copy this code", { file }));
  button.addEventListener("click", async () => {
    const outcome = await copy(block);
    status.textContent = outcome;
    button.textContent = outcome;
    setTimeout(() => {
      button.textContent = say("Copy");
      status.textContent = "";
    }, TOLD_MS);
  });
  frame.append(button);
}

function wrap(block) {
  const frame = document.createElement("div");
  frame.className = "highlight";
  block.replaceWith(frame);
  frame.append(block);
  return frame;
}

async function copy(block) {
  try {
    await navigator.clipboard.writeText(textOf(block));
    return say("Copied");
  } catch {
    return say("Not copied");
  }
}

/* A sentence in the language of the page: the element has those that are not said in English. */
function say(english, values = {}) {
  const found = said[english] ?? english;
  return found.replace(/%\((\w+)\)s/g, (_, name) => values[name]);
}

/* What one would type: no line numbers, no prompts. */
function textOf(block) {
  const twin = block.cloneNode(true);
  for (const aside of twin.querySelectorAll(".linenos, .gp")) aside.remove();
  return twin.textContent.replace(/\n$/, "");
}
