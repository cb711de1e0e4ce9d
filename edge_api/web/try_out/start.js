// Starts Swagger UI on the document that the page names. No request leaves the origin.
const place = document.getElementById("try");
document.querySelector("main").remove(); // for readers without scripts; the program has its own
const dark = matchMedia("(prefers-color-scheme: dark)");

// The same choice as on the pages of the site, where a reader has made one.
const chosen = () => {
  try {
    return localStorage.getItem("scheme");
  } catch {
    return null;
  }
};

const paint = () => {
  const choice = chosen();
  const isDark = choice === "dark" || (choice !== "light" && dark.matches);
  document.documentElement.classList.toggle("dark-mode", isDark);
};

paint();
dark.addEventListener("change", paint);

SwaggerUIBundle({
  domNode: place,
  url: place.dataset.document,
  validatorUrl: null,
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
  persistAuthorization: false,
  syntaxHighlight: { activated: true, theme: "agate" },
});
