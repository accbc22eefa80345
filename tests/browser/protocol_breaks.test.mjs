// The page with the streaming protocol, when connections break or are slow, and when the gateway is killed.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";

import { startCutter } from "../sdk/js/cutter.mjs";
import { assertPrefixes, counted, startChat } from "./chat.mjs";

/** Odd sizes, so that pieces begin and end in the middle of names, numbers and characters of several bytes. */
const SLOW = { sizes: [1, 7, 3, 251, 61, 2, 509], every: 1 };

let chat, gateway, open, addressOf, pausedAnswer, ended, get, assertIsThread;
before(async () => {
  chat = await startChat();
  ({ gateway, open, addressOf, pausedAnswer, ended, get, assertIsThread } = chat);
});
after(() => chat?.stop());
beforeEach(() => chat.openWindow());
afterEach(() => chat.closeWindow());

for (const transport of ["sse", "websocket"]) {
  describe(transport, () => {
    for (const [speed, slow] of [["", undefined], ["slow ", SLOW]]) {
      test(`${speed}connections that break in the middle of a word lose and repeat nothing`, async () => {
        const cutter = await startCutter(gateway.port, [], slow);
        try {
          const tab = await open(addressOf({ transport, api: cutter.origin }));
          const answer = pausedAnswer(60, 5);
          await tab.send(answer.words);
          for (const [shown, events] of [[5, 0.9], [10, 2.6], [15, 1.2]]) {
            await tab.shows(counted(shown));
            cutter.cutAfter(events);
            await answer.release(shown + 5);
          }
          await answer.releaseInSteps(20, [tab]);
          await tab.ends(counted(60));
          assert.deepEqual(await tab.visibleMessages(), [["human", answer.words], ["ai", counted(60)]]);
          assertPrefixes(await tab.drawn(), counted(60), 8);
          await assertIsThread(tab);
          const streams = cutter.streams().filter(({ method }) => method !== "OPTIONS");
          assert.ok(streams.length >= 4, JSON.stringify(streams));
          await tab.send("then say Größe 漢字 🦌");
          await tab.ends("Größe 漢字 🦌");
          await assertIsThread(tab);
        } finally {
          cutter.stop();
        }
      });
    }

    test("a gateway that is killed during a run continues it, and the page shows the whole answer", async () => {
      const tab = await open(addressOf({ transport }));
      const answer = pausedAnswer(60, 10);
      await tab.send(answer.words);
      await tab.shows(counted(10));
      await gateway.restart();
      await answer.release(30);
      await tab.shows(counted(30));
      await answer.release();
      await tab.answered(counted(60));
      assertPrefixes(await tab.drawn(), counted(60), 3);
      // The second attempt has a message of its own. The hook shows the text of the first one, too, until the page is reloaded.
      await tab.page.reload();
      await tab.ends(counted(60));
      await assertIsThread(tab);
      assert.equal((await get(`/threads/${tab.thread()}/runs`)).length, 1);
      assert.equal(await ended(tab.thread()), "success");
      await tab.send("then say again");
      await tab.ends("again");
      await assertIsThread(tab);
    });
  });
}
