// The buttons of messages: copy, regenerate, edit, stop; questions of the agent; the side chat.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { converse, failuresOf, newChat, notice, say, settled, startGateway, startUi, turn, until } from "./rig.mjs";

let gateway, ui;
before(async () => {
  gateway = await startGateway();
  ui = await startUi({ DEER_FLOW_AUTH_DISABLED: "1" });
});
after(async () => {
  await ui?.stop();
  await gateway?.stop();
});

const questions = (page) => page.locator(".is-user");

test("an answer and its question are copied", async () => {
  const page = await ui.open();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
  await newChat(page);
  await converse(page, "then say copied", "copied");
  await turn(page, "copied").hover();
  await turn(page, "copied").getByRole("button", { name: /copy/i }).click();
  assert.equal(await clipboard(), "copied");
  await questions(page).hover();
  await questions(page).getByRole("button", { name: /copy/i }).click();
  assert.equal(await clipboard(), "then say copied");
});

test("the last answer is regenerated, its question edited, and a reload shows the same", async () => {
  const page = await ui.open();
  const failures = failuresOf(page);
  await newChat(page);
  await converse(page, "then say first", "first");
  await converse(page, "then say second", "second");
  assert.equal(await turn(page, "first").getByRole("button", { name: "Regenerate" }).count(), 0);
  for (let n = 0; n < 2; n++) {
    await turn(page, "second").hover();
    await settled(page, () => turn(page, "second").getByRole("button", { name: "Regenerate" }).click());
  }
  await page.reload();
  await turn(page, "second").waitFor();
  assert.deepEqual([await turn(page, "second").count(), await questions(page).count()], [1, 2]);

  await questions(page).last().hover();
  await questions(page).last().getByRole("button", { name: "Edit and rerun" }).click();
  await questions(page).last().locator("textarea").fill("then say third");
  await settled(page, () => page.getByRole("button", { name: "Update and rerun" }).click());
  await turn(page, "third").waitFor();
  await page.reload();
  await turn(page, "third").waitFor();
  assert.deepEqual([await turn(page, "second").count(), await questions(page).count()], [0, 2]);
  assert.deepEqual(failures, []);
});

test("a stopped answer stays, and the chat continues", async () => {
  const page = await ui.open();
  await newChat(page);
  await say(page, "[[slow 40x10ms]][[hold 20 stopped]]");
  await page.getByText("tok10 ").first().waitFor();
  const stop = page.locator("button:has(svg.lucide-square)");
  await stop.click();
  await stop.waitFor({ state: "detached" });
  await page.reload();
  await turn(page, "tok10 ").waitFor();
  assert.equal(await page.getByText("tok39").count(), 0);
  await converse(page, "then say continued", "continued");
});

test("the failure of a model is a text in the chat, and the chat continues", async () => {
  const page = await ui.open();
  await newChat(page);
  await settled(page, () => say(page, "[[error 400]]"));
  await turn(page, "scripted error 400").waitFor();
  await page.reload();
  await turn(page, "scripted error 400").waitFor();
  await converse(page, "then say recovered", "recovered");
});

const ask = (question) => `[[tool:ask_clarification ${JSON.stringify(question)}]] then say never`;

test("a question of the agent is answered by its buttons, also with a choice", async () => {
  const page = await ui.open();
  await newChat(page);
  await settled(page, () => say(page, ask({ question: "Tea or milk?", clarification_type: "approach_choice", options: ["then say tea chosen", "milk"] })));
  await settled(page, () => page.getByRole("button", { name: /tea chosen/ }).click());
  await turn(page, "tea chosen").last().waitFor();
  await page.reload();
  await page.getByText(/^Answered/).first().waitFor();
  assert.equal(await page.getByText("never", { exact: true }).count(), 0);
});

test("a form with all kinds of fields is required, filled in and sent", async () => {
  const page = await ui.open();
  await newChat(page);
  const fields = [
    { name: "name", label: "Name", type: "text", required: true },
    { name: "note", label: "Note", type: "textarea" },
    { name: "count", label: "Count", type: "number" },
    { name: "pick", label: "Pick", type: "select", options: ["a", "b"] },
    { name: "many", label: "Many", type: "multi_select", options: ["x", "y"] },
    { name: "agree", label: "Agree", type: "checkbox" },
    { name: "day", label: "Day", type: "date" },
  ];
  await settled(page, () => say(page, ask({ question: "Details?", clarification_type: "missing_info", fields })));
  const form = page.locator("form").filter({ hasText: "Agree" }).first();
  const submit = form.getByRole("button", { name: "Submit" });
  await submit.click();
  await form.getByText(/required fields/).waitFor();
  await form.locator("input[type=text]").fill("Bob");
  await form.locator("textarea").fill("n");
  await form.locator("input[type=number]").fill("3");
  await form.getByRole("button", { name: "y", exact: true }).click();
  await form.locator("input[type=checkbox]").check();
  await form.locator("input[type=date]").fill("2026-05-01");
  await settled(page, () => submit.click());
  for (const value of [/Name: Bob/, /Count: 3/, /Many: y/, /Agree: yes/, /Day: 2026-05-01/]) await turn(page, value).last().waitFor();
});

test("a side chat about a selected text is kept with its chat and deleted", async () => {
  const page = await ui.open();
  await newChat(page);
  await converse(page, "then say selectable", "selectable");
  // Scrolling removes the selection and its buttons.
  const choose = async (name) => {
    const button = page.getByRole("button", { name });
    const selected = async () => {
      await turn(page, "selectable").getByText("selectable", { exact: true }).click({ clickCount: 3 });
      return button.waitFor({ timeout: 1_000 }).then(() => button.click({ timeout: 1_000 })).then(() => true, () => false);
    };
    await until(selected, name);
  };
  await choose("Add to conversation");
  await page.getByTestId("conversation-quote-attachment").waitFor();
  await converse(page, "then say quoted", "quoted");
  await choose("Ask in side chat");
  const panel = page.getByTestId("sidecar-panel");
  await panel.locator("textarea").fill("then say aside");
  await settled(page, () => panel.locator("textarea").press("Enter"));
  await turn(panel, "aside").waitFor();
  await panel.getByTestId("sidecar-close-button").click();

  await page.reload();
  await page.getByRole("button", { name: "Open side chat" }).click();
  await turn(panel, "aside").waitFor();
  await panel.getByTestId("sidecar-delete-button").click();
  await page.getByTestId("sidecar-delete-confirm-button").click();
  await notice(page, "Side chat deleted");
});

test("a chat with many turns shows its newest ones, and older ones on the way up", async () => {
  const post = (path, body) => fetch(`${gateway.origin}/api/threads${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const { thread_id: thread } = await post("", {}).then((answer) => answer.json());
  for (let n = 0; n < 40; n++) {
    const answer = await post(`/${thread}/runs/wait`, { assistant_id: "lead_agent", input: { messages: [{ type: "human", content: `then say answer ${n}` }] } });
    assert.equal(answer.status, 200, await answer.clone().text());
  }
  const page = await ui.open();
  await page.goto(`/workspace/chats/${thread}`);
  await page.getByText("answer 39", { exact: true }).waitFor();
  const oldest = page.getByTestId("main-message-list").getByText("then say answer 0", { exact: true });
  await page.mouse.move(700, 300);
  await until(async () => {
    await page.mouse.wheel(0, -20_000);
    return oldest.isVisible();
  }, "the oldest turn");
});
