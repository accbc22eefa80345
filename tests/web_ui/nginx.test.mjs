// nginx in front of the UI and the gateway, with the configuration of deploy/nginx.ui.conf.

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
const PORT = 2126;
const ORIGIN = `http://localhost:${PORT}`;

let gateway, ui, nginx;
before(async () => {
  gateway = await startGateway({ env: { DEER_FLOW_AUTH_DISABLED: "0" } });
  ui = await startUi({ DEER_FLOW_AUTH_DISABLED: "0" });
  nginx = await startNginx();
});
after(async () => {
  await nginx?.stop();
  await ui?.stop();
  await gateway?.stop();
});

async function startNginx() {
  const folder = await mkdtemp(path.join(os.tmpdir(), "deerflow-nginx-"));
  const example = await readFile(new URL("../../deploy/nginx.ui.conf", import.meta.url), "utf8");
  const server = example
    .replaceAll("gateway:8001", `127.0.0.1:${UI_GATEWAY_PORT}`)
    .replaceAll("frontend:3000", `127.0.0.1:${UI_PORT}`)
    .replace("listen 2026", `listen ${PORT}`);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder}/${name};`).join("\n");
  await writeFile(path.join(folder, "nginx.conf"), `daemon off;\npid ${folder}/pid;\nevents {}\nhttp {\naccess_log off;\n${temporary}\n${server}\n}\n`);
  const PATH = `${process.env.PATH}:/usr/sbin`;
  const child = spawn("nginx", ["-e", "stderr", "-p", folder, "-c", path.join(folder, "nginx.conf")], { stdio: "inherit", env: { ...process.env, PATH } });
  await until(() => fetch(`${ORIGIN}/health`).then((answer) => answer.ok, () => false), "nginx");
  const stop = async () => {
    child.kill("SIGTERM");
    await once(child, "exit");
    await rm(folder, { recursive: true });
  };
  return { stop };
}

test("a person sets up the server, signs in and sees live text through nginx", async () => {
  const page = await ui.open();
  await page.goto(`${ORIGIN}/workspace`);
  await page.waitForURL(/\/setup/);
  await page.locator("#email").fill("ann@example.com");
  await page.locator("#password").fill(PASSWORD);
  await page.locator("#confirmPassword").fill(PASSWORD);
  await page.locator("button[type=submit]").click();
  await page.waitForURL(/\/workspace/);
  await page.goto(`${ORIGIN}/workspace/chats/new`);
  await page.getByRole("textbox").first().fill("[[slow 40x10ms]][[hold 20 nginx]]");
  await page.keyboard.press("Enter");
  await page.getByText("tok10 ").first().waitFor();
  await gateway.release("nginx");
  await page.getByText("tok39").first().waitFor();
  assert.equal(new URL(page.url()).origin, ORIGIN);
});
