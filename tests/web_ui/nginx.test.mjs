// nginx in front of the UI and the gateway, with the configuration of deploy/nginx.ui.conf, and in front of the UI alone.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { startGateway, startNginx, startUi } from "./rig.mjs";

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
