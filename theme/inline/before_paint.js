/* What stands in the head of every page. The reader's own choice of day or night holds before the
   first paint; modules wait until after it, so that reading waits for none of them. */

const scheme = {
  get chosen() {
    try {
      return /^(light|dark)$/.exec(localStorage.getItem("scheme"))?.[0];
    } catch {
      // A browser that keeps nothing has nothing to tell.
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
    new PerformanceObserver(done).observe({ type: "paint", buffered: true });
    // For browsers that do not tell of it.
    addEventListener("load", () => setTimeout(done, 1_000));
  });
  Promise.all([parsed, painted]).then(() => {
    for (const { dataset } of document.querySelectorAll('[data-module^="/theme/"]')) {
      import(dataset.module);
    }
  });
}
