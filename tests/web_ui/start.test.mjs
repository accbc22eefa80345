// `make ui` and `make stop`: the UI, the gateway and nginx as processes of this machine.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { until } from "./rig.mjs";

const SCRIPT = fileURLToPath(new URL("../../deploy/ui.sh", import.meta.url));
const { DEERFLOW_BIN_DIR, UI, UI_GATEWAY_PORT, UI_PORT } = process.env;
const PORT = 2129;
const ORIGIN = `http://localhost:${PORT}`;

let home;
before(async () => {
  home = await mkdtemp(path.join(os.tmpdir(), "deerflow-ui-"));
  await writeFile(path.join(home, "config.yaml"), "config_version: 34\nmodels: [{name: scripted, use: scripted, model: scripted}]\n");
});
after(() => rm(home, { recursive: true }));

function run(command) {
  const env = { ...process.env, UI, PORT, UI_PORT, GATEWAY_PORT: UI_GATEWAY_PORT, DEERFLOW_BIN: path.join(DEERFLOW_BIN_DIR, "deerflow"), DEER_FLOW_HOME: path.join(home, "data") };
  return spawn(SCRIPT, [command], { cwd: home, env, stdio: "ignore" });
}

const isUp = (port) => fetch(`http://127.0.0.1:${port}/`).then(() => true, () => false);

test("one address serves pages and the API, a second start is refused, and stop ends all processes", async () => {
  const started = run("start");
  const ended = once(started, "exit");
  await until(() => fetch(`${ORIGIN}/workspace`).then((answer) => answer.ok, () => false), "the UI");
  const status = await fetch(`${ORIGIN}/api/v1/auth/setup-status`).then((answer) => answer.json());
  assert.equal(status.needs_setup, true);
  const page = await fetch(`${ORIGIN}/workspace`);
  assert.equal(new URL(page.url).pathname, "/setup");
  const account = { email: "ann@example.com", password: "correct horse 17 battery" };
  const created = await fetch(`${ORIGIN}/api/v1/auth/initialize`, { method: "POST", headers: { origin: ORIGIN, "content-type": "application/json" }, body: JSON.stringify(account) });
  assert.equal(created.status, 201);

  const [refused] = await once(run("start"), "exit");
  assert.equal(refused, 1);
  const [stopped] = await once(run("stop"), "exit");
  assert.equal(stopped, 0);
  await ended;
  for (const port of [PORT, UI_PORT, UI_GATEWAY_PORT]) assert.equal(await isUp(port), false, `port ${port}`);
});
