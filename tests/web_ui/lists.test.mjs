// The lists of chats and agents and the files of a chat, as an administrator and as a user.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";

import { converse, newChat, notice, register, settled, startGateway, startUi, turn } from "./rig.mjs";

const PASSWORD = "correct horse 17 battery";
const OUTPUTS = "/mnt/user-data/outputs";

let gateway, ui, admin, person;
before(async () => {
  gateway = await startGateway({
    env: { DEER_FLOW_AUTH_DISABLED: "0" },
    config: (model) => `config_version: 34
models:
  - {name: fake, display_name: Fake, use: "langchain_openai:ChatOpenAI", model: scripted-1, api_key: none, base_url: "${model}", supports_thinking: true, supports_reasoning_effort: true}
  - {name: small, display_name: Small, use: "langchain_openai:ChatOpenAI", model: scripted-2, api_key: none, base_url: "${model}"}
tool_groups: [{name: files}]
tools: [{name: write_file, group: files, use: sandbox.write_file}]
sandbox: {use: local}
database: {backend: sqlite}
memory: {enabled: false}
agents_api: {enabled: true}
`,
  });
  ui = await startUi({ DEER_FLOW_AUTH_DISABLED: "0" });
  admin = await ui.open();
  await register(admin, ui.origin, "initialize", "ann@example.com", PASSWORD);
  person = await ui.open();
  await register(person, ui.origin, "register", "bob@example.com", PASSWORD);
});
after(async () => {
  await ui?.stop();
  await gateway?.stop();
});

/** Runs a test as both. */
const asBoth = (name, act) => {
  test(`${name}, as administrator`, () => act(admin));
  test(`${name}, as user`, () => act(person));
};

const idOf = (page) => new URL(page.url()).pathname.split("/").pop();

asBoth("a chat is pinned, renamed, exported, unpinned and deleted from the list", async (page) => {
  await newChat(page);
  await converse(page, "then say listed", "listed");
  const id = idOf(page);
  const row = page.locator(`li:has(a[href$="${id}"])`);
  const entry = async (name) => {
    await row.hover();
    await row.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name }).click();
  };
  await entry("Pin chat");
  await row.locator("svg.lucide-pin").waitFor();
  await entry("Rename");
  await page.getByRole("dialog").getByRole("textbox").fill("Tea & <milk>");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await row.getByText("Tea & <milk>").waitFor();
  await page.reload();
  await row.getByText("Tea & <milk>").waitFor();
  await row.locator("svg.lucide-pin").waitFor();

  await page.goto("/workspace/chats");
  await page.getByPlaceholder("Search chats").fill("tea &");
  await page.locator(`main a[href$="${id}"]`).click();
  await turn(page, "listed").waitFor();
  for (const [format, parse] of [["Markdown", String], ["JSON", JSON.parse]]) {
    await page.getByRole("button", { name: "Export" }).click();
    const saved = page.waitForEvent("download");
    await page.getByRole("menuitem", { name: `Export as ${format}` }).click();
    assert.match(JSON.stringify(parse(await readFile(await (await saved).path(), "utf8"))), /listed/);
  }
  await entry("Unpin chat");
  await row.locator("svg.lucide-pin").waitFor({ state: "detached" });
  await entry("Delete");
  await page.waitForURL(/chats\/new/);
  await row.waitFor({ state: "detached" });
});

