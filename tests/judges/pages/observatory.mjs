// The rules of MDN's HTTP Observatory on answers that were fetched before; prints a score and the
// result of each rule, an answer each, as JSON.
// Usage: observatory.mjs FILE, which holds [{ site, status, headers: [[name, value]], body }].

import fs from "node:fs";
import { AxiosHeaders } from "axios";
import { CookieJar } from "tough-cookie";

// The list of sites that browsers know to speak https. It is downloaded where the Observatory runs
// for everybody; a site that is judged before it is published is not on it.
const read = fs.readFileSync;
fs.readFileSync = (path, ...more) =>
  String(path).endsWith("hsts-preload.json") ? "{}" : read(path, ...more);

const SRC = "../node_modules/@mdn/mdn-http-observatory/src";
const { ALL_TESTS } = await import(`${SRC}/constants.js`);
const { Requests } = await import(`${SRC}/types.js`);
const { MINIMUM_SCORE_FOR_EXTRA_CREDIT } = await import(`${SRC}/grader/charts.js`);
const { getGradeForScore, getScoreModifier } = await import(`${SRC}/grader/grader.js`);
const { parseHttpEquivHeaders } = await import(`${SRC}/retriever/utils.js`);

const cookies = ({ headers }) =>
  headers.filter(([name]) => name === "set-cookie").map(([, value]) => value);

function response({ status, headers, body }) {
  const sent = new AxiosHeaders();
  for (const [name, value] of headers) sent.set(name, value);
  const config = { headers: new AxiosHeaders() };
  return { headers: sent, request: config, config, status, statusText: "", verified: true, data: body };
}

// As if it had been reached from http by one redirect: whatever stands before the edge does that.
function requests(answer) {
  const site = new URL(answer.site);
  const plain = new URL(answer.site.replace(/^https:/, "http:"));
  const made = new Requests(site.hostname);
  for (const name of ["auto", "http", "https", "cors"]) made.responses[name] = response(answer);
  made.responses.httpRedirects = [{ url: plain, status: 301 }, { url: site, status: answer.status }];
  made.responses.httpsRedirects = [{ url: site, status: answer.status }];
  made.resources.path = answer.body;
  made.session = { url: site, jar: new CookieJar() };
  for (const cookie of cookies(answer)) made.session.jar.setCookieSync(cookie, site.href);
  made.responses.auto.httpEquiv = parseHttpEquivHeaders(answer.body, site.href);
  return made;
}

// As the Observatory counts: extra credit is for those who have lost next to nothing.
function judge(answer) {
  const results = ALL_TESTS.map((test) => test(requests(answer))).filter(({ result }) => result);
  const modifiers = results.map(({ result }) => getScoreModifier(result));
  const lost = modifiers.filter((modifier) => modifier < 0);
  const add = (sum, modifier) => sum + modifier;
  const uncurved = lost.reduce(add, 100);
  const earned = uncurved >= MINIMUM_SCORE_FOR_EXTRA_CREDIT ? modifiers.reduce(add, 100) : uncurved;
  const { score, grade } = getGradeForScore(earned);
  return { score, grade, results: results.map(({ result }, at) => [result, modifiers[at]]) };
}

const answers = JSON.parse(read(process.argv[2], "utf8"));
process.stdout.write(JSON.stringify(answers.map(judge)));
