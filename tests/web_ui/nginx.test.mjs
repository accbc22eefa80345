// nginx in front of the UI and the gateway, with the configuration of deploy/nginx.ui.conf, and in front of the UI alone.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";

import { startGateway, startUi, until } from "./rig.mjs";

const PASSWORD = "correct horse 17 battery";
const { UI_PORT, UI_GATEWAY_PORT } = process.env;
// The second nginx passes all requests to the UI, which passes those of the API on.
const PORTS = [2126, 2127];

let gateway, ui;
const proxies = [];
before(async () => {
  gateway = await startGateway({ env: { DEER_FLOW_AUTH_DISABLED: "0" } });
  ui = await startUi({ DEER_FLOW_AUTH_DISABLED: "0" });
  proxies.push(await startNginx(PORTS[0], UI_GATEWAY_PORT), await startNginx(PORTS[1], UI_PORT));
});
after(async () => {
  for (const proxy of proxies) await proxy.stop();
  await ui?.stop();
  await gateway?.stop();
});

/** Starts nginx on a port; `api` is the port to which it passes requests of the API. */
async function startNginx(port, api) {
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
  return { stop };
}

/** Sees text of an answer in a new chat before the answer is complete. */
async function seeLiveText(page, origin, hold) {
  await page.goto(`${origin}/workspace/chats/new`);
  await page.getByRole("textbox").first().fill(`[[slow 40x10ms]][[hold 20 ${hold}]]`);
  await page.keyboard.press("Enter");
  await page.getByText("tok10 ").first().waitFor();
  await gateway.release(hold);
  await page.getByText("tok39").first().waitFor();
  assert.equal(new URL(page.url()).origin, origin);
}

test("a person sets up the server, signs in and sees live text through nginx", async () => {
  const [origin] = PORTS.map((port) => `http://localhost:${port}`);
  const page = await ui.open();
  await page.goto(`${origin}/workspace`);
  await page.waitForURL(/\/setup/);
  await page.locator("#email").fill("ann@example.com");
  await page.locator("#password").fill(PASSWORD);
  await page.locator("#confirmPassword").fill(PASSWORD);
  await page.locator("button[type=submit]").click();
  await page.waitForURL(/\/workspace/);
  await seeLiveText(page, origin, "nginx");
});

test("a person signs in and sees live text through the UI behind nginx", async () => {
  const origin = `http://localhost:${PORTS[1]}`;
  const page = await ui.open();
  await page.goto(`${origin}/login`);
  await page.locator("#email").fill("ann@example.com");
  await page.locator("#password").fill(PASSWORD);
  await page.locator("button[type=submit]").click();
  await page.waitForURL(/\/workspace/);
  await seeLiveText(page, origin, "behind");
});
