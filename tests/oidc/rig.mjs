// Identity providers, gateways and a browser.

import { spawn } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import net from "node:net";

import Provider from "oidc-provider";
import { chromium } from "playwright-core";

import { start, until } from "../sdk/js/rig.mjs";

export { until };

const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--host-resolver-rules=MAP *.lan 127.0.0.1",
];

const SECRET = randomBytes(32).toString("base64url");

export const callback = (origin, name) => `${origin}/api/v1/auth/callback/${name}`;

/** Returns a free port of 127.0.0.1. */
export async function freePort() {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Starts a browser that resolves every name in `.lan` to this machine. */
export const startBrowser = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ARGUMENTS });

const jwk = (type, options) => generateKeyPairSync(type, options).privateKey.export({ format: "jwk" });

/**
 * Starts the certified server. Its clients differ in their method and their algorithm; every login name is a person.
 * @param redirects  returns the redirect URIs of a client
 */
export async function startCertified(redirects) {
  const port = await freePort();
  const issuer = `http://127.0.0.1:${port}`;
  const client = (client_id, token_endpoint_auth_method, id_token_signed_response_alg) => ({
    client_id,
    ...(token_endpoint_auth_method === "none" ? {} : { client_secret: SECRET }),
    token_endpoint_auth_method,
    id_token_signed_response_alg,
    redirect_uris: redirects(client_id),
  });
  const clients = [
    client("basic", "client_secret_basic", "ES256"),
    client("post", "client_secret_post", "RS256"),
    client("public", "none", "RS256"),
  ];
  const provider = new Provider(issuer, {
    clients,
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    cookies: { keys: [SECRET] },
    features: { devInteractions: { enabled: true } },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: `${id}@example.org`, email_verified: true, name: id }) }),
    jwks: {
      keys: [
        { ...jwk("rsa", { modulusLength: 2048 }), alg: "RS256", use: "sig" },
        { ...jwk("ec", { namedCurve: "P-256" }), alg: "ES256", use: "sig" },
      ],
    },
    pkce: { required: () => true },
  });
  const server = http.createServer(provider.callback()).listen(port, "127.0.0.1");
  await once(server, "listening");
  const settings = clients.map(({ client_id, token_endpoint_auth_method }) => [
    client_id,
    { display_name: client_id, issuer, client_id, client_secret: SECRET, token_endpoint_auth_method },
  ]);
  /** Signs in at the pages of the server. */
  const signIn = async (page, name) => {
    await page.fill("input[name=login]", name);
    await page.fill("input[name=password]", "any");
    await page.click("button[type=submit]");
    await page.click("button[type=submit]");
  };
  const decline = (page) => page.click("text=Cancel");
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { settings: Object.fromEntries(settings), signIn, decline, stop };
}

/** Starts the mock; `people` are the login names that it knows. */
export async function startMock(people) {
  const port = await freePort();
  const issuer = `http://127.0.0.1:${port}`;
  const users = people.flatMap((sub) => ["--user-claims", JSON.stringify({ sub, email: `${sub}@example.org`, email_verified: true })]);
  const mock = spawn(process.env.OIDC_PYTHON, ["-W", "ignore", "-m", "oidc_provider_mock", "--port", String(port), ...users], { stdio: "ignore" });
  await until(() => fetch(`${issuer}/.well-known/openid-configuration`).then((answer) => answer.ok, () => false), "the mock");
  const signIn = async (page, name) => {
    await page.fill("input[name=sub]", name);
    await page.click("text=Authorize >> nth=-1");
  };
  const decline = (page) => page.click("text=Deny");
  const stop = async () => {
    mock.kill("SIGKILL");
    await once(mock, "exit");
  };
  const settings = { mock: { display_name: "Mock", issuer, client_id: "deerflow", client_secret: SECRET } };
  return { settings, signIn, decline, stop };
}

/**
 * Starts a gateway with authentication.
 * @param providers  identity providers by name
 * @param sections   other sections of the configuration
 */
export const startGateway = ({ providers = {}, sections = {}, listen, env = {} }) =>
  start({
    listen,
    env: { DEER_FLOW_AUTH_DISABLED: "0", AUTH_JWT_SECRET: SECRET, ...env },
    config: (baseUrl) =>
      JSON.stringify({
        config_version: 34,
        models: [{ name: "fake", use: "langchain_openai:ChatOpenAI", model: "scripted-1", api_key: "none", base_url: baseUrl }],
        memory: { enabled: false },
        database: { backend: "sqlite" },
        ...sections,
        auth: { oidc: { enabled: Object.keys(providers).length > 0, providers } },
      }),
  });

/** Opens a page in a fresh profile that reaches this machine only. */
export async function openPage(browser) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  await context.route("**/*", (route) => {
    const { hostname } = new URL(route.request().url());
    return hostname === "127.0.0.1" || hostname === "localhost" || hostname.endsWith(".lan") ? route.continue() : route.abort();
  });
  return context.newPage();
}

/** Returns the person who is signed in in the page's profile, or the status of the refusal. */
export async function me(page, origin) {
  const answer = await page.context().request.get(`${origin}/api/v1/auth/me`);
  return answer.ok() ? answer.json() : answer.status();
}
