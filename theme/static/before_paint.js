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

{
  const parsed = new Promise((done) => addEventListener("DOMContentLoaded", done));
  const painted = new Promise((done) => {
    new PerformanceObserver(done).observe({ type: "largest-contentful-paint", buffered: true });
    // Not all tell of it.
    addEventListener("load", () => setTimeout(done, 1_000));
  });
  Promise.all([parsed, painted]).then(() => {
    for (const { dataset } of document.querySelectorAll('[data-module^="/theme/"]')) {
      import(dataset.module);
    }
  });
}
