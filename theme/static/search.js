/* Search as somebody types: the same results as the page itself has, in the same markup, asked for
   as data. What comes from outside is put in as text, never as markup. Without this file the form
   asks for a page. */

const PAUSE_MS = 150;
const PATIENCE_MS = 10_000;
const DATA = "/api/public/v1/search";
const LATE = "late";

const form = document.getElementById("search-form");
const field = document.getElementById("q");
const status = document.getElementById("search-count");
const suggested = document.getElementById("search-suggestion");
const help = document.getElementById("search-help");
const list = document.getElementById("results");
const pages = document.getElementById("search-pages");
const pageSize = Number(form.dataset.pageSize);
const siteTitle = document.title.slice(document.title.lastIndexOf(" · "));
const heading = document.querySelector("h1");
const { lang } = document.documentElement;
const sentences = JSON.parse(form.dataset.words ?? "{}");

let shown = wordsOf(location); // what the results on the page are for
let isSettled = shown !== ""; // whether to go back must lead to these words again
let pause = 0;
let asking = new AbortController();

field.addEventListener("input", (event) => {
  if (!event.isComposing) askSoon();
});
field.addEventListener("compositionend", askSoon);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const answer = ask();
  if (event.agentInvoked) event.respondWith(answer.then(forAgent));
});
addEventListener("popstate", () => {
  // What lies further back than the first page was made by the service.
  if (new URLSearchParams(location.search).has("page")) return location.reload();
  field.value = wordsOf(location);
  ask();
});

// Who was quicker than this file is heard all the same.
if (typed() !== shown) askSoon();

function wordsOf(address) {
  return (new URLSearchParams(address.search).get("q") ?? "").trim();
}

/* What the service takes for words: a zero character stands in none. */
function typed() {
  return field.value.replaceAll("\0", " ").trim();
}

function askSoon() {
  clearTimeout(pause);
  asking.abort();
  pause = setTimeout(() => {
    if (typed() !== shown) ask();
  }, PAUSE_MS);
}

/* Shows what is found for the words in the field, and gives it; nothing where that failed. */
async function ask() {
  clearTimeout(pause);
  asking.abort();
  asking = new AbortController();
  const turn = asking;
  const late = setTimeout(() => turn.abort(LATE), PATIENCE_MS);
  const words = typed();
  try {
    const answer = words ? await find(words, turn.signal) : { count: 0, suggestion: null, results: [] };
    if (turn.signal.aborted) return null;
    show(words, answer);
    return answer;
  } catch (fault) {
    if (turn.signal.aborted && turn.signal.reason !== LATE) return null; // others are asked for
    shown = null;
    tell(fault.sentence ?? say("The connection failed: try again."));
    return null;
  } finally {
    clearTimeout(late);
  }
}

async function find(words, signal) {
  const asked = new URLSearchParams({ q: words, limit: pageSize });
  const answer = await fetch(`${DATA}?${asked}`, { signal });
  if (!answer.ok) throw { sentence: refusal(answer) };
  return answer.json();
}

function refusal(answer) {
  const seconds = Number(answer.headers.get("Retry-After"));
  const style = { style: "unit", unit: "second", unitDisplay: "long" };
  const time = new Intl.NumberFormat(lang, style).format(seconds);
  const fault = answer.status === 429 ? "Too many searches from here" : "The search failed";
  return say(`${fault}: try again ${seconds ? "in %(time)s" : "later"}.`, { time });
}

function show(words, { count, suggestion, results }) {
  settle(words);
  tell(words ? counted(count, results.length) : "");
  suggested.replaceChildren(...(suggestion ? suggest(suggestion) : []));
  help.hidden = !words || count > 0;
  list.removeAttribute("start");
  list.replaceChildren(...results.map(entry));
  pages.replaceChildren(...(count > pageSize ? [onward(words, count)] : []));
}

