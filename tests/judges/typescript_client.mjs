// The official TypeScript clients, from nothing but the endpoint's URL:
//   typescript_client.mjs sdk|client URL
// `sdk` is the package for the revisions until 2025-11-25, `client` the one that prefers 2026-07-28.
// The last line of the output is JSON: what they saw.

import * as older from "@modelcontextprotocol/sdk/client/index.js";
import * as olderAuth from "@modelcontextprotocol/sdk/client/auth.js";
import * as olderHttp from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as newer from "@modelcontextprotocol/client";
import { Loopback } from "./loopback.mjs";

const PACKAGES = {
  sdk: {
    Client: older.Client,
    Transport: olderHttp.StreamableHTTPClientTransport,
    Unauthorized: olderAuth.UnauthorizedError,
    options: {},
    finish: (transport, arrival) => transport.finishAuth(arrival.searchParams.get("code")),
  },
  client: {
    Client: newer.Client,
    Transport: newer.StreamableHTTPClientTransport,
    Unauthorized: newer.UnauthorizedError,
    options: { versionNegotiation: { mode: { pin: "2026-07-28" } } },
    finish: (transport, arrival) => transport.finishAuth(arrival.searchParams),
  },
};

// Keeps what an authorization brings, as a real client does in its settings.
class Keeper {
  constructor(redirectUrl) {
    this.redirectUrl = redirectUrl;
    this.kept = {};
  }
  get clientMetadata() {
    return {
      client_name: "TypeScript client",
      redirect_uris: [this.redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    };
  }
  state() {
    return (this.kept.state ??= crypto.randomUUID());
  }
  clientInformation() {
    return this.kept.client;
  }
  saveClientInformation(client) {
    this.kept.client = client;
  }
  tokens() {
    return this.kept.tokens;
  }
  saveTokens(tokens) {
    this.kept.tokens = tokens;
  }
  redirectToAuthorization(address) {
    this.kept.address = address;
  }
  saveCodeVerifier(verifier) {
    this.kept.verifier = verifier;
  }
  codeVerifier() {
    return this.kept.verifier;
  }
}

async function connect(kit, url, loopback) {
  const keeper = new Keeper(loopback.redirectUri);
  const begin = () => {
    const client = new kit.Client({ name: "typescript", version: "1.0.0" }, kit.options);
    return [client, new kit.Transport(new URL(url), { authProvider: keeper })];
  };
  const [stranger, closed] = begin();
  let refusal;
  await stranger.connect(closed).catch((fault) => (refusal = fault));
  if (!(refusal instanceof kit.Unauthorized)) throw refusal ?? new Error("let in without a token");
  const arrival = await loopback.open(keeper.kept.address);
  if (arrival.searchParams.get("state") !== keeper.kept.state) throw new Error(`${arrival}`);
  await kit.finish(closed, arrival);
  const [client, transport] = begin();
  await client.connect(transport);
  return [client, keeper];
}

const [, , name, url] = process.argv;
const loopback = await Loopback.start();
const [client, keeper] = await connect(PACKAGES[name], url, loopback);
const { tools } = await client.listTools();
const { resources } = await client.listResources();
const found = await client.callTool({ name: "list_posts", arguments: {} });
const read = await client.readResource({ uri: resources[0].uri });
const seen = {
  server: client.getServerVersion(),
  tools: tools.map((tool) => tool.name),
  call: found,
  resources: resources.map((resource) => resource.uri),
  contents: read.contents,
  scope: keeper.kept.tokens.scope,
  refreshable: Boolean(keeper.kept.tokens.refresh_token),
};
await client.close();
loopback.stop();
process.stdout.write(`${JSON.stringify(seen)}\n`);
