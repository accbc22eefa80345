// The settings pages as an administrator and as a user: each button does what it says, or a text says why not.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";

import { register, startGateway, startNginx, startUi } from "./rig.mjs";

const PASSWORD = "correct horse 17 battery";
const OTHER_PASSWORD = "staple 18 wrong battery";

// Without nginx, the UI's own routes of memory expect the gateway on port 8001.
const PORT = 2128;

let gateway, ui, nginx, admin, person;
before(async () => {
  gateway = await startGateway({
    env: { DEER_FLOW_AUTH_DISABLED: "0" },
    config: (model) => `config_version: 34
models: [{name: fake, use: "langchain_openai:ChatOpenAI", model: scripted-1, api_key: none, base_url: "${model}"}]
database: {backend: sqlite}
agents_api: {enabled: true}
`,
  });
  ui = await startUi({ DEER_FLOW_AUTH_DISABLED: "0" });
  nginx = await startNginx(PORT);
  admin = await ui.open(nginx.origin);
  await register(admin, nginx.origin, "initialize", "ann@example.com", PASSWORD);
  person = await ui.open(nginx.origin);
  await register(person, nginx.origin, "register", "bob@example.com", PASSWORD);
});
after(async () => {
  await nginx?.stop();
  await ui?.stop();
  await gateway?.stop();
});

/** Opens a page of the settings. */
async function settings(page, section) {
  await page.goto(`/workspace/chats/new?settings=${section}`);
  const dialog = page.getByRole("dialog", { name: "Settings" });
  await dialog.waitFor();
  return dialog;
}

test("the account page changes the password, and shows why it does not", async () => {
  const dialog = await settings(person, "account");
  await dialog.getByText("bob@example.com").waitFor();
  const [current, next, again] = ["Current password", "New password", "Confirm new password"].map((name) => dialog.getByPlaceholder(name, { exact: true }));
  const change = async (...values) => {
    for (const [field, value] of [current, next, again].map((field, n) => [field, values[n]])) await field.fill(value);
    await dialog.getByRole("button", { name: "Update Password" }).click();
  };
  await change("wrong password 1", OTHER_PASSWORD, OTHER_PASSWORD);
  await dialog.getByText(/incorrect/i).waitFor();
  await change(PASSWORD, "password1", "password1");
  await dialog.getByText(/common/i).waitFor();
  await change(PASSWORD, OTHER_PASSWORD, OTHER_PASSWORD);
  await dialog.getByText("Password changed successfully").waitFor();
  await dialog.getByRole("button", { name: "Sign Out" }).click();
  await person.waitForURL((url) => !url.pathname.startsWith("/workspace"));
  await person.goto("/login");
  await person.locator("#email").fill("bob@example.com");
  await person.locator("#password").fill(OTHER_PASSWORD);
  await person.locator("button[type=submit]").click();
  await person.waitForURL(/\/workspace/);
});

test("the integrations page says that Lark is not available", async () => {
  for (const page of [admin, person]) {
    const dialog = await settings(page, "integrations");
    await dialog.getByText("Lark / Feishu CLI").waitFor();
    assert.equal(await dialog.getByText(/failed|error 5|HTTP 5/i).count(), 0);
  }
  const dialog = await settings(admin, "integrations");
  await dialog.getByRole("button", { name: /install/i }).first().click();
  await admin.getByText(/not available on this server/).first().waitFor();
});

test("the memory page adds, edits, exports, clears and imports facts", async () => {
  const dialog = await settings(person, "memory");
  await dialog.getByRole("button", { name: "Add fact" }).click();
  const form = person.getByRole("dialog", { name: "Add memory fact" });
  await form.getByRole("textbox").first().fill("Likes green tea");
  await form.getByRole("button", { name: /save|add|create/i }).last().click();
  await dialog.getByText("Likes green tea").waitFor();

  const saved = person.waitForEvent("download");
  await dialog.getByRole("button", { name: "Export memory" }).click();
  const file = await (await saved).path();
  const exported = JSON.parse(await readFile(file, "utf8"));
  assert.deepEqual(exported.facts.map((fact) => [fact.content, fact.source]), [["Likes green tea", "manual"]]);

  await dialog.getByRole("button", { name: "Clear all memory" }).click();
  await person.getByRole("dialog", { name: "Clear all memory?" }).getByRole("button").filter({ hasText: /clear/i }).click();
  await dialog.getByText("Likes green tea").waitFor({ state: "detached" });

  await person.locator('input[type="file"][accept*="json"]').setInputFiles({ name: "memory.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(exported)) });
  await person.getByRole("dialog", { name: "Import memory?" }).getByRole("button", { name: /import/i }).click();
  await dialog.getByText("Likes green tea").waitFor();
});

test("skills are switched by administrators only", async () => {
  const skill = async (page) => {
    const dialog = await settings(page, "skills");
    const row = dialog.locator('[data-slot="item"]', { hasText: "deep-research" });
    await row.waitFor();
    return row.getByRole("switch");
  };
  const toggle = await skill(admin);
  assert.equal(await toggle.getAttribute("aria-checked"), "true");
  const stored = admin.waitForResponse((answer) => answer.url().endsWith("/api/skills/deep-research") && answer.request().method() === "PUT");
  await toggle.click();
  assert.equal((await stored).status(), 200);
  assert.equal(await (await skill(admin)).getAttribute("aria-checked"), "false");
  const other = await skill(person);
  assert.equal(await other.getAttribute("aria-checked"), "false");
  if (await other.isEnabled()) {
    await other.click();
    await person.getByText(/admin/i).first().waitFor();
  }
});

test("the pages of tools, channels and notifications load for both", async () => {
  for (const page of [admin, person]) {
    const failures = [];
    page.on("response", (answer) => answer.status() >= 500 && failures.push(`${answer.status()} ${answer.url()}`));
    for (const section of ["tools", "channels", "notification", "appearance", "about"]) {
      const dialog = await settings(page, section);
      await dialog.getByRole("heading").first().waitFor();
    }
    assert.deepEqual(failures, []);
  }
});

test("an agent is created, edited and deleted", async () => {
  const created = await person.request.post("/api/agents", {
    data: { name: "gardener", description: "Grows plants", soul: "You are a gardener." },
    headers: { "x-csrf-token": await csrf(person), origin: nginx.origin },
  });
  assert.equal(created.status(), 201, await created.text());
  await person.goto("/workspace/agents");
  await person.getByText("gardener").first().waitFor();
  await admin.goto("/workspace/agents");
  await admin.getByRole("heading").first().waitFor();
  assert.equal(await admin.getByText("gardener").count(), 0);
});

async function csrf(page) {
  const cookies = await page.context().cookies();
  return cookies.find((cookie) => cookie.name === "csrf_token").value;
}
