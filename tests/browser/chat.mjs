// The page in a browser, with a gateway behind it: the user's actions, and waiting for their results.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { chromium } from "playwright-core";

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

/** Starts a browser. */
export const startBrowser = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ARGUMENTS });

export const counted = (pieces) => Array.from({ length: pieces }, (_, n) => `tok${n} `).join("");
export const call = (name, args) => `[[tool:${name} ${JSON.stringify(args)}]]`;

const textOf = (content) => (typeof content === "string" ? content : content.map(({ text }) => text ?? "").join(""));

/** Asserts that each rendered text is a prefix of the whole text, so no word was missing, repeated or in another place. */
export function assertPrefixes(drawn, whole, least) {
  for (const text of drawn) assert.ok(whole.startsWith(text), `${JSON.stringify(text)} was rendered`);
  assert.ok(drawn.length >= least, `only ${drawn.length} texts were rendered`);
}

/** Returns the user's actions on a page that shows the chat. */
function tabOf(page) {
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
    /** Waits until some message has this text and no run is active. */
    answered: async (text) => {
      await page.waitForFunction((text) => [...document.querySelectorAll("li p")].some((one) => one.textContent === text), text, { polling: 20 });
      await page.locator('main[data-loading="false"]').waitFor();
    },
    begun: () => page.waitForFunction(() => document.querySelector("li:last-child p")?.textContent.startsWith("tok0 tok1 tok2 ")),
    /** Waits until a question is shown and no run is active. */
    asked: async (question) => {
      await page.locator("aside", { hasText: question }).waitFor();
      await page.locator('main[data-loading="false"]').waitFor();
    },
    /** Returns the type and text of every message. */
    visibleMessages: () => messages.evaluateAll((all) => all.map((one) => [one.dataset.type, one.querySelector("p").textContent])),
    drawn: () => page.evaluate(() => [...new Set(window.drawn)]),
    thread: () => new URL(page.url()).searchParams.get("thread"),
  };
}

/** Starts the page's site, a gateway and a browser; `stop` ends them. Each test opens its tabs in a window of its own. */
export async function startChat() {
  const stops = [];
  const stop = () => Promise.all(stops.map((stop) => stop()));
  try {
    const browser = await startBrowser();
    stops.push(() => browser.close());
    const site = await startSite();
    stops.push(site.stop);
    const gateway = await start({ config, env: { GATEWAY_CORS_ORIGINS: site.origin } });
    stops.push(gateway.stop);
    return { ...chatOf(site, gateway, browser), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function chatOf(site, gateway, browser) {
  let context;

  const addressOf = (parameters) => `${site.origin}/?${new URLSearchParams({ api: gateway.origin, assistant: "conformance", ...parameters })}`;
  const get = (path) => fetch(gateway.origin + path).then((answer) => answer.json());
  return {
    gateway,
    addressOf,
    get,
    openWindow: async () => (context = await browser.newContext()),
    closeWindow: () => context.close(),
    newPage: () => context.newPage(),
    /** Opens a tab with the chat, and returns the user's actions in it. */
    open: async (address = addressOf()) => {
      const page = await context.newPage();
      page.setDefaultTimeout(TIMEOUT);
      await page.goto(address);
      await page.locator("#words").waitFor();
      return tabOf(page);
    },
    /** Prompt of an answer of `pieces` words that pauses after `after` words. `release` continues it to its end, or up to the given word. */
    pausedAnswer: (pieces, after) => {
      const word = randomUUID().slice(0, 8);
      const release = (to) => gateway.release(word, to);
      return {
        words: `[[slow ${pieces}x10ms]][[hold ${after} ${word}]]`,
        release,
        /** Releases word by word, each when all tabs show the one before, and then to the end. */
        releaseInSteps: async (from, tabs, steps = 8) => {
          for (let shown = from; shown < from + steps; shown++) {
            for (const tab of tabs) await tab.shows(counted(shown));
            await release(shown + 1);
          }
          for (const tab of tabs) await tab.shows(counted(from + steps));
          await release();
        },
      };
    },
    /** Asserts that a page shows what the thread's state has. */
    assertIsThread: async (tab) => {
      const { values } = await get(`/threads/${tab.thread()}/state`);
      assert.deepEqual(await tab.visibleMessages(), values.messages.map(({ type, content }) => [type, textOf(content)]));
    },
    /** Waits for the end of the thread's newest run and returns its status. */
    ended: async (thread) => {
      const [{ run_id: run }] = await get(`/threads/${thread}/runs`);
      await get(`/threads/${thread}/runs/${run}/join`);
      return (await get(`/threads/${thread}/runs/${run}`)).status;
    },
  };
}
