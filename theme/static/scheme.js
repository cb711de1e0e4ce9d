/* Day or night. It blocks, so that a reader's own choice is there before the first paint; without
   this file the system's scheme holds and no button shows. */

(() => {
  const root = document.documentElement;
  const night = matchMedia("(prefers-color-scheme: dark)");
  const system = () => (night.matches ? "dark" : "light");
  const metas = [...document.querySelectorAll("meta[name=theme-color]")];
  const papers = { light: metas[0].content, dark: metas[1].content };

  function recall() {
    try {
      return localStorage.getItem("scheme");
    } catch {
      return null;
    }
  }

  function remember(scheme) {
    try {
      // Who chooses what the system says wants the system's word, whatever it will be.
      if (scheme === system()) localStorage.removeItem("scheme");
      else localStorage.setItem("scheme", scheme);
    } catch {
      // A browser that keeps nothing has it for as long as the page stands.
    }
  }

  function show(scheme) {
    root.dataset.scheme = scheme;
    document.querySelector("meta[name=color-scheme]").content = scheme;
    for (const meta of metas) meta.content = papers[scheme];
    document.querySelector(".lamp")?.setAttribute("aria-pressed", scheme === "dark");
  }

  const chosen = () => (/^(light|dark)$/.test(recall()) ? recall() : system());

  show(chosen());
  night.addEventListener("change", () => show(chosen()));
  // Another window of this site, and a page that comes back out of the browser's memory.
  addEventListener("storage", () => show(chosen()));
  addEventListener("pageshow", () => show(chosen()));
  document.addEventListener("DOMContentLoaded", () => {
    show(root.dataset.scheme);
    document.querySelector(".lamp").addEventListener("click", () => {
      const scheme = root.dataset.scheme === "dark" ? "light" : "dark";
      remember(scheme);
      show(scheme);
    });
  });
})();
