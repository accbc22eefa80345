// Turns of a chat: changed files, branches, and two tabs on one run.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { converse, failuresOf, say, startGateway, startUi, turn } from "./rig.mjs";

const REPORT = "/mnt/user-data/outputs/report.md";

let gateway, ui;
before(async () => {
  gateway = await startGateway();
  ui = await startUi({ DEER_FLOW_AUTH_DISABLED: "1" });
});
after(async () => {
  await ui?.stop();
  await gateway?.stop();
});

test("the files that a run changed appear with their diff, also after a reload", async () => {
  const page = await ui.open();
  await page.goto("/workspace/chats/new");
  const write = { description: "d", path: REPORT, content: "Ready\n" };
  await say(page, `[[tool:write_file ${JSON.stringify(write)}]] then say written`);
  await page.getByText("Edited 1 file").waitFor();
  await page.reload();
  await page.getByText("Edited 1 file").waitFor();
  await page.getByRole("button", { name: "View changes" }).click();
  await page.getByText("+Ready").waitFor();
});

test("a question is shown once although the model answers at once", async () => {
  for (let n = 0; n < 12; n++) {
    const page = await ui.open();
    await page.goto("/workspace/chats/new");
    await converse(page, `question${n} then say answer${n}`, `answer${n}`);
    const questions = page.locator(".is-user");
    assert.equal(await questions.count(), 1, `chat ${n}`);
    await page.reload();
    await turn(page, `answer${n}`).first().waitFor();
    assert.equal(await questions.count(), 1, `chat ${n} after a reload`);
    await page.context().close();
  }
});

test("a branch has the turns up to its message, and continues", async () => {
  const page = await ui.open();
  const failures = failuresOf(page);
  await page.goto("/workspace/chats/new");
  await converse(page, "then say alpha", "alpha");
  await converse(page, "then say beta", "beta");
  const original = page.url();
  await turn(page, "alpha").hover();
  await turn(page, "alpha").getByRole("button", { name: /branch conversation/i }).click();
  await page.waitForURL((url) => url.href !== original && /chats\/[0-9a-f-]{36}/.test(url.href));
  await turn(page, "alpha").waitFor();
  assert.equal(await turn(page, "beta").count(), 0);
  await page.reload();
  await turn(page, "alpha").waitFor();
  await converse(page, "then say gamma", "gamma");
  await page.reload();
  await turn(page, "gamma").waitFor();
  assert.equal(await turn(page, "alpha").count(), 1);
  await page.goto(original);
  await turn(page, "beta").waitFor();
  assert.equal(await turn(page, "gamma").count(), 0);
  assert.deepEqual(failures, [], "the UI also reads the changed files of copied turns");
});

test("a second tab on the thread shows the same run", async () => {
  const first = await ui.open();
  await first.goto("/workspace/chats/new");
  await say(first, "[[slow 40x10ms]][[hold 20 tabs]]");
  await first.getByText("tok10 ").first().waitFor();
  await first.waitForURL(/chats\/[0-9a-f-]{36}/);
  const second = await first.context().newPage();
  await second.goto(first.url());
  await second.getByText("[[hold 20 tabs]]", { exact: false }).first().waitFor();
  await gateway.release("tabs");
  await first.getByText("tok39").first().waitFor();
  await second.reload();
  await second.getByText("tok39").first().waitFor();
  assert.equal(await second.getByText("tok39").count(), 1);
});
