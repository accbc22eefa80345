// User actions on the page, checked through its elements.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";

import { startCutter } from "../sdk/js/cutter.mjs";
import { assertPrefixes, call, counted, startChat } from "./chat.mjs";
import { startSite } from "./site.mjs";

let chat, gateway, open, addressOf, pausedAnswer, ended, get;
before(async () => {
  chat = await startChat();
  ({ gateway, open, addressOf, pausedAnswer, ended, get } = chat);
});
after(() => chat?.stop());
beforeEach(() => chat.openWindow());
afterEach(() => chat.closeWindow());

test("an answer is rendered while it is streamed", async () => {
  const tab = await open();
  const answer = pausedAnswer(30, 1);
  await tab.send(answer.words);
  await answer.releaseInSteps(1, [tab]);
  await tab.ends(counted(30));
  assert.deepEqual(await tab.visibleMessages(), [["human", answer.words], ["ai", counted(30)]]);
  assertPrefixes(await tab.drawn(), counted(30), 8);
  await tab.send("then say again");
  await tab.ends("again");
  assert.deepEqual((await tab.visibleMessages()).map(([type]) => type), ["human", "ai", "human", "ai"]);
});

test("a tool call is shown with its result", async () => {
  const tab = await open();
  await tab.send(`${call("bash", { command: "echo hi" })} then say bye`);
  await tab.ends("bye");
  assert.deepEqual((await tab.visibleMessages()).slice(1), [["ai", ""], ["tool", "hi"], ["ai", "bye"]]);
  assert.deepEqual(await tab.page.locator("code").allTextContents(), ['bash {"command":"echo hi"}']);
});

test("a question is shown and answered, also after a reload", async () => {
  const tab = await open();
  await tab.send(`${call("ask_twice", { first: "which?", second: "sure?" })} then say thanks`);
  await tab.asked("which?");
  await tab.press("#answer", "red");
  await tab.asked("sure?");
  await tab.page.reload();
  await tab.asked("sure?");
  await tab.press("#answer", "yes");
  await tab.ends("thanks");
  assert.deepEqual((await tab.visibleMessages()).slice(-2), [["tool", '["red","yes"]'], ["ai", "thanks"]]);
  assert.equal(await tab.page.locator("aside").count(), 0);
});

test("the stop button cancels the run, and the thread accepts another message", async () => {
  const tab = await open();
  await tab.send("[[slow 1500x40ms]]");
  await tab.begun();
  await tab.press("#stop");
  await tab.page.locator('main[data-loading="false"]').waitFor();
  assert.equal(await ended(tab.thread()), "interrupted");
  await tab.send("then say on we go");
  await tab.ends("on we go");
});

test("a failed run shows its error", async () => {
  const tab = await open();
  await tab.send("[[error 500]]");
  await tab.page.locator("main[data-error]").waitFor();
  assert.equal(await ended(tab.thread()), "error");
});

test("a page that is reloaded during a run shows the whole answer", async () => {
  const tab = await open();
  const answer = pausedAnswer(80, 20);
  await tab.send(answer.words);
  await tab.begun();
  await tab.page.reload();
  await tab.begun();
  await tab.page.reload();
  await answer.releaseInSteps(20, [tab]);
  await tab.ends(counted(80));
  assert.deepEqual(await tab.visibleMessages(), [["human", answer.words], ["ai", counted(80)]]);
  assertPrefixes(await tab.drawn(), counted(80), 8);
  assert.equal((await get(`/threads/${tab.thread()}/runs`)).length, 1);
});

test("the address of DeerFlow's web UI serves the same page", async () => {
  const tab = await open(addressOf({ api: `${gateway.origin}/api/langgraph`, assistant: "lead_agent", deerflow: "" }));
  const answer = pausedAnswer(80, 20);
  await tab.send(answer.words);
  await tab.begun();
  await tab.page.reload();
  await answer.releaseInSteps(20, [tab]);
  await tab.ends(counted(80));
  assertPrefixes(await tab.drawn(), counted(80), 8);
  await tab.send("then say again");
  await tab.ends("again");
  assert.deepEqual((await tab.visibleMessages()).map(([type]) => type), ["human", "ai", "human", "ai"]);
});

test("a second tab shows the active run", async () => {
  const first = await open(addressOf({ shared: "" }));
  const answer = pausedAnswer(60, 20);
  await first.send(answer.words);
  await first.begun();
  const second = await open(first.page.url());
  await answer.releaseInSteps(20, [first, second]);
  for (const tab of [first, second]) {
    await tab.ends(counted(60));
    assert.deepEqual(await tab.visibleMessages(), [["human", answer.words], ["ai", counted(60)]]);
    assertPrefixes(await tab.drawn(), counted(60), 8);
  }
});

test("a connection that breaks during a run is resumed", async () => {
  const cutter = await startCutter(gateway.port, [12, 9]);
  try {
    const tab = await open(addressOf({ api: cutter.origin }));
    const answer = pausedAnswer(60, 5);
    await tab.send(answer.words);
    await tab.shows(counted(5));
    // Both cuts happen before that point.
    await answer.release(30);
    await answer.releaseInSteps(30, [tab]);
    await tab.ends(counted(60));
    assertPrefixes(await tab.drawn(), counted(60), 8);
    const [first, ...later] = cutter.streams().filter(({ method }) => method !== "OPTIONS");
    assert.equal(first.method, "POST");
    assert.ok(later.length >= 1 && later.every(({ method, cursor }) => method === "GET" && cursor), JSON.stringify(later));
  } finally {
    cutter.stop();
  }
});

test("an edited message starts a branch, and the first branch can be selected again", async () => {
  const tab = await open();
  await tab.send("one then say first");
  await tab.ends("first");
  await tab.send("two then say second");
  await tab.ends("second");
  await tab.page.fill("#words", "one then say another");
  await tab.page.locator(".edit").first().click();
  await tab.ends("another");
  assert.deepEqual(await tab.visibleMessages(), [["human", "one then say another"], ["ai", "another"]]);
  await tab.page.locator(".other").first().click();
  await tab.ends("second");
  assert.deepEqual((await tab.visibleMessages()).map(([, text]) => text), ["one then say first", "first", "two then say second", "second"]);
});

test("a page of an origin that is not allowed cannot read responses", async () => {
  const stranger = await startSite();
  try {
    const page = await chat.newPage();
    await page.goto(stranger.origin);
    const reads = (path) => page.evaluate((url) => fetch(url).then(() => true, () => false), gateway.origin + path);
    assert.deepEqual([await reads("/ok"), await reads("/openapi.json")], [false, false]);
  } finally {
    stranger.stop();
  }
});