/* Takes the words into the address and the titles. */
function settle(words) {
  if (words !== wordsOf(location) || location.search.includes("page=")) {
    const address = words ? `${form.action}?${new URLSearchParams({ q: words })}` : form.action;
    history[isSettled ? "pushState" : "replaceState"](null, "", address);
  }
  isSettled = false;
  shown = words;
  heading.textContent = say(words ? "Search: %(words)s" : "Search", { words });
  document.title = heading.textContent + siteTitle;
}

/* A region that is told the same again would be read aloud again. */
function tell(sentence) {
  if (status.textContent !== sentence) status.textContent = sentence;
}

function counted(count, listed) {
  const near = count < pageSize ? Math.max(0, listed - count) : 0;
  const forms = ["post has these words", "posts have these words, best first"];
  const found = count
    ? say(forms.map((each) => `%(number)s ${each}`), { number: count })
    : say("No post has all of these words");
  if (!near) return say("%(found)s.", { found });
  const nearer = ["comes near", "come near"].map((each) => `%(number)s ${count ? "more " : ""}${each}`);
  return say("%(found)s; %(near)s.", { found, near: say(nearer, { number: near }) });
}

function suggest(words) {
  const address = `${form.getAttribute("action")}?${new URLSearchParams({ q: words })}`;
  const [before, after] = say("Did you mean %(words)s?", { words: "\0" }).split("\0");
  return [before, make("a", { href: address }, words), after];
}

function entry(post) {
  const published = new Date(post.published_at);
  const day = published.toLocaleDateString(/^en\b/.test(lang) ? "en-GB" : lang, {
    day: "numeric",
    month: "long",
    year: "numeric",
    timeZone: "UTC",
  });
  const minutes = String(post.reading_minutes);
  const tags = post.tags.map((tag) => make("li", {}, make("bdi", {}, tag)));
  return make(
    "li",
    { class: "leaf entry" },
    make("h2", { dir: "auto" }, make("a", { href: pathOf(post.url) }, ...marked(post.title_parts))),
    make(
      "p",
      { class: "shoulder small" },
      make("time", { datetime: post.published_at }, day.replace(" ", "\u00a0")),
      " ",
      make("span", {}, say("%(minutes)s&nbsp;min", { minutes }).replace("&nbsp;", "\u00a0")),
    ),
    make("p", { class: "snippet", dir: "auto" }, ...marked(post.snippet)),
    ...(tags.length ? [make("ul", { class: "tag-list" }, ...tags)] : []),
  );
}

function marked(pieces) {
  return pieces.map(({ text, match }) => (match ? make("mark", {}, text) : text));
}

/* The site may be looked at by another name than its own. */
function pathOf(address) {
  return new URL(address, location.href).pathname;
}

function onward(words, count) {
  const next = `${form.getAttribute("action")}?${new URLSearchParams({ q: words, page: 2 })}`;
  const pagesCount = String(Math.ceil(count / pageSize));
  const place = say("Page %(number)s of %(count)s", { number: "1", count: pagesCount });
  const more = make("a", { rel: "next", href: next }, say("More matches"));
  const items = make("ul", {}, make("li", {}, place), make("li", {}, more));
  return make("nav", { class: "leaf pagination", "aria-label": say("Pages") }, items);
}

function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/* A sentence in the language of the page; of one with a number its two English forms are asked for.
   The form has those that are not said in English, with each form that a number may need. */
function say(english, values = {}) {
  const [one, many = one] = [english].flat();
  const own = sentences[many];
  const { number } = values;
  const rules = new Intl.PluralRules(lang);
  const found = Array.isArray(own)
    ? own.find(([each]) => rules.select(each) === rules.select(number))?.[1]
    : own;
  return (found ?? (number === 1 ? one : many)).replace(/%\((\w+)\)s/g, (_, name) =>
    typeof values[name] === "number" ? values[name].toLocaleString(lang) : values[name],
  );
}

/* What an agent of the browser is given: data, without the marks that are for eyes. */
function forAgent(answer) {
  if (answer === null) return status.textContent;
  const results = answer.results.map(({ title, url, published_at, snippet }) => {
    return { title, url, published_at, snippet: snippet.map(({ text }) => text).join("") };
  });
  return JSON.stringify({ count: answer.count, suggestion: answer.suggestion, results });
}
