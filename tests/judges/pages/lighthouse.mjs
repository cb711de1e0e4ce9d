// Lighthouse over one address in several guises; prints scores, figures and what cost points, JSON.
// Usage: lighthouse.mjs CHROMIUM URL COOKIE GUISE..., a guise being `mobile light`, `desktop dark`, ...
// COOKIE is `name=value`, or empty: then the browser is a stranger.

import * as chromeLauncher from "chrome-launcher";
import lighthouse, { desktopConfig } from "lighthouse";

const [, , chromePath, url, cookie, ...guises] = process.argv;
const extraHeaders = cookie ? { Cookie: cookie } : undefined;
const FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage"];
// Blink's own names for what a person prefers.
const SCHEMES = { dark: 0, light: 1 };

const ITEMS_MOST = 5;

// Items of audits differ in shape; each has one of these to be found by.
const tell = (item) =>
  item.node?.selector ?? item.url ?? (item.issue ? [item.element, item.issue].join(" ") : item.description);
const figure = (audits, id) => audits[id]?.numericValue ?? null;

async function judge(guise) {
  const [device, scheme] = guise.split(" ");
  const chromeFlags = [...FLAGS, `--blink-settings=preferredColorScheme=${SCHEMES[scheme]}`];
  const chrome = await chromeLauncher.launch({ chromePath, chromeFlags });
  try {
    const flags = { port: chrome.port, output: "json", logLevel: "error", extraHeaders };
    const config = device === "desktop" ? desktopConfig : undefined;
    const { lhr } = await lighthouse(url, flags, config);
    return summarize(guise, lhr);
  } finally {
    chrome.kill();
  }
}

function summarize(guise, { categories, audits, runtimeError, lighthouseVersion }) {
  const scores = {};
  const lost = [];
  for (const { id, score, auditRefs } of Object.values(categories)) {
    scores[id] = score === null ? null : Math.round(score * 100);
    for (const { id: audit, weight } of auditRefs) {
      const { score: own, displayValue, details } = audits[audit];
      if (weight && own !== null && own < 1) {
        const items = (details?.items ?? []).slice(0, ITEMS_MOST).map(tell);
        lost.push({ category: id, audit, score: own, said: displayValue ?? "", items });
      }
    }
  }
  return {
    guise,
    version: lighthouseVersion,
    fault: runtimeError?.message ?? null,
    scores,
    lost,
    lcp: figure(audits, "largest-contentful-paint"),
    cls: figure(audits, "cumulative-layout-shift"),
  };
}

const judged = [];
for (const guise of guises) judged.push(await judge(guise));
process.stdout.write(JSON.stringify(judged));
