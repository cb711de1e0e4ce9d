// A strict OAuth client (oauth4webapi) walks through the authorization server, one walk a run:
//   oauth.mjs WALK ISSUER [CLIENT]
// CLIENT is JSON: {"client_id", "client_secret"} or {"client_id", "private_jwk"}. The walk says what
// it found, a line each; the first surprise ends it with exit status 1.

import assert from "node:assert/strict";
import * as oauth from "oauth4webapi";
import { Loopback } from "./loopback.mjs";

const [, , walk, issuer, clientText = "{}"] = process.argv;
const given = JSON.parse(clientText);
const here = { [oauth.allowInsecureRequests]: true }; // the server under test is on loopback
const mcp = `${issuer}/api/public/mcp`;
const rest = `${issuer}/api/public/v1`;
const found = (sentence) => process.stdout.write(`${sentence}\n`);

async function discover() {
  const url = new URL(issuer);
  const answer = await oauth.discoveryRequest(url, { ...here, algorithm: "oauth2" });
  return oauth.processDiscoveryResponse(url, answer);
}

// Redeems a promise of a token endpoint's answer that has to be an error of RFC 6749, section 5.2.
async function refused(promise, ...codes) {
  let fault;
  await promise.catch((thrown) => (fault = thrown));
  const isChallenge = fault instanceof oauth.WWWAuthenticateChallengeError;
  assert(
    isChallenge || fault instanceof oauth.ResponseBodyError,
    `expected ${codes}, got ${fault ?? "an answer"}`,
  );
  const said = isChallenge ? await fault.response.json() : fault.cause;
  assert(codes.includes(said.error), `expected ${codes}, got ${said.error}`);
  assert(said.error_description?.length > 10, `${said.error} says nothing that helps`);
  return fault;
}

// Returns the status with which the MCP endpoint answers a token: 200, or that of its challenge.
async function shown(token) {
  const headers = new Headers({
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/list",
  });
  const envelope = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const params = { _meta: envelope };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params });
  try {
    const url = new URL(mcp);
    const answer = await oauth.protectedResourceRequest(token, "POST", url, headers, body, here);
    await answer.arrayBuffer();
    return answer.status;
  } catch (fault) {
    if (!(fault instanceof oauth.WWWAuthenticateChallengeError)) throw fault;
    assert.equal(fault.cause[0].parameters.error, "invalid_token");
    return fault.status;
  }
}

async function checkToken(as, token, audience) {
  const request = new Request(mcp, { headers: { Authorization: `Bearer ${token}` } });
  const claims = await oauth.validateJwtAccessToken(as, request, audience, here);
  for (const name of ["sub", "client_id", "scope", "jti", "iat"]) assert(claims[name], name);
  return claims;
}

// A client that registered itself, as an agent does that was never here before.
async function register(as, redirectUri, more = {}) {
  const metadata = {
    client_name: "Strict client",
    redirect_uris: [redirectUri],
    token_endpoint_auth_method: "none",
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    ...more,
  };
  const answer = await oauth.dynamicClientRegistrationRequest(as, metadata, here);
  return oauth.processDynamicClientRegistrationResponse(answer);
}

function authorizationUrl(as, client, redirectUri, more) {
  const url = new URL(as.authorization_endpoint);
  const plain = { client_id: client.client_id, redirect_uri: redirectUri, response_type: "code" };
  for (const [name, value] of Object.entries({ ...plain, ...more })) {
    if (value !== null) url.searchParams.set(name, value);
  }
  return url;
}

async function challenge() {
  const verifier = oauth.generateRandomCodeVerifier();
  const code_challenge = await oauth.calculatePKCECodeChallenge(verifier);
  return [verifier, { code_challenge, code_challenge_method: "S256" }];
}

