// What PostgREST's own JavaScript client gets from the administrative tables:
//   postgrest_client.mjs URL KEY
// The last line of the output is JSON: data, error and status of each call, by its name.

import { PostgrestClient } from "@supabase/postgrest-js";

const [, , url, key] = process.argv;
const client = new PostgrestClient(url, { headers: { "X-API-Key": key } });
const table = () => client.from("suppressed_emails");
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
  read: () => table().select(narrow).like("email", "*@js.example").order("email"),
  read_one: () => table().select("email").eq("email", "c@js.example").single(),
};

const seen = {};
for (const [name, call] of Object.entries(calls)) {
  const { data, error, status } = await call();
  seen[name] = { data, error: error && { message: error.message, code: error.code }, status };
}
console.log(JSON.stringify(seen));
