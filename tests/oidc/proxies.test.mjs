// People sign in through every usual proxy with no setting: a forwarded port, a name of the local network, a proxy as Next's rewrites,
// nginx by deploy/nginx.conf, and the same behind a second nginx that ends TLS.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";

import { freePort, openPage, startBrowser, startGateway, startMock, until } from "./rig.mjs";

const PASSWORD = "a quiet brown deer";
const folder = mkdtempSync(path.join(os.tmpdir(), "deerflow-proxies-"));

let browser, gateway, mock;
const running = [];
before(async () => {
  browser = await startBrowser();
  mock = await startMock(["ann"]);
  gateway = await startGateway({ providers: mock.settings });
});
after(async () => {
  await browser?.close();
  for (const stop of running.reverse()) await stop();
  await gateway?.stop();
  await mock?.stop();
  rmSync(folder, { recursive: true });
});

/** Starts nginx with servers in a configuration of its own. */
async function startNginx(name, servers, port) {
  const at = path.join(folder, name);
  const config = `daemon off;
pid ${at}.pid;
error_log ${at}.log;
events {}
http {
  access_log off;
  client_body_temp_path ${at}-body;
  proxy_temp_path ${at}-proxy;
  fastcgi_temp_path ${at}-fastcgi;
  uwsgi_temp_path ${at}-uwsgi;
  scgi_temp_path ${at}-scgi;
  ${servers}
}
`;
  writeFileSync(`${at}.conf`, config);
  const nginx = spawn(process.env.NGINX ?? "/usr/sbin/nginx", ["-c", `${at}.conf`, "-e", `${at}.log`], { stdio: "inherit" });
  running.push(async () => {
    nginx.kill("SIGTERM");
    if (nginx.exitCode === null) await once(nginx, "exit");
  });
  const connects = () =>
    new Promise((resolve) => {
      const socket = net.connect(port, "127.0.0.1", () => resolve(true)).on("error", () => resolve(false));
      socket.on("connect", () => socket.destroy());
    });
  await until(connects, name);
}

/** Returns deploy/nginx.conf for one gateway. */
function deployed(port) {
  const text = readFileSync(new URL("../../deploy/nginx.conf", import.meta.url), "utf8");
  return text
    .replace(/( *server node-1:8001)/, `    server 127.0.0.1:${gateway.port}`)
    .replace(/.*server node-[23]:8001.*\n/g, "")
    .replace("listen 80;", `listen 127.0.0.1:${port};`);
}

