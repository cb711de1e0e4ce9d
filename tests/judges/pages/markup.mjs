// html-validate over the .html files of a folder; prints its errors as JSON.
// Usage: markup.mjs FOLDER

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { HtmlValidate, StaticConfigLoader } from "html-validate";

const RULES = {
  extends: ["html-validate:standard", "html-validate:a11y", "html-validate:document"],
  rules: {
    // How a page is spelled where both spellings mean the same; the theme has its own hand.
    "attribute-boolean-style": ["error", { style: "omit" }],
    "doctype-style": ["error", { style: "uppercase" }],
    "no-trailing-whitespace": "off",
    "void-style": "off",
    // Files of our own come with the page from one server; a digest is for those of others.
    "require-sri": ["error", { target: "crossorigin" }],
  },
};

const [, , folder] = process.argv;
const validator = new HtmlValidate(new StaticConfigLoader(RULES));
const errors = [];
for (const file of (await readdir(folder)).filter((name) => name.endsWith(".html")).sort()) {
  const markup = await readFile(join(folder, file), "utf8");
  const { results } = await validator.validateString(markup);
  for (const { messages } of results)
    for (const { ruleId, message, line, column } of messages)
      errors.push({ file, rule: ruleId, line, column, message });
}
process.stdout.write(JSON.stringify(errors));
