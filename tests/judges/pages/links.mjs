// linkinator over every page that a link of an origin leads to; prints what is broken as JSON, and
// how many links were followed. Other origins are left alone.
// Usage: links.mjs ORIGIN PATH...

import { LinkChecker } from "linkinator";

const [, , origin, ...paths] = process.argv;
const { links } = await new LinkChecker().check({
  path: paths.map((path) => origin + path),
  recurse: true,
  checkCss: true,
  checkFragments: true,
  redirects: "error",
  timeout: 30000,
  linksToSkip: async (link) => /^https?:/.test(link) && !link.startsWith(`${origin}/`),
});
const broken = links.filter(({ state }) => state === "BROKEN");
const checked = links.filter(({ state }) => state !== "SKIPPED").length;
process.stdout.write(
  JSON.stringify({
    checked,
    broken: broken.map(({ url, status, parent }) => ({ url, status, parent })),
  }),
);
