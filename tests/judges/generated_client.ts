// Calls every operation with openapi-fetch and the types that openapi-typescript generated:
//   generated_client.ts ORIGIN API_KEY ACCESS_TOKEN CLIENT_ID CLIENT_SECRET
// The last line of the output is JSON: the status of each answer, by the name of the operation.

import createClient from "openapi-fetch";
import type { operations, paths } from "./openapi.d.ts";

const [origin, apiKey, accessToken, client_id, client_secret] = process.argv.slice(2) as string[];
const client = createClient<paths>({
  baseUrl: origin,
  headers: { "X-API-Key": apiKey },
  querySerializer: { object: { style: "form", explode: true } },
  redirect: "manual",
});
// A form goes out as one, and what is no JSON is read as text.
const form = { headers: { "Content-Type": "application/x-www-form-urlencoded" } };
const text = { parseAs: "text" } as const;

const id = "01989f3a-7c00-7000-8000-3d2b1c0a9f8f";
const token = "5f1d7a84db00d2fce00b31a7fc732240";
const email = "ts@example.org";
const enquiry = { name: "Ann Lee", email, budget_tier: "5k-10k", message: "A new journal?" };
const byId = { params: { query: { filters: { id: `eq.${id}` } } } };
const byOne = { params: { query: { filters: { id: "eq.1" } } } };
const match = { id };
const link = { params: { query: { token } }, ...text };
const redirect_uri = "http://127.0.0.1/callback";
const code_challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const asked = { client_id: "", redirect_uri };
const draft = { markdown: "# A TypeScript post\n\nIts text.\n" };
const picture =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg==";
let written = { slug: "", version: "" };
const ofWritten = () => ({
  path: { slug: written.slug },
  header: { "If-Match": `"${written.version}"` },
});
let slug = "";
let claim_token = "";
let issued = "";