/** Forwards connections, as an SSH tunnel does. */
async function startForward() {
  const sockets = new Set();
  const server = net.createServer((socket) => {
    const onward = net.connect(gateway.port, "127.0.0.1");
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ]) {
      sockets.add(from);
      from.pipe(to);
      from.on("error", () => to.destroy());
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  running.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return server.address().port;
}

/** Forwards requests with the headers of Next's rewrites: its own host, and the browser's in X-Forwarded-Host. */
async function startRewrites() {
  const server = http.createServer((request, response) => {
    const headers = { ...request.headers, host: `127.0.0.1:${gateway.port}`, "x-forwarded-host": request.headers.host };
    const onward = http.request({ port: gateway.port, host: "127.0.0.1", path: request.url, method: request.method, headers });
    onward.on("response", (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    request.pipe(onward);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  running.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return server.address().port;
}

/** Sends a request as a script of the page's origin. */
const send = (page, method, route, body) =>
  page.evaluate(
    async ([method, route, body]) => {
      const csrf = document.cookie.split("; ").find((part) => part.startsWith("csrf_token="))?.slice(11);
      const headers = { "content-type": "application/json", ...(csrf && { "x-csrf-token": csrf }) };
      const answer = await fetch(route, { method, headers, body: body && JSON.stringify(body) });
      return { status: answer.status, body: await answer.text() };
    },
    [method, route, body],
  );

/** Registers with the `Origin` of another page; returns the status. A page cannot choose its origin, so no browser sends this. */
async function registerFrom(foreign, origin) {
  const { protocol, port, host } = new URL(origin);
  const headers = { host, origin: foreign, "content-type": "application/json" };
  const options = { host: "127.0.0.1", port, method: "POST", path: "/api/v1/auth/register", headers, rejectUnauthorized: false };
  const request = (protocol === "https:" ? https : http).request(options);
  request.end(JSON.stringify({ email: "mallory@example.org", password: PASSWORD }));
  const [answer] = await once(request, "response");
  answer.resume();
  return answer.statusCode;
}

/** Returns the e-mail of the person who is signed in. */
const who = async (page) => JSON.parse((await send(page, "GET", "/api/v1/auth/me")).body).email;

let people = 0;

/** Registers, signs out and signs in again at an origin, and looks at what a sign-in through a provider would do. */
async function signsIn(origin, { secure = false } = {}) {
  const page = await openPage(browser);
  await page.goto(`${origin}/docs`, { waitUntil: "domcontentloaded" });
  const email = `person${people++}@example.org`;
  const registered = await send(page, "POST", "/api/v1/auth/register", { email, password: PASSWORD });
  assert.equal(registered.status, 201, registered.body);
  assert.equal(await who(page), email);
  const thread = await send(page, "POST", "/api/threads", {});
  assert.equal(thread.status, 200, thread.body);
  const cookies = await page.context().cookies(origin);
  const session = cookies.find(({ name }) => name === "access_token");
  assert.equal(session.secure, secure);
  const left = await send(page, "POST", "/api/v1/auth/logout", {});
  assert.equal(left.status, 200, left.body);
  const form = await page.evaluate(async (fields) => (await fetch("/api/v1/auth/login/local", { method: "POST", body: new URLSearchParams(fields) })).status, {
    username: email,
    password: PASSWORD,
  });
  assert.equal(form, 200);
  assert.equal(await who(page), email);
  for (const foreign of ["http://evil-deer.lan", `${origin}.evil.test`, "null"]) assert.equal(await registerFrom(foreign, origin), 403, foreign);
  // The provider sends the browser back to the address that it knows, and the cookie is one of that address.
  await page.goto(`${origin}/api/v1/auth/oauth/mock`, { waitUntil: "domcontentloaded" });
  const callback = `${origin}/api/v1/auth/callback/mock`;
  assert.equal(new URL(page.url()).searchParams.get("redirect_uri"), callback);
  const [state] = (await page.context().cookies(callback)).filter(({ name }) => name === "df_oidc_state_mock");
  assert.equal(state.secure, secure);
  await mock.signIn(page, "ann");
  await page.waitForURL(`${origin}/auth/callback?next=%2Fworkspace`);
  assert.equal(await who(page), "ann@example.org");
  await page.context().close();
}

test("through a forwarded port", async () => signsIn(`http://127.0.0.1:${await startForward()}`));

test("by a name of the local network", () => signsIn(`http://deer.lan:${gateway.port}`));

test("through rewrites as those of Next", async () => signsIn(`http://deer.lan:${await startRewrites()}`));

test("through nginx", async () => {
  const port = await freePort();
  await startNginx("one", deployed(port), port);
  await signsIn(`http://deer.lan:${port}`);
});

test("through nginx behind a second one that ends TLS", async () => {
  const [inner, outer] = [await freePort(), await freePort()];
  await startNginx("inner", deployed(inner), inner);
  const [key, certificate] = [path.join(folder, "key.pem"), path.join(folder, "certificate.pem")];
  const subject = ["-subj", "/CN=deer.lan", "-addext", "subjectAltName=DNS:deer.lan"];
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-keyout", key, "-out", certificate, ...subject], { stdio: "ignore" });
  const tls = `server {
    listen 127.0.0.1:${outer} ssl;
    ssl_certificate ${certificate};
    ssl_certificate_key ${key};
    location / {
      proxy_pass http://127.0.0.1:${inner};
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-Proto $scheme;
    }
  }`;
  await startNginx("outer", tls, outer);
  await signsIn(`https://deer.lan:${outer}`, { secure: true });
});
