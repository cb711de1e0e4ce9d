/* Day or night before the first paint, modules behind it. */

const scheme = {
  get chosen() {
    try {
      return /^(light|dark)$/.exec(localStorage.getItem("scheme"))?.[0];
    } catch {
      // A browser may keep nothing.
    }
  },
  show(name) {
    document.documentElement.dataset.scheme = name;
    document.querySelector("meta[name=color-scheme]").content = name;
    for (const meta of document.querySelectorAll("meta[name=theme-color]")) {
      meta.media = meta.dataset.scheme === name ? "all" : "not all";
    }
  },
};
if (scheme.chosen) scheme.show(scheme.chosen);

/* A sentence, or of one for a count its two English forms, in the language of the page: unless that
   is English, the element of a module has its words, a form of each count that may need its own. */
function say({ dataset }, text, values = {}) {
  const forms = [text].flat();
  const found = JSON.parse(dataset.words ?? "{}")[forms.at(-1)];
  const { lang } = document.documentElement;
  const kind = (number) => new Intl.PluralRules(lang).select(number);
  const [one, many = one] = forms;
  const own = Array.isArray(found)
    ? found.find(([number]) => kind(number) === kind(values.number))?.[1]
    : found;
  return (own ?? (values.number === 1 ? one : many)).replace(/%\((\w+)\)s/g, (_, name) =>
    typeof values[name] === "number" ? values[name].toLocaleString(lang) : values[name],
  );
}

{
  const parsed = new Promise((done) => addEventListener("DOMContentLoaded", done));
  const painted = new Promise((done) => {
    new PerformanceObserver(done).observe({ type: "paint", buffered: true });
    // Not all tell of it.
    addEventListener("load", () => setTimeout(done, 1_000));
  });
  Promise.all([parsed, painted]).then(() => {
    for (const { dataset } of document.querySelectorAll('[data-module^="/theme/"]')) {
      import(dataset.module);
    }
  });
}