// In this order. The type demands a call of each operation, and of nothing else.
const calls: Record<keyof operations, () => Promise<{ response: Response }>> = {
  admin_insert_leads: () =>
    client.POST("/api/public/v1/admin/leads", {
      body: { id, ...enquiry, spam_reasons: [1] },
    }),
  admin_read_leads: () => client.GET("/api/public/v1/admin/leads", byId),
  // The rows of a write are of one type, without a question about their form.
  admin_update_leads: async () => {
    const body = { match, values: { notes: "called" } };
    const answer = await client.PATCH("/api/public/v1/admin/leads", { body });
    if (answer.error) throw new Error(answer.error.error);
    const status: string = answer.data[0].status;
    if (status !== "new") throw new Error(status);
    return answer;
  },
  admin_delete_leads: async () => {
    const answer = await client.DELETE("/api/public/v1/admin/leads", { body: { match } });
    if (answer.error) throw new Error(answer.error.error);
    const status: string = answer.data[0].status;
    if (status !== "new") throw new Error(status);
    return answer;
  },

  admin_insert_email_send_log: () =>
    client.POST("/api/public/v1/admin/email_send_log", {
      body: [{ id, template_name: "t", recipient_email: email, status: "sent", metadata: { a: [] } }],
    }),
  admin_read_email_send_log: () => client.GET("/api/public/v1/admin/email_send_log", byId),
  admin_update_email_send_log: () =>
    client.PATCH("/api/public/v1/admin/email_send_log", {
      body: { match, values: { status: "failed" } },
    }),
  admin_delete_email_send_log: () =>
    client.DELETE("/api/public/v1/admin/email_send_log", { body: { match } }),

  admin_delete_email_send_state: () =>
    client.DELETE("/api/public/v1/admin/email_send_state", { body: { match: { id: 1 } } }),
  admin_insert_email_send_state: () =>
    client.POST("/api/public/v1/admin/email_send_state", { body: { id: 1 } }),
  admin_read_email_send_state: () => client.GET("/api/public/v1/admin/email_send_state", byOne),
  admin_update_email_send_state: () =>
    client.PATCH("/api/public/v1/admin/email_send_state", {
      body: { match: { id: 1 }, values: { batch_size: 10 } },
    }),

  admin_insert_email_unsubscribe_tokens: () =>
    client.POST("/api/public/v1/admin/email_unsubscribe_tokens", { body: { id, token, email } }),
  admin_read_email_unsubscribe_tokens: () =>
    client.GET("/api/public/v1/admin/email_unsubscribe_tokens", byId),
  admin_update_email_unsubscribe_tokens: () =>
    client.PATCH("/api/public/v1/admin/email_unsubscribe_tokens", {
      body: { match, values: { used_at: null } },
    }),
  show_unsubscribe: () => client.GET("/unsubscribe", link),
  unsubscribe: () => client.POST("/unsubscribe", link),
  admin_delete_email_unsubscribe_tokens: () =>
    client.DELETE("/api/public/v1/admin/email_unsubscribe_tokens", { body: { match } }),

  // What `unsubscribe` stored goes first.
  admin_delete_suppressed_emails: () =>
    client.DELETE("/api/public/v1/admin/suppressed_emails", { body: { match: { email } } }),
  admin_insert_suppressed_emails: () =>
    client.POST("/api/public/v1/admin/suppressed_emails", {
      body: { id, email, reason: "bounce", metadata: { a: [1, null, "b"] } },
    }),
  admin_read_suppressed_emails: () => client.GET("/api/public/v1/admin/suppressed_emails", byId),
  admin_update_suppressed_emails: () =>
    client.PATCH("/api/public/v1/admin/suppressed_emails", {
      body: { match, values: { reason: "complaint" } },
    }),

  list_posts: async () => {
    const answer = await client.GET("/api/public/v1/posts", { params: { query: { limit: 1 } } });
    slug = answer.data!.posts[0]!.slug;
    return answer;
  },
  get_post: () => client.GET("/api/public/v1/posts/{slug}", { params: { path: { slug } } }),
  search_posts: () => client.GET("/api/public/v1/search", { params: { query: { q: "edge" } } }),
  show_search: () => client.GET("/search", { params: { query: { q: "edge" } }, ...text }),

  check_post: () => client.POST("/api/public/v1/sources/check", { body: draft }),
  save_draft: async () => {
    const answer = await client.POST("/api/public/v1/sources", { body: draft });
    written = answer.data!.source;
    return answer;
  },
  list_sources: () => client.GET("/api/public/v1/sources"),
  get_source: () =>
    client.GET("/api/public/v1/sources/{slug}", { params: { path: { slug: written.slug } } }),
  add_picture: () =>
    client.POST("/api/public/v1/sources/pictures", { body: { name: "ts.png", data: picture } }),
  publish_post: async () => {
    const answer = await client.POST("/api/public/v1/sources/{slug}/publish", {
      params: ofWritten(),
      body: {},
    });
    written = answer.data!.source;
    return answer;
  },
  withdraw_post: () =>
    client.POST("/api/public/v1/sources/{slug}/withdraw", { params: ofWritten() }),

  create_lead: () => client.POST("/api/public/v1/leads", { body: enquiry }),
  list_leads: () => client.GET("/api/public/v1/leads", { params: { query: { limit: 1 } } }),
  add_subscriber: () =>
    client.POST("/api/public/v1/subscribers", { body: { email, consent: "I want it." } }),
  read_stats: () =>
    client.GET("/api/public/v1/stats", {
      params: { query: { since: "2026-01-01", until: "2026-01-31" } },
    }),
  analyze: () =>
    client.POST("/api/public/v1/analyze", { body: { text: "One page, fanned a little." } }),

  request_access: async () => {
    const answer = await client.POST("/api/public/access-requests", {
      body: { type: "api_key", name: "Reading list", purpose: "Show posts on our intranet." },
    });
    claim_token = answer.data!.claim_token;
    return answer;
  },
  claim_credential: () =>
    client.POST("/api/public/access-requests/claim", { body: { claim_token } }),
  access_request_form: () => client.GET("/api/public/access-requests", text),

  oauth_register: async () => {
    const body = { redirect_uris: [redirect_uri] };
    const answer = await client.POST("/api/public/oauth/register", { body });
    asked.client_id = answer.data!.client_id;
    return answer;
  },
  oauth_authorize: () =>
    client.GET("/api/public/oauth/authorize", {
      params: {
        query: { ...asked, response_type: "code", code_challenge, code_challenge_method: "S256" },
      },
      ...text,
    }),
  oauth_consent: () =>
    client.POST("/api/public/oauth/authorize", {
      body: { ...asked, decision: "allow", seal: "of nobody" },
      ...form,
      ...text,
    }),
  oauth_token: async () => {
    const answer = await client.POST("/api/public/oauth/token", {
      body: { grant_type: "client_credentials", client_id, client_secret },
      ...form,
    });
    issued = answer.data!.access_token;
    return answer;
  },
  oauth_revoke: () =>
    client.POST("/api/public/oauth/revoke", {
      body: { token: issued, client_id, client_secret },
      ...form,
    }),

  take_email_event: () =>
    client.POST("/api/public/hooks/email", {
      params: {
        header: { "webhook-id": "1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA" },
      },
      body: { type: "email.bounced", data: { email } },
    }),
  mcp: () =>
    client.POST("/api/public/mcp", {
      headers: { "X-API-Key": null, Authorization: `Bearer ${accessToken}` },
      body: { jsonrpc: "2.0", id: 1, method: "tools/list" },
    }),

  ai_catalog: () => client.GET("/.well-known/ai-catalog.json"),
  api_catalog: () => client.GET("/.well-known/api-catalog"),
  describe_api: () => client.GET("/api/public/v1/"),
  describe_api_without_slash: () => client.GET("/api/public/v1"),
  home_page: () => client.GET("/", text),
  llms_txt: () => client.GET("/llms.txt", text),
  mcp_server_card: () => client.GET("/api/public/mcp/server-card"),
  mcp_well_known_server_card: () => client.GET("/.well-known/mcp/server-card.json"),
  oauth_keys: () => client.GET("/.well-known/jwks.json"),
  oauth_metadata: () => client.GET("/.well-known/oauth-authorization-server"),
  oauth_mcp_resource: () => client.GET("/.well-known/oauth-protected-resource/api/public/mcp"),
  oauth_resource: () => client.GET("/.well-known/oauth-protected-resource"),
  oauth_rest_resource: () => client.GET("/.well-known/oauth-protected-resource/api/public/v1"),
  openapi: () => client.GET("/api/public/v1/openapi.json"),
  ping: () => client.GET("/api/public/ping"),
  readiness: () => client.GET("/api/public/v1/readiness"),
  sitemap: () => client.GET("/sitemap.xml", text),
};

const statuses: Record<string, number> = {};
for (const [name, call] of Object.entries(calls)) {
  statuses[name] = (await call()).response.status;
}
console.log(JSON.stringify(statuses));
