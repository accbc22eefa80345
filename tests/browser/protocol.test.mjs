// User actions on the page with the hook of the streaming protocol, over both transports.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";

import { assertPrefixes, call, counted, startChat } from "./chat.mjs";

let chat, open, addressOf, pausedAnswer, ended, get, assertIsThread;
before(async () => {
  chat = await startChat();
  ({ open, addressOf, pausedAnswer, ended, get, assertIsThread } = chat);
});
after(() => chat?.stop());
beforeEach(() => chat.openWindow());
afterEach(() => chat.closeWindow());

for (const transport of ["sse", "websocket"]) {
  describe(transport, () => {
    const openChat = () => open(addressOf({ transport }));

    test("an answer is rendered while it is streamed", async () => {
      const tab = await openChat();
      const answer = pausedAnswer(30, 1);
      await tab.send(answer.words);
      await answer.releaseInSteps(1, [tab]);
      await tab.ends(counted(30));
      assert.deepEqual(await tab.visibleMessages(), [["human", answer.words], ["ai", counted(30)]]);
      assertPrefixes(await tab.drawn(), counted(30), 8);
      await assertIsThread(tab);
    });

    test("the page connects with this transport", async () => {
      const tab = await open();
      const sockets = [], streams = [];
      tab.page.on("websocket", (socket) => sockets.push(new URL(socket.url()).pathname));
      tab.page.on("request", (request) => streams.push(new URL(request.url()).pathname));
      await tab.press(`#to-${transport}`);
      await tab.send("then say hi");
      await tab.ends("hi");
      const path = `/threads/${tab.thread()}/stream/events`;
      assert.deepEqual([sockets.includes(path), streams.includes(path)], [transport === "websocket", transport === "sse"]);
    });

    test("a second message continues the thread, also after a reload", async () => {
      const tab = await openChat();
      for (const [words, reload] of [["one", false], ["two", false], ["three", true]]) {
        if (reload) {
          await tab.page.reload();
          await tab.ends("two");
          await assertIsThread(tab);
        }
        await tab.send(`then say ${words}`);
        await tab.ends(words);
      }
      await assertIsThread(tab);
      assert.deepEqual((await tab.visibleMessages()).map(([, text]) => text), ["then say one", "one", "then say two", "two", "then say three", "three"]);
      assert.equal((await get(`/threads/${tab.thread()}/runs`)).length, 3);
    });

    test("a tool call is shown with its result", async () => {
      const tab = await openChat();
      await tab.send(`${call("bash", { command: "echo hi" })} then say bye`);
      await tab.ends("bye");
      assert.deepEqual((await tab.visibleMessages()).slice(1), [["ai", ""], ["tool", "hi"], ["ai", "bye"]]);
      const shown = 'bash {"command":"echo hi"}';
      assert.deepEqual(await tab.page.locator("code").allTextContents(), [shown]);
      assert.deepEqual(await tab.page.locator('output[data-status="finished"]').allTextContents(), [shown]);
    });

    test("a question is shown and answered, also after a reload", async () => {
      const tab = await openChat();
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
      const tab = await openChat();
      await tab.send("[[slow 1500x40ms]]");
      await tab.begun();
      await tab.press("#stop");
      await tab.page.locator('main[data-loading="false"]').waitFor();
      assert.equal(await ended(tab.thread()), "interrupted");
      await tab.send("then say on we go");
      await tab.answered("on we go");
      // The hook shows the partial answer, which is not in the state, after the others until the page is reloaded.
      await tab.page.reload();
      await tab.ends("on we go");
      await assertIsThread(tab);
    });

    test("a failed run shows its error, and the thread accepts another message", async () => {
      const tab = await openChat();
      await tab.send("[[error 500]]");
      await tab.page.locator("main[data-error]").waitFor();
      assert.equal(await ended(tab.thread()), "error");
      await tab.send("then say again");
      await tab.ends("again");
    });

    test("a page that is reloaded during a run shows the whole answer", async () => {
      const tab = await openChat();
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

    test("a second tab shows the active run", async () => {
      const first = await openChat();
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

    test("an edited message starts a branch", async () => {
      const tab = await openChat();
      for (const words of ["first", "second"]) {
        await tab.send(`then say ${words}`);
        await tab.ends(words);
      }
      await tab.page.fill("#words", "then say another");
      await tab.page.locator(".edit").first().click();
      await tab.answered("another");
      // The hook shows the messages of the other branch, too, until the page is reloaded.
      await tab.page.reload();
      await tab.ends("another");
      assert.deepEqual(await tab.visibleMessages(), [["human", "then say another"], ["ai", "another"]]);
      await assertIsThread(tab);
    });
  });
}

test("a page that changes the protocol continues the thread", async () => {
  const tab = await open();
  const said = [];
  for (const [turn, one] of ["classic", "sse", "classic", "websocket", "sse", "websocket", "classic"].entries()) {
    await tab.press(`#to-${one}`);
    if (turn > 0) await tab.ends(said.at(-1)[1]);
    assert.deepEqual(await tab.visibleMessages(), said);
    await tab.send(`then say ${turn}`);
    await tab.ends(String(turn));
    said.push(["human", `then say ${turn}`], ["ai", String(turn)]);
    assert.deepEqual(await tab.visibleMessages(), said);
  }
  await assertIsThread(tab);
});

for (const [first, ...others] of [["classic", "sse", "classic", "websocket"], ["sse", "classic", "websocket"], ["websocket", "classic", "sse"]]) {
  test(`a page that changes from ${first} to ${others.join(" and ")} during a run shows the whole answer`, async () => {
    const tab = await open();
    await tab.press(`#to-${first}`);
    const answer = pausedAnswer(40, 10);
    await tab.send(answer.words);
    await tab.begun();
    for (const next of others) await tab.press(`#to-${next}`);
    await tab.begun();
    await answer.releaseInSteps(10, [tab]);
    await tab.ends(counted(40));
    await assertIsThread(tab);
    await tab.press("#to-classic");
    await tab.ends(counted(40));
    await tab.send("then say again");
    await tab.ends("again");
    assert.deepEqual((await tab.visibleMessages()).map(([, text]) => text), [answer.words, counted(40), "then say again", "again"]);
    await assertIsThread(tab);
  });
}

for (const [from, to] of [["classic", "sse"], ["classic", "websocket"], ["sse", "classic"], ["websocket", "classic"]]) {
  test(`questions that are asked on ${from} are answered on ${to}, and the other way around`, async () => {
    const tab = await open();
    await tab.press(`#to-${from}`);
    await tab.send(`${call("ask_twice", { first: "which?", second: "sure?" })} then say thanks`);
    await tab.asked("which?");
    await tab.press(`#to-${to}`);
    await tab.asked("which?");
    await tab.press("#answer", "red");
    await tab.asked("sure?");
    await tab.press(`#to-${from}`);
    await tab.asked("sure?");
    await tab.press("#answer", "yes");
    await tab.ends("thanks");
    assert.deepEqual((await tab.visibleMessages()).slice(-2), [["tool", '["red","yes"]'], ["ai", "thanks"]]);
    await assertIsThread(tab);
  });
}
