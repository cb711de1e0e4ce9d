/* The lamp turns the page from day to night and back, and the choice is kept. What is chosen and how
   it shows is `scheme` of before_paint.js. Without this file no lamp shows. */

const root = document.documentElement;
const lamp = document.querySelector(".lamp");
const night = matchMedia("(prefers-color-scheme: dark)");

follow();
night.addEventListener("change", follow);
// Another window of this site, and a page that comes back out of the browser's memory.
addEventListener("storage", follow);
addEventListener("pageshow", follow);
lamp.addEventListener("click", () => {
  const chosen = root.dataset.scheme === "dark" ? "light" : "dark";
  remember(chosen);
  light(chosen);
});

function follow() {
  light(scheme.chosen ?? system());
}

function system() {
  return night.matches ? "dark" : "light";
}

function remember(chosen) {
  try {
    // Who chooses what the system says wants the system's word, whatever it will be.
    if (chosen === system()) localStorage.removeItem("scheme");
    else localStorage.setItem("scheme", chosen);
  } catch {
    // A browser that keeps nothing has it for as long as the page stands.
  }
}

/* The first time, this is also what brings the lamp out. */
function light(name) {
  scheme.show(name);
  lamp.setAttribute("aria-pressed", name === "dark");
}
