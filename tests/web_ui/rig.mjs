// DeerFlow's web UI in a browser, with a gateway and the fake of a chat platform.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";

import { start, until } from "../sdk/js/rig.mjs";

export { until };

const { chromium } = createRequire(new URL("../browser/package.json", import.meta.url))("playwright-core");
const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const { DEERFLOW_BIN_DIR, UI, UI_PORT, UI_GATEWAY_PORT } = process.env;
const ORIGIN = `http://localhost:${UI_PORT}`;

/** Starts the gateway at the address that the UI was built for; options as in `start`. */
export const startGateway = (options) => start({ ...options, listen: Number(UI_GATEWAY_PORT) });

/** Starts the UI's own server and a browser. `stop` ends both. */
export async function startUi(env = {}) {
  const server = spawn(process.execPath, [path.join(UI, "node_modules/next/dist/bin/next"), "start", "--port", UI_PORT], {
    cwd: UI,
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, SKIP_ENV_VALIDATION: "1", DEER_FLOW_INTERNAL_GATEWAY_BASE_URL: `http://127.0.0.1:${UI_GATEWAY_PORT}`, ...env },
  });
  await until(() => fetch(ORIGIN).then((answer) => answer.ok, () => false), "the UI");
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ARGUMENTS });
  const open = async (baseURL = ORIGIN) => {
    const context = await browser.newContext({ baseURL, locale: "en-US" });
    return context.newPage();
  };
  const stop = async () => {
    await browser.close();
    server.kill("SIGKILL");
    await once(server, "exit");
  };
  return { origin: ORIGIN, open, stop };
}

/** Starts the fake of a chat platform. `act` sends a request to its control routes. */
export async function startPlatform(name) {
  const fake = spawn(path.join(DEERFLOW_BIN_DIR, "chat-platform"), [name], { stdio: ["ignore", "pipe", "inherit"] });
  const [base] = await once(createInterface({ input: fake.stdout }), "line");
  const act = async (route, body) => {
    const answer = await fetch(`${base}/_fake/${route}`, body && { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`the platform answered ${answer.status} to ${route}`);
    return answer.json();
  };
  const stop = async () => {
    fake.kill("SIGKILL");
    await once(fake, "exit");
  };
  return { base, act, stop };
}

/** Starts nginx with the example of deploy/ on a port; `api` is the port to which it passes requests of the API. */
export async function startNginx(port, api = UI_GATEWAY_PORT) {
  const folder = await mkdtemp(path.join(os.tmpdir(), "deerflow-nginx-"));
  const example = await readFile(new URL("../../deploy/nginx.ui.conf", import.meta.url), "utf8");
  const server = example
    .replaceAll("gateway:8001", `127.0.0.1:${api}`)
    .replaceAll("frontend:3000", `127.0.0.1:${UI_PORT}`)
    .replace("listen 2026", `listen ${port}`);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder}/${name};`).join("\n");
  await writeFile(path.join(folder, "nginx.conf"), `daemon off;\npid ${folder}/pid;\nevents {}\nhttp {\naccess_log off;\n${temporary}\n${server}\n}\n`);
  const PATH = `${process.env.PATH}:/usr/sbin`;
  const child = spawn("nginx", ["-e", "stderr", "-p", folder, "-c", path.join(folder, "nginx.conf")], { stdio: "inherit", env: { ...process.env, PATH } });
  await until(() => fetch(`http://localhost:${port}/`).then((answer) => answer.ok, () => false), "nginx");
  const stop = async () => {
    child.kill("SIGTERM");
    await once(child, "exit");
    await rm(folder, { recursive: true });
  };
  return { origin: `http://localhost:${port}`, stop };
}

/** Opens a new chat and returns its composer. */
export async function newChat(page, at = "/workspace/chats/new") {
  await page.goto(at);
  const composer = page.locator("textarea").first();
  await composer.waitFor();
  return composer;
}

export async function say(page, text) {
  await page.getByRole("textbox").first().fill(text);
  await page.keyboard.press("Enter");
}

/** Returns the answers with a text. */
export const turn = (page, text) => page.locator("[data-assistant-turn]").filter({ hasText: text });

/** Does something that starts a run and waits until the UI has read the state after it, when it accepts the next message. */
export async function settled(page, act) {
  const read = page.waitForResponse((response) => response.url().endsWith("/history"));
  await act();
  await read;
}

/** Sends a message and waits for the answer and the state after its run. */
export const converse = (page, text, answer) =>
  settled(page, async () => {
    await say(page, text);
    await turn(page, answer).last().waitFor();
  });

/** Waits for a notice with a text. */
export const notice = (page, text) => page.locator("[data-sonner-toast]").filter({ hasText: text }).first().waitFor();

/** Creates an account and signs it in. */
export async function register(page, origin, route, email, password) {
  const answer = await page.request.post(`/api/v1/auth/${route}`, { data: { email, password }, headers: { origin } });
  if (answer.status() !== 201) throw new Error(await answer.text());
}

/** Records the requests that fail. */
export function failuresOf(page) {
  const failures = [];
  page.on("response", (answer) => answer.status() >= 400 && failures.push(`${answer.status()} ${answer.request().method()} ${new URL(answer.url()).pathname}`));
  return failures;
}
