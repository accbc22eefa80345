// A chat in the UI whose own server passes requests on to the gateway.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { startGateway, startUi } from "./rig.mjs";

let gateway, ui;
before(async () => {
  gateway = await startGateway();
  ui = await startUi({ DEER_FLOW_AUTH_DISABLED: "1" });
});
after(async () => {
  await ui?.stop();
  await gateway?.stop();
});

test("text appears while the answer is written, and a reload shows all of it", async () => {
  const page = await ui.open();
  await page.goto("/workspace/chats/new");
  await page.getByRole("textbox").first().fill("[[slow 40x10ms]][[hold 20 live]]");
  await page.keyboard.press("Enter");
  // The model waits after 20 words until it is released: what is visible was streamed.
  await page.getByText("tok10 ").first().waitFor();
  await gateway.release("live");
  await page.getByText("tok39").first().waitFor();
  await page.reload();
  const answers = page.getByText("tok39");
  await answers.first().waitFor();
  assert.equal(await answers.count(), 1);
});
