/* The contact form for a browser that runs scripts: it is sent without leaving the page, and each
   fault is told at its field, in the words of the service. Without this file the same form posts
   itself to the same address, and a page comes back. */

const PATIENCE_MS = 30_000;

const form = document.getElementById("contact-form");
const words = JSON.parse(form.dataset.words ?? "{}");
const { lang } = document.documentElement;
const UNSENT = say("Nothing was sent yet. Please fix what is marked below and send again.");
const UNKNOWN = say(
  "The connection failed, so it is not certain that your message arrived. " +
    "What you typed is still here. Send it again: it is taken once, however often it is sent.",
);
const button = form.querySelector("button");
const fields = [...form.querySelectorAll(".field :is(input, select, textarea, button)")];
const message = form.elements.namedItem("message");
const limit = document.getElementById("message-limit");
const limitAtRest = limit?.textContent;
const rest = form.elements.namedItem("rest")?.closest(".field");
const COUNTED_FROM = 1600;
const label = button.textContent;
const notice = form.querySelector("[role=alert]") ?? makeNotice();
notice.tabIndex = -1;

// The service looks at everything, and its words stand at the fields: bubbles that go away by
// themselves would say the same again, and differently in each browser.
form.noValidate = true;

let attempt = null; // where the browser keeps nothing

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (form.hasAttribute("aria-busy")) return;
  const outcome = send(event.submitter);
  if (event.agentInvoked) event.respondWith(outcome);
});
form.addEventListener("input", (event) => clear(event.target));
if (limit) message.addEventListener("input", count);
// Whoever goes back from the thanks finds the page as it was left.
addEventListener("pageshow", () => setBusy(false));

/* Sends the form; gives a sentence for an agent that waits for what came of it. */
async function send(pressed) {
  fields.forEach(clear);
  notice.textContent = "";
  setBusy(true);
  const content = new URLSearchParams(new FormData(form));
  if (pressed?.name) content.set(pressed.name, pressed.value);
  const sentence = await post(content);
  if (sentence === "") {
    location.assign(form.dataset.thanks);
    return "The message has arrived and is stored.";
  }
  setBusy(false);
  tell(sentence);
  return sentence;
}

