// What PostgREST's own JavaScript client gets from the administrative tables:
//   postgrest_client.mjs URL KEY
// The last line of the output is JSON: data, count, error and status of each call, by its name.

import { PostgrestClient } from "@supabase/postgrest-js";

const [, , url, key] = process.argv;
const minimal = { Prefer: "return=minimal" };
const connect = (more) => new PostgrestClient(url, { headers: { "X-API-Key": key, ...more } });
const table = (more = {}) => connect(more).from("suppressed_emails");
const narrowed = (options = {}, more = {}) =>
  table(more).select("email", options).like("email", "*@js.example").order("email");
const row = (name, more = {}) => ({ email: `${name}@js.example`, reason: "bounce", ...more });
const narrow = "email,why:reason";

const calls = {
  insert: () => table().insert(row("a")).select().single(),
  insert_narrow: () => table().insert([row("b"), row("c", { metadata: { n: 1 } })]).select(narrow),
  insert_not_single: () => table().insert([row("d"), row("e")]).select().single(),
  insert_again: () => table().insert(row("a")).select(),
  update: () => table().update({ reason: "complaint" }).eq("email", "a@js.example").select(),
  update_all: () => table().update({ reason: "complaint" }),
  remove: () => table().delete().eq("email", "a@js.example"),
  remove_all: () => table().delete(),
  upsert: () => table().upsert(row("a", { reason: "complaint" })).select(),
  upsert_on: () => table().upsert([row("f")], { onConflict: "email" }).select(),
  insert_minimal: () => table(minimal).insert(row("g")),
  read_page: () => narrowed({ count: "exact" }).range(1, 2),
  read_range: () => narrowed({}, { Range: "1-2", "Range-Unit": "items" }),
  read_sheet: () => narrowed().limit(1).csv(),
  count: () => narrowed({ count: "exact", head: true }),
  strict: () => narrowed({}, { Prefer: "handling=strict, count=planned" }),
  any_of: () => table().select().or("email.eq.a@js.example,reason.eq.bounce"),
  contains: () => table().select().contains("metadata", { n: 1 }),
  text_search: () => table().select().textSearch("email", "js"),
  any_pattern: () => table().select().likeAnyOf("email", ["a*", "b*"]),
  matches: () => table().select().regexMatch("email", "^a"),
  embedded: () => table().select("email,leads(name)"),
  embedded_filter: () => table().select().eq("leads.name", "Ann"),
  json_path: () => table().select("metadata->n"),
  aggregate: () => table().select("email.count()"),
  stripped: () => table().select().stripNulls(),
  explained: () => table().select().explain(),
  at_most: () => table().delete().eq("email", "a@js.example").maxAffected(1),
  read: () => table().select(narrow).like("email", "*@js.example").order("email"),
  read_one: () => table().select("email").eq("email", "c@js.example").single(),
};

const seen = {};
for (const [name, call] of Object.entries(calls)) {
  const { data, count, error, status } = await call();
  seen[name] = { data, count, error: error && { message: error.message, code: error.code }, status };
}
console.log(JSON.stringify(seen));
