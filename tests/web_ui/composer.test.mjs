// The composer: modes, models, commands, skills, uploads, and the rewriting of drafts.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { converse, failuresOf, newChat, notice, settled, startGateway, startUi, turn } from "./rig.mjs";

let gateway, ui;
before(async () => {
  gateway = await startGateway({
    config: (model) => `config_version: 34
models:
  - {name: fake, display_name: Fake, use: "langchain_openai:ChatOpenAI", model: scripted-1, api_key: none, base_url: "${model}", supports_thinking: true, supports_reasoning_effort: true}
  - {name: small, display_name: Small, use: "langchain_openai:ChatOpenAI", model: scripted-2, api_key: none, base_url: "${model}"}
database: {backend: sqlite}
memory: {enabled: false}
summarization: {enabled: true, trigger: {type: messages, value: 100}, keep: {type: messages, value: 2}}
`,
  });
  ui = await startUi({ DEER_FLOW_AUTH_DISABLED: "1" });
});
after(async () => {
  await ui?.stop();
  await gateway?.stop();
});

/** Chooses an entry of the menu with a name. Its entries do not close it. */
async function choose(page, menu, entry) {
  await page.getByRole("button", { name: menu }).first().click();
  await page.getByRole("menuitem", { name: new RegExp(`^${entry}`) }).click();
  await page.keyboard.press("Escape");
  await page.getByRole("menu").waitFor({ state: "detached" });
}

const MODE = /^(Flash|Reasoning|Pro|Ultra)$/;

test("every mode, effort and model starts a run", async () => {
  const page = await ui.open();
  const failures = failuresOf(page);
  for (const mode of ["Flash", "Reasoning", "Pro", "Ultra"]) {
    await newChat(page);
    await choose(page, MODE, mode);
    await converse(page, `[[think thought]] then say in ${mode}`, `in ${mode}`);
  }
  await choose(page, /Reasoning Effort/, "Low");
  await converse(page, "then say with effort", "with effort");
  await page.getByRole("button", { name: "Fake", exact: true }).click();
  await page.getByRole("option", { name: /Small/ }).click();
  await converse(page, "then say smaller", "smaller");
  assert.deepEqual(failures, []);
});

test("todos of the agent stay above the composer after a reload", async () => {
  const page = await ui.open();
  await newChat(page);
  await choose(page, MODE, "Pro");
  const todos = [{ content: "Boil water", status: "in_progress" }, { content: "Pour", status: "pending" }];
  await converse(page, `[[tool:write_todos ${JSON.stringify({ todos })}]] then say planned`, "planned");
  await page.reload();
  await turn(page, "planned").last().waitFor();
  await page.getByText("Boil water").first().waitFor();
});

test("a draft is rewritten, and the old one comes back", async () => {
  const page = await ui.open();
  const composer = await newChat(page);
  await composer.fill("pls help");
  await page.getByTestId("polish-input-button").click();
  const undo = page.getByRole("button", { name: "Undo polish" });
  await undo.waitFor();
  assert.match(await composer.inputValue(), /^Echo: /);
  await undo.click();
  assert.equal(await composer.inputValue(), "pls help");
});

/** Sends a command without the list of skills, and waits for the notice with its result. */
async function command(page, composer, text, result) {
  await composer.fill(text);
  await page.keyboard.press("Escape");
  await composer.press("Enter");
  await notice(page, result);
}

test("a goal is set, shown and cleared, and one that is too long is refused", async () => {
  const page = await ui.open();
  const composer = await newChat(page);
  await command(page, composer, "/goal", "No active goal.");
  await settled(page, () => command(page, composer, "/goal make tea", "Goal set."));
  await command(page, composer, "/goal", "Active goal: make tea");
  await command(page, composer, "/goal clear", "Goal cleared.");
  await command(page, composer, `/goal ${"x".repeat(4_001)}`, "Goal is too long");
});

test("the context is compacted while the chat shows all messages", async () => {
  const page = await ui.open();
  const composer = await newChat(page);
  for (const n of [0, 1, 2, 3]) await converse(page, `then say answer${n}`, `answer${n}`);
  await command(page, composer, "/compact", "Earlier context compacted");
  await page.reload();
  await turn(page, "answer3").waitFor();
  assert.equal(await turn(page, "answer0").count(), 1);
  await converse(page, "then say later", "later");
});

test("a skill is chosen from the list, removed, chosen again and sent", async () => {
  const page = await ui.open();
  const composer = await newChat(page);
  await composer.pressSequentially("/deep");
  const skill = page.getByRole("listbox", { name: "Skill suggestions" }).getByRole("option").first();
  await skill.click();
  await page.getByRole("button", { name: /^Remove \/deep/ }).click();
  await composer.pressSequentially("/deep");
  await skill.click();
  await page.keyboard.type("then say researched");
  await settled(page, () => page.keyboard.press("Enter"));
  await turn(page, "researched").waitFor();
  await page.reload();
  await page.locator(".is-user").getByText("deep-research").waitFor();
});

test("files are attached, removed, uploaded and shown again after a reload", async () => {
  const page = await ui.open();
  await newChat(page);
  const file = (name, mimeType, content) => ({ name, mimeType, buffer: Buffer.from(content) });
  await page.locator('input[type="file"]').first().setInputFiles([file("note.txt", "text/plain", "hello"), file("drop.csv", "text/csv", "a,b")]);
  await page.getByText("drop.csv").first().hover();
  await page.getByRole("button", { name: /remove/i }).last().click({ force: true });
  await converse(page, "then say received", "received");
  await page.reload();
  await page.getByText("note.txt").first().waitFor();
  assert.equal(await page.getByText("drop.csv").count(), 0);

  await newChat(page);
  await page.locator('input[type="file"]').first().setInputFiles(Array.from({ length: 12 }, (_, n) => file(`f${n}.txt`, "text/plain", "x")));
  await notice(page, "You can attach up to 10 files");
});

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

test("an attached image shows although its thread does not exist yet", async () => {
  const page = await ui.open();
  const failures = failuresOf(page);
  await newChat(page);
  const read = page.waitForResponse((response) => response.url().includes("/uploads/dot.png"));
  await page.route("**/api/langgraph/threads", async (route) => {
    await read;
    await route.continue();
  });
  await page.locator('input[type="file"]').first().setInputFiles([{ name: "dot.png", mimeType: "image/png", buffer: Buffer.from(PIXEL, "base64") }]);
  await page.getByText("dot.png").first().waitFor();
  await converse(page, "then say seen", "seen");
  assert.equal((await read).status(), 200);
  assert.deepEqual(failures, []);
});