/* Gives what is wrong, in a sentence; an empty one when the message was taken. */
async function post(content) {
  try {
    const answer = await fetch(form.getAttribute("action"), {
      method: "POST",
      headers: { Accept: "application/json", "Idempotency-Key": keyOf(content.toString()) },
      body: content,
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    return answer.ok ? "" : await refusal(answer);
  } catch {
    return UNKNOWN;
  }
}

/* One key for one content: the same sent twice is one message, changed it is another. It outlives
   the page, for whoever goes back to it; what was written does not, but as a number. */
function keyOf(content) {
  const digest = digestOf(content);
  let [known, key] = (recall() ?? "").split(" ");
  if (known !== digest) {
    // randomUUID would be simpler, and is missing where the site is reached without https.
    const numbers = crypto.getRandomValues(new Uint32Array(4));
    key = Array.from(numbers, (number) => number.toString(36)).join("-");
    remember(`${digest} ${key}`);
  }
  return key;
}

function recall() {
  try {
    return sessionStorage.getItem("contact-attempt") ?? attempt;
  } catch {
    return attempt;
  }
}

function remember(text) {
  attempt = text;
  try {
    sessionStorage.setItem("contact-attempt", text);
  } catch {
    // A browser that keeps nothing still knows it for as long as the page stands.
  }
}

/* FNV-1a, twice: tells one content from the next, which is all that is asked of it. */
function digestOf(content) {
  let [one, two] = [0x811c9dc5, 0x9747b28c];
  for (const character of content) {
    one = Math.imul(one ^ character.codePointAt(0), 0x01000193);
    two = Math.imul(two ^ character.codePointAt(0), 0x01000193) + one;
  }
  return `${one >>> 0}-${two >>> 0}`;
}

async function refusal(answer) {
  const seconds = Number(answer.headers.get("Retry-After"));
  const sentence =
    answer.status === 429
      ? say("Too many messages were sent from here")
      : await errorOf(answer);
  if (!seconds) return sentence;
  const values = { fault: sentence, time: inWords(seconds) };
  return say("%(fault)s. Try again in %(time)s; what you typed stays here", values);
}

async function errorOf(answer) {
  const body = await answer.json().catch(() => ({}));
  // Without an error it was not the service that answered, but what stands before it.
  const unheard = say(
    "The message was not taken (status %(status)s). What you typed is still here",
    { status: String(answer.status) },
  );
  return body.error ?? unheard;
}

function inWords(seconds) {
  const [count, unit] =
    seconds <= 90
      ? [seconds, "second"]
      : seconds <= 90 * 60
        ? [Math.ceil(seconds / 60), "minute"]
        : [Math.ceil(seconds / 3600), "hour"];
  const style = { style: "unit", unit, unitDisplay: "long" };
  return new Intl.NumberFormat(lang, style).format(count);
}

/* Shows what the service said: faults that it names a field for at that field, others above. */
function tell(sentence) {
  const names = fields.map((field) => field.name).join("|");
  const parts = sentence.split(new RegExp(`; (?=(?:${names}): )`));
  const others = parts.filter((part) => !mark(part));
  notice.textContent = others.length ? others.map(asSentence).join(" ") : UNSENT;
  const first = fields.find((field) => field.hasAttribute("aria-invalid")) ?? notice;
  first.focus();
}

/* Puts a fault at the field that it names; tells whether there is one. */
function mark(fault) {
  const [name, ...words] = fault.split(": ");
  const field = fields.find((candidate) => candidate.name === name);
  if (!field || !words.length) return false;
  const paragraph = document.createElement("p");
  paragraph.className = field.type === "submit" ? "small" : "fault"; // an offer is no fault
  paragraph.id = `${name}-fault`;
  paragraph.textContent = asSentence(words.join(": "));
  field.closest(".field").append(paragraph);
  field.closest(".field").hidden = false; // the button that sends the rest
  if (field.type !== "submit") field.setAttribute("aria-invalid", "true");
  if (field === message && limit) limit.hidden = true; // the fault has the count
  if (field === message && rest) rest.hidden = true; // unless it is offered next
  field.setAttribute("aria-describedby", paragraph.id);
  return true;
}

function clear(field) {
  document.getElementById(`${field.name}-fault`)?.remove();
  field.removeAttribute("aria-invalid");
  field.removeAttribute("aria-describedby");
  if (field !== message || !limit) return;
  field.setAttribute("aria-describedby", limit.id);
  limit.hidden = false;
}

/* Counts as the service does: code points of the trimmed text, composed. */
function count() {
  const { length } = [...message.value.trim().normalize("NFC")];
  const more = length > 4000 ? ` ${say("Two messages hold 4,000.")}` : "";
  const counted = say("%(number)s of 2,000 characters.", { number: length.toLocaleString(lang) }) + more;
  limit.textContent = length < COUNTED_FROM ? limitAtRest : counted;
  if (rest && length > 4000) rest.hidden = true;
}

/* A sentence in the language of the page: the element has those that are not said in English. */
function say(english, values = {}) {
  const found = words[english] ?? english;
  return found.replace(/%\((\w+)\)s/g, (_, name) => values[name]);
}

/* The button keeps the focus while it waits, which a disabled one would lose. */
function setBusy(busy) {
  if (busy) form.setAttribute("aria-busy", "true");
  else form.removeAttribute("aria-busy");
  button.textContent = busy ? say("Sending…") : label;
}

function makeNotice() {
  const paragraph = document.createElement("p");
  paragraph.className = "fault";
  paragraph.setAttribute("role", "alert");
  form.prepend(paragraph);
  return paragraph;
}

function asSentence(words) {
  const text = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?。]$/.test(text) ? text : say("%(fault)s.", { fault: text });
}