// Asks for consent, and returns all that is needed to redeem the code, as often as one likes. A
// `known` client is one of the operator's; any other registers itself.
async function consent(as, loopback, known, authentication = oauth.None) {
  const client = known ?? (await register(as, loopback.redirectUri));
  const [verifier, pkce] = await challenge();
  const state = oauth.generateRandomState();
  const wanted = { ...pkce, state, resource: mcp };
  const url = authorizationUrl(as, client, loopback.redirectUri, wanted);
  const arrival = await loopback.open(url.href);
  const params = oauth.validateAuthResponse(as, client, arrival, state); // `state` and `iss`
  assert.equal(params.get("iss"), issuer);
  assert.notEqual(params.get("code"), null);
  const redeem = async (changed = {}) => {
    const { proof = verifier, redirectUri = loopback.redirectUri, resource = mcp } = changed;
    const options = { ...here, additionalParameters: { resource } };
    const answer = await oauth.authorizationCodeGrantRequest(
      as, client, authentication(), params, redirectUri, proof, options);
    assert.equal(answer.headers.get("cache-control"), "no-store");
    return oauth.processAuthorizationCodeResponse(as, client, answer);
  };
  const refresh = async (token, scope) => {
    const additionalParameters = scope === undefined ? {} : { scope };
    const options = { ...here, additionalParameters };
    const answer = await oauth.refreshTokenGrantRequest(
      as, client, authentication(), token, options);
    return oauth.processRefreshTokenResponse(as, client, answer);
  };
  const revoke = async (token) => {
    const answer = await oauth.revocationRequest(as, client, authentication(), token, here);
    await oauth.processRevocationResponse(answer);
  };
  return { client, redeem, refresh, revoke };
}

async function clientCredentials(as, authentication, more = {}) {
  const client = { client_id: given.client_id };
  const wanted = { scope: "mcp posts:read", resource: mcp, ...more };
  const answer = await oauth.clientCredentialsGrantRequest(
    as, client, authentication, wanted, here);
  return oauth.processClientCredentialsResponse(as, client, answer);
}

// The walk that all ways of client authentication share.
async function walkWith(loopback, authentication, wrong) {
  const as = await discover();
  const token = await clientCredentials(as, authentication());
  assert.equal(token.token_type, "bearer");
  assert.equal(token.refresh_token, undefined, "a client alone needs no refresh token");
  const claims = await checkToken(as, token.access_token, mcp);
  assert.equal(claims.client_id, given.client_id);
  assert.deepEqual(new Set(claims.scope.split(" ")), new Set(["mcp", "posts:read"]));
  assert.equal(await shown(token.access_token), 200);
  found("a token of its own, good at the endpoint");
  const elsewhere = await clientCredentials(as, authentication(), { resource: rest });
  await checkToken(as, elsewhere.access_token, rest);
  assert.equal(await shown(elsewhere.access_token), 401);
  found("a token for another resource is refused");
  await refused(clientCredentials(as, authentication(), { scope: "admin:write" }), "invalid_scope");
  const foreign = { resource: "https://elsewhere.test/" };
  await refused(clientCredentials(as, authentication(), foreign), "invalid_target");
  const fault = await refused(clientCredentials(as, wrong()), "invalid_client");
  assert([400, 401].includes(fault.status));
  found("a wrong credential is refused");
  const { redeem, refresh, revoke } = await consent(
    as, loopback, { client_id: given.client_id }, authentication);
  const granted = await refresh((await redeem()).refresh_token);
  assert.equal(await shown(granted.access_token), 200);
  await revoke(granted.refresh_token);
  assert.equal(await shown(granted.access_token), 401);
  found("a person's consent: redeemed, refreshed, revoked");
  return [as, fault];
}

const importKey = (jwk) =>
  crypto.subtle.importKey("jwk", jwk, { name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]);

