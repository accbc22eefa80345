// User actions on the page, checked through its elements.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, afterEach, before, beforeEach, test } from "node:test";

import { chromium } from "playwright-core";

import { startCutter } from "../sdk/js/cutter.mjs";
import { start } from "../sdk/js/rig.mjs";
import { startSite } from "./site.mjs";

const TIMEOUT = 30_000;
const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const config = (baseUrl) => `models:
  - name: scripted
    use: langchain_openai:ChatOpenAI
    model: scripted-1
    api_key: none
    base_url: ${baseUrl}
testing:
  conformance_agent: true
`;

const counted = (pieces) => Array.from({ length: pieces }, (_, n) => `tok${n} `).join("");
const call = (name, args) => `[[tool:${name} ${JSON.stringify(args)}]]`;

/** Prompt of an answer of `pieces` words that pauses after `after` words. `release` continues it to its end, or up to the given word. */
function pausedAnswer(pieces, after) {
  const word = randomUUID().slice(0, 8);
  return { words: `[[slow ${pieces}x10ms]][[hold ${after} ${word}]]`, release: (to) => gateway.release(word, to) };
}

/** Releases a paused answer word by word, each when all tabs show the one before, and then to its end. */
async function releaseInSteps(answer, from, tabs, steps = 8) {
  for (let shown = from; shown < from + steps; shown++) {
    for (const tab of tabs) await tab.shows(counted(shown));
    await answer.release(shown + 1);
  }
  for (const tab of tabs) await tab.shows(counted(from + steps));
  await answer.release();
}

let site, gateway, browser, context;
before(async () => {
  site = await startSite();
  gateway = await start({ config, env: { GATEWAY_CORS_ORIGINS: site.origin } });
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ARGUMENTS });
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
  site?.stop();
});
beforeEach(async () => (context = await browser.newContext()));
afterEach(() => context.close());

const addressOf = (api, more = {}) => `${site.origin}/?${new URLSearchParams({ api, assistant: "conformance", ...more })}`;

/** Opens a tab with the chat, and returns the user's actions in it. */
async function open(address = addressOf(gateway.origin)) {
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT);
  await page.goto(address);
  await page.locator("#words").waitFor();
  const press = async (selector, words) => {
    if (words !== undefined) await page.fill("#words", words);
    await page.click(selector);
  };
  const messages = page.locator("li");
  /** Waits until the last message has this text. A tab in the background renders no frames, so the condition is polled. */
  const shows = (text) =>
    page.waitForFunction((text) => document.querySelector("li:last-child p")?.textContent === text, text, { polling: 20 });
  return {
    page,
    press,
    send: (words) => press("#send", words),
    shows,
    /** Waits until the last message has this text and no run is active. */
    ends: async (text) => {
      await shows(text);
      await page.locator('main[data-loading="false"]').waitFor();
      assert.equal(await page.locator("main").getAttribute("data-error"), null);
    },
    begun: () => page.waitForFunction(() => document.querySelector("li:last-child p")?.textContent.startsWith("tok0 tok1 tok2 ")),
    /** Returns the type and text of every message. */
    visibleMessages: () => messages.evaluateAll((all) => all.map((one) => [one.dataset.type, one.querySelector("p").textContent])),
    drawn: () => page.evaluate(() => [...new Set(window.drawn)]),
  };
}

/** Asserts that each rendered text is a prefix of the whole text, so no word was missing, repeated or in another place. */
function assertPrefixes(drawn, whole, least) {
  for (const text of drawn) assert.ok(whole.startsWith(text), `${JSON.stringify(text)} was rendered`);
  assert.ok(drawn.length >= least, `only ${drawn.length} texts were rendered`);
}

const get = (path) => fetch(gateway.origin + path).then((answer) => answer.json());
const threadOf = (tab) => new URL(tab.page.url()).searchParams.get("thread");
/** Waits for the end of the thread's newest run and returns its status. */
async function ended(thread) {
  const [{ run_id: run }] = await get(`/threads/${thread}/runs`);
  await get(`/threads/${thread}/runs/${run}/join`);
  return (await get(`/threads/${thread}/runs/${run}`)).status;
}

test("an answer is rendered while it is streamed", async () => {
  const tab = await open();
  const answer = pausedAnswer(30, 1);
  await tab.send(answer.words);
  await releaseInSteps(answer, 1, [tab]);
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
  await tab.page.locator("aside", { hasText: "which?" }).waitFor();
  await tab.press("#answer", "red");
  await tab.page.locator("aside", { hasText: "sure?" }).waitFor();
  await tab.page.reload();
  await tab.page.locator("aside", { hasText: "sure?" }).waitFor();
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
  assert.equal(await ended(threadOf(tab)), "interrupted");
  await tab.send("then say on we go");
  await tab.ends("on we go");
});

test("a failed run shows its error", async () => {
  const tab = await open();
  await tab.send("[[error 500]]");
  await tab.page.locator("main[data-error]").waitFor();
  assert.equal(await ended(threadOf(tab)), "error");
});

test("a page that is reloaded during a run shows the whole answer", async () => {
  const tab = await open();
  const answer = pausedAnswer(80, 20);
  await tab.send(answer.words);
  await tab.begun();
  await tab.page.reload();
  await tab.begun();
  await tab.page.reload();
  await releaseInSteps(answer, 20, [tab]);
  await tab.ends(counted(80));
  assert.deepEqual(await tab.visibleMessages(), [["human", answer.words], ["ai", counted(80)]]);
  assertPrefixes(await tab.drawn(), counted(80), 8);
  assert.equal((await get(`/threads/${threadOf(tab)}/runs`)).length, 1);
});

test("the address of DeerFlow's web UI serves the same page", async () => {
  const tab = await open(addressOf(`${gateway.origin}/api/langgraph`, { assistant: "lead_agent", deerflow: "" }));
  const answer = pausedAnswer(80, 20);
  await tab.send(answer.words);
  await tab.begun();
  await tab.page.reload();
  await releaseInSteps(answer, 20, [tab]);
  await tab.ends(counted(80));
  assertPrefixes(await tab.drawn(), counted(80), 8);
  await tab.send("then say again");
  await tab.ends("again");
  assert.deepEqual((await tab.visibleMessages()).map(([type]) => type), ["human", "ai", "human", "ai"]);
});

test("a second tab shows the active run", async () => {
  const first = await open(addressOf(gateway.origin, { shared: "" }));
  const answer = pausedAnswer(60, 20);
  await first.send(answer.words);
  await first.begun();
  const second = await open(first.page.url());
  await releaseInSteps(answer, 20, [first, second]);
  for (const tab of [first, second]) {
    await tab.ends(counted(60));
    assert.deepEqual(await tab.visibleMessages(), [["human", answer.words], ["ai", counted(60)]]);
    assertPrefixes(await tab.drawn(), counted(60), 8);
  }
});

test("a connection that breaks during a run is resumed", async () => {
  const cutter = await startCutter(gateway.port, [12, 9]);
  try {
    const tab = await open(addressOf(cutter.origin));
    const answer = pausedAnswer(60, 5);
    await tab.send(answer.words);
    await tab.shows(counted(5));
    // Both cuts happen before that point.
    await answer.release(30);
    await releaseInSteps(answer, 30, [tab]);
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
    const page = await context.newPage();
    await page.goto(stranger.origin);
    const reads = (path) => page.evaluate((url) => fetch(url).then(() => true, () => false), gateway.origin + path);
    assert.deepEqual([await reads("/ok"), await reads("/openapi.json")], [false, false]);
  } finally {
    stranger.stop();
  }
});