asBoth("an agent is designed in a chat, configured, used and deleted", async (page) => {
  await page.goto("/workspace/agents");
  await page.getByRole("button", { name: "New Agent" }).first().click();
  const name = page.getByPlaceholder("e.g. code-reviewer");
  const proceed = page.getByRole("button", { name: "Continue" });
  await name.fill("no good!");
  await proceed.click();
  await page.getByText(/Invalid name/).waitFor();
  await name.fill("x".repeat(65));
  await proceed.click();
  await page.getByText(/at most 64 characters/).waitFor();
  await name.fill("Gardener");
  await settled(page, () => proceed.click());
  const soul = { soul: "You are a gardener.", description: "Grows plants" };
  await converse(page, `[[tool:setup_agent ${JSON.stringify(soul)}]] then say stored`, "stored");
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Save agent" }).click();
  await page.getByText("Agent created!").waitFor();
  await page.getByRole("button", { name: "Back to Gallery" }).click();

  const card = page.locator('[data-slot="card"]').filter({ hasText: "gardener" });
  await card.getByText("Grows plants").waitFor();
  await card.getByTitle("Model settings").click();
  const dialog = page.getByRole("dialog", { name: "Model settings" });
  const [temperature, tokens] = [dialog.locator("input").nth(0), dialog.locator("input").nth(1)];
  await temperature.fill("7");
  await dialog.getByRole("button", { name: "Save" }).click();
  await notice(page, "Temperature must be between");
  await temperature.fill("0.5");
  await tokens.fill("1000");
  const select = async (at, option) => {
    await dialog.getByRole("combobox").nth(at).click();
    await page.getByRole("option", { name: option }).click();
  };
  await select(1, "Off");
  await select(2, "high");
  await dialog.getByRole("button", { name: "Save" }).click();
  await notice(page, "Model settings saved");
  const stored = await page.request.get("/api/agents/gardener").then((answer) => answer.json());
  assert.deepEqual([stored.model_settings, stored.thinking_enabled, stored.reasoning_effort], [{ temperature: 0.5, max_tokens: 1000 }, false, "high"]);

  await card.getByRole("button", { name: "Chat" }).click();
  await page.waitForURL(/gardener\/chats\/new/);
  await converse(page, "then say grown", "grown");
  await page.reload();
  await turn(page, "grown").waitFor();
  await page.goto("/workspace/agents/new");
  await name.fill("GARDENER");
  await proceed.click();
  await page.getByText(/already exists/).waitFor();
  await page.goto("/workspace/agents");
  await card.getByTitle("Delete").click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await notice(page, "Agent deleted");
  await card.waitFor({ state: "detached" });
});

const write = (name, content) => `[[tool:write_file ${JSON.stringify({ description: "d", path: `${OUTPUTS}/${name}`, content })}]]`;
const present = (...names) => `[[tool:present_files ${JSON.stringify({ filepaths: names.map((name) => `${OUTPUTS}/${name}`) })}]]`;

asBoth("presented files are opened, edited and saved, but not over a newer version", async (page) => {
  await newChat(page);
  await converse(page, `${write("a.md", "# Title\n")} ${write("b.py", "print(1)\n")} ${present("a.md", "b.py")} then say presented`, "presented");
  const card = (name) => page.locator('[data-slot="card"]').filter({ hasText: name });
  const button = (name) => page.getByRole("button", { name, exact: true }).last();
  await card("a.md").click();
  await page.getByRole("heading", { name: "Title" }).waitFor();
  await card("b.py").click();
  await button("Edit").click();
  const editor = page.locator(".cm-content").last();
  const type = async (text) => {
    await editor.click();
    await page.keyboard.press("Control+a");
    await page.keyboard.type(text);
  };
  await type("print(2)");
  await button("Save").click();
  await notice(page, "Artifact saved");
  const file = `/api/threads/${idOf(page)}/artifacts${OUTPUTS}/b.py`;
  const read = await page.request.get(file);
  assert.equal(await read.text(), "print(2)");

  await type("print(3)");
  const token = (await page.context().cookies()).find((cookie) => cookie.name === "csrf_token").value;
  const data = { content: "print(9)", expected_sha256: read.headers().etag.replaceAll('"', "") };
  const other = await page.request.put(file, { data, headers: { "x-csrf-token": token, origin: ui.origin } });
  assert.equal(other.status(), 200);
  await button("Save").click();
  await notice(page, "This artifact changed after you started editing");
  assert.equal(await page.request.get(file).then((answer) => answer.text()), "print(9)");
});