const walks = {
  async discovery() {
    const as = await discover();
    assert.deepEqual(as.code_challenge_methods_supported, ["S256"]);
    assert.equal(as.authorization_response_iss_parameter_supported, true);
    for (const path of ["", "/api/public/mcp", "/api/public/v1"]) {
      const resource = new URL(`${issuer}${path}`);
      const answer = await oauth.resourceDiscoveryRequest(resource, here);
      const said = await oauth.processResourceDiscoveryResponse(resource, answer);
      assert.deepEqual(said.authorization_servers, [issuer]);
      assert(said.bearer_methods_supported.includes("header"));
      found(`${resource} names its authorization server`);
    }
    const { keys } = await (await fetch(as.jwks_uri)).json();
    assert(keys.length > 0);
    for (const key of keys) assert(key.kid && !key.d, JSON.stringify(key));
    found("the keys are public, and have names");
  },

  async client_secret_basic(loopback) {
    const right = () => oauth.ClientSecretBasic(given.client_secret);
    const wrong = () => oauth.ClientSecretBasic("wrong: %+&ü");
    const [, fault] = await walkWith(loopback, right, wrong);
    assert.equal(fault.status, 401);
    assert.match(fault.response.headers.get("www-authenticate"), /^Basic /i);
  },

  async client_secret_post(loopback) {
    const right = () => oauth.ClientSecretPost(given.client_secret);
    await walkWith(loopback, right, () => oauth.ClientSecretPost("wrong: %+&"));
  },

  async private_key_jwt(loopback) {
    const key = await importKey(given.private_jwk);
    const { kid } = given.private_jwk;
    const right = (options) => oauth.PrivateKeyJwt({ key, kid }, options);
    const usage = { name: "ECDSA", namedCurve: "P-256" };
    const other = await crypto.subtle.generateKey(usage, false, ["sign", "verify"]);
    const wrong = () => oauth.PrivateKeyJwt({ key: other.privateKey, kid });
    const [as] = await walkWith(loopback, right, wrong);
    const change = (changes) =>
      right({ [oauth.modifyAssertion]: (_header, payload) => Object.assign(payload, changes) });
    const old = { exp: 1_000_000_000 };
    for (const changes of [{ aud: "https://elsewhere.test/" }, old, { iss: "another" }]) {
      await refused(clientCredentials(as, change(changes)), "invalid_client", "invalid_request");
    }
    found("an assertion for another server, an old one, another's: refused");
    const once = () => change({ jti: `once ${kid}` });
    await clientCredentials(as, once());
    await refused(clientCredentials(as, once()), "invalid_client");
    found("an assertion counts once");
  },

  async code(loopback) {
    const as = await discover();
    const { client, redeem } = await consent(as, loopback);
    assert.equal(client.token_endpoint_auth_method, "none");
    assert.equal(client.client_secret, undefined);
    const token = await redeem();
    const claims = await checkToken(as, token.access_token, mcp);
    assert.equal(claims.client_id, client.client_id);
    assert(token.refresh_token);
    assert.equal(await shown(token.access_token), 200);
    found("registered by itself, consented to, redeemed, good at the endpoint");
  },

  async redemption(loopback) {
    const as = await discover();
    const changes = {
      verifier: { proof: oauth.generateRandomCodeVerifier() },
      redirect_uri: { redirectUri: "http://127.0.0.1:1/elsewhere" },
      resource: { resource: rest },
    };
    for (const [name, changed] of Object.entries(changes)) {
      const { redeem } = await consent(as, loopback);
      await refused(redeem(changed), "invalid_grant", "invalid_target", "invalid_request");
      found(`another ${name} does not redeem a code`);
    }
    const { redeem } = await consent(as, loopback);
    const stranger = await consent(as, loopback);
    const first = await redeem();
    const { refresh } = stranger;
    await refused(refresh(first.refresh_token), "invalid_grant");
    found("another client does not refresh a token");
  },

  async rotation(loopback) {
    const as = await discover();
    const { redeem, refresh } = await consent(as, loopback);
    let token = await redeem();
    const seen = new Set([token.refresh_token]);
    for (let round = 0; round < 3; round += 1) {
      token = await refresh(token.refresh_token);
      assert(!seen.has(token.refresh_token), "a refresh token came twice");
      seen.add(token.refresh_token);
      assert.equal(await shown(token.access_token), 200);
    }
    found("each refresh token brought another");
    const less = await refresh(token.refresh_token, "mcp");
    assert.equal((await checkToken(as, less.access_token, mcp)).scope, "mcp");
    await refused(refresh(less.refresh_token, "mcp admin:write"), "invalid_scope");
    found("a token can be had for less, never for more");
  },

  async replayed_code(loopback) {
    const as = await discover();
    const { redeem, refresh } = await consent(as, loopback);
    const token = await redeem();
    assert.equal(await shown(token.access_token), 200);
    await refused(redeem(), "invalid_grant");
    assert.equal(await shown(token.access_token), 401);
    await refused(refresh(token.refresh_token), "invalid_grant");
    found("a code that came twice has taken back what it gave");
  },

  async replayed_refresh_token(loopback) {
    const as = await discover();
    const { redeem, refresh } = await consent(as, loopback);
    const first = await redeem();
    const second = await refresh(first.refresh_token);
    assert.equal(await shown(second.access_token), 200);
    await refused(refresh(first.refresh_token), "invalid_grant");
    await refused(refresh(second.refresh_token), "invalid_grant");
    assert.equal(await shown(second.access_token), 401);
    found("a refresh token that came twice has ended the family");
  },

  async revocation(loopback) {
    const as = await discover();
    for (const kind of ["refresh_token", "access_token"]) {
      const { redeem, refresh, revoke } = await consent(as, loopback);
      const token = await redeem();
      await revoke(token[kind]);
      assert.equal(await shown(token.access_token), 401);
      if (kind === "refresh_token") {
        await refused(refresh(token.refresh_token), "invalid_grant");
      }
      await revoke(token[kind]);
      await revoke("never-seen");
      found(`a revoked ${kind} is over, and may be revoked again`);
    }
  },

  async registration(loopback) {
    const as = await discover();
    const client = await register(as, loopback.redirectUri, { scope: "mcp admin:write" });
    assert(!client.scope.split(" ").includes("admin:write"), client.scope);
    found("whoever registers himself gets no administrative scope");
    for (const uri of ["javascript:alert(1)", "http://elsewhere.test/", "https://a.test/#part"]) {
      await refused(register(as, uri), "invalid_redirect_uri");
    }
    await refused(register(as, loopback.redirectUri, { client_name: 5 }), "invalid_client_metadata");
    found("what cannot be registered is refused in the words of RFC 7591");
  },

  async refusals(loopback) {
    const as = await discover();
    const both = [loopback.redirectUri, `${loopback.redirectUri}/other`];
    const client = await register(as, null, { redirect_uris: both });
    const [, pkce] = await challenge();
    const state = oauth.generateRandomState();
    const ask = (more) => {
      const wanted = { ...pkce, state, resource: mcp, ...more };
      const url = authorizationUrl(as, client, loopback.redirectUri, wanted);
      return fetch(url, { redirect: "manual" });
    };
    const faulty = {
      "plain PKCE": [{ code_challenge_method: "plain" }, "invalid_request"],
      "no method, which means plain": [{ code_challenge_method: null }, "invalid_request"],
      "no PKCE": [{ code_challenge: null, code_challenge_method: null }, "invalid_request"],
      "the implicit grant": [{ response_type: "token" }, "unsupported_response_type"],
      "an unknown scope": [{ scope: "everything" }, "invalid_scope"],
      "a foreign resource": [{ resource: "https://elsewhere.test/" }, "invalid_target"],
    };
    for (const [name, [more, code]] of Object.entries(faulty)) {
      const answer = await ask(more);
      assert([302, 303].includes(answer.status), `${name}: ${answer.status}`);
      const arrival = new URL(answer.headers.get("location"));
      assert.equal(`${arrival.origin}${arrival.pathname}`, loopback.redirectUri);
      assert.throws(
        () => oauth.validateAuthResponse(as, client, arrival, state),
        (fault) => fault instanceof oauth.AuthorizationResponseError && fault.error === code,
        `${name}: ${arrival}`,
      );
      assert.equal(arrival.searchParams.get("iss"), issuer);
      found(`${name}: ${code}, with iss and state`);
    }
    const untrusted = {
      "an unknown client": { client_id: "nobody" },
      "another redirect URI": { redirect_uri: `${loopback.redirectUri}/elsewhere` },
      "neither of two redirect URIs": { redirect_uri: null },
      "a redirect URI that runs": { redirect_uri: "javascript:alert(1)" },
    };
    for (const [name, more] of Object.entries(untrusted)) {
      const answer = await ask(more);
      assert(answer.status >= 400 && answer.status < 500, `${name}: ${answer.status}`);
      assert.equal(answer.headers.get("location"), null, name);
      found(`${name}: told to the person, nobody is sent on`);
    }
  },
};

const loopback = await Loopback.start();
try {
  await walks[walk](loopback);
} catch (fault) {
  process.stderr.write(`${fault.stack}\n`);
  if (fault.cause) process.stderr.write(`cause: ${JSON.stringify(fault.cause)}\n`);
  process.exitCode = 1;
}
loopback.stop();
