// Starts Swagger UI on the document that the page names. No request leaves the origin.
const place = document.getElementById("try");

// The page says what the API is and has a `main` of its own, so of Swagger UI's own layout only the
// button, the errors, the operations and the schemas are left. A path within a button is no link.
const inThisPage = ({ React }) => ({
  components: {
    DeepLink: ({ text }) => React.createElement("span", {}, text),
    InThisPage: ({ getComponent, specSelectors }) => {
      const make = (name) => React.createElement(getComponent(name, true));
      const loaded = ["AuthorizeBtnContainer", "errors", "operations", "Models"];
      return React.createElement(
        "div",
        { className: "swagger-ui" },
        React.createElement("h2", {}, "Operations"),
        ...(specSelectors.specStr() ? loaded : ["errors"]).map(make),
      );
    },
  },
});

// Attributes that Swagger UI leaves out or gets wrong, by the selector of what they belong to;
// `null` takes one away.
const ATTRIBUTES = {
  "textarea.body-param__text": { "aria-label": "Request body" },
  ".examples-select-element": { "aria-label": "Example" },
  ".close-modal": { "aria-label": "Close the dialog" },
  ".auth-btn-wrapper .authorize": { "aria-label": null }, // Its text is another.
  ".scopes h2": { "aria-level": "5" },
  ".live-responses-table, .responses-table": { role: "table" },
  "pre, table": { tabindex: "0" }, // They may scroll.
};

// The dialog opens at the API key, its first field; Swagger UI begins with the last one.
let isOpen = false;
const beginAtTheKey = () => {
  const field = place.querySelector("#api_key_value");
  if (field && !isOpen) setTimeout(() => field.focus());
  isOpen = field !== null;
};

const complete = () => {
  beginAtTheKey();
  for (const [selector, attributes] of Object.entries(ATTRIBUTES)) {
    for (const element of place.querySelectorAll(selector)) {
      for (const [name, value] of Object.entries(attributes)) {
        if (value === null) element.removeAttribute(name);
        else element.setAttribute(name, value);
      }
    }
  }
};

new MutationObserver(complete).observe(place, { childList: true, subtree: true });

SwaggerUIBundle({
  domNode: place,
  url: place.dataset.document,
  validatorUrl: null,
  plugins: [inThisPage],
  layout: "InThisPage",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
  persistAuthorization: false,
  syntaxHighlight: { activated: false },
});
